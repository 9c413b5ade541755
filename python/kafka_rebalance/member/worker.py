# SPDX-License-Identifier: Apache-2.0
"""A Connect worker's membership (see `group_member`), and its role: it reports, leads, starts and
stops connectors and tasks.

    prepare     an eager worker stops everything, an incremental one nothing
    protocols   reports the newest configuration's offset, and from version 1 on the assigned work
    lead        runs the eager or the incremental assignor on the newest configuration
    take        stops revoked work
    settle      starts new work when the worker has read the leader's configuration; joins again
                after a revocation, for a newer configuration, or when the leader's delay is over

The steps use three configurations: a report contains the offset of the newest one. A leader assigns
the configuration that it reported, unless another worker reported a newer one. `settle` uses the
one that the herder last applied. If the applied configuration is newer than the leader's, the
worker joins again.

    downgrade   incremental workers that follow an eager leader stop nothing, as in Kafka: work that
                has moved to other workers keeps running on its old worker until that worker stops

Kafka's herder thread polls all the time; here, the host polls at `next_poll_ms()`, but not while
the worker starts or stops work. ConfigurationUpdated reports new entries of Connect's topic.

Source   DistributedHerder.tick/handleRebalanceCompleted/startWork, WorkerCoordinator,
         WorkerGroupMember (Connect 4.3.1); KIP-415, KIP-507.
Differs  a worker whose configuration is older than the leader's waits without a limit; in Kafka it
         leaves after `worker.sync.timeout.ms` (3 s) and returns later. Connectors have no settings;
         a connector is restarted only if it was deleted and created again.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from kafka_rebalance.assignors.connect.engines import assign_eager, handle
from kafka_rebalance.assignors.connect.incremental import ConnectSpec, Memory
from kafka_rebalance.assignors.connect.work import Task, Work
from kafka_rebalance.frozen import Mutable
from kafka_rebalance.wire import connect_protocol as wire
from kafka_rebalance.wire.classic_groups import JoinGroupProtocol, JoinGroupResponse
from kafka_rebalance.wire.messages import Response

from .config import WorkerConfig
from .group_member import GroupMember, needs_rejoin
from .interface import Close, ConfigurationUpdated, MemberEvent, Poll, Start, Stop
from .membership import Membership, SentRequest, Shares
from .states import MemberState

NOTHING = Work()

# The group's protocols, preferred first; a worker offers the protocols up to its own version.
PROTOCOLS = {"sessioned": wire.SESSIONED, "compatible": wire.COMPATIBLE, "default": wire.EAGER}


@dataclass(frozen=True, slots=True)
class Configuration:
    """The connectors in the configuration topic up to an offset: name -> number of tasks."""

    offset: int = -1
    connectors: Mapping[str, int] = field(default_factory=dict)


class Herder(Mutable):
    """A worker's role, and the state that only workers have."""

    config: WorkerConfig
    url: str
    # The newest configuration, the one in the last JoinGroup, and the one last applied
    newest: Configuration = Configuration()
    joined_with: Configuration = Configuration()
    configuration: Configuration = Configuration()
    has_read: bool = False  # the topic was read to its end, before the first join
    is_reconfigured: bool = False  # connectors or tasks have changed, so a rebalance is needed
    reconfigured: set[str] = field(default_factory=set)  # connectors whose tasks must restart
    # Connectors that were deleted and created again before the herder applied the deletion
    recreated: set[str] = field(default_factory=set)
    assignment: wire.ConnectAssignment | None = None  # the last one received
    work: Work | None = None  # None before an assignment, and after `give_up` or `lose`
    running: Work = NOTHING  # started and not yet stopped
    is_resolved: bool = True  # all assigned work is started
    is_rejoin_requested: bool = False
    scheduled_ms: int | None = None  # when the leader wants the next rebalance
    # The leader's memory between rebalances
    memory: Memory = field(default_factory=Memory)
    last_completed_generation_id: int = -1
    is_in: bool = True

    protocol_type = "connect"
    is_pending_revocation = False  # a worker commits nothing before a revocation

    def wants_in(self) -> bool:
        """Returns True from the worker's start until the worker is closed."""
        return self.is_in

    def has_news(self, state: Membership) -> bool:
        """Returns whether the worker has no valid assignment, lost its work, or wants to rejoin."""
        failed = self.assignment is None or self.assignment.error != wire.NO_ERROR
        return failed or self.work is None or self.is_rejoin_requested

    def update(self, configuration: Configuration) -> None:
        """Stores a newer configuration, and whether its changes need a rebalance."""
        before, self.newest = self.newest.connectors, configuration
        if not self.has_read:
            self.has_read = True
            return
        now, known = configuration.connectors, self.configuration.connectors
        self.recreated |= {name for name in now if name not in before and name in known}
        changed = {name for name, tasks in now.items() if before.get(name) != tasks}
        gone = {name for name in before if name not in now and name in known}
        self.is_reconfigured |= bool(changed or gone)
        self.reconfigured |= {name for name in changed if now[name]}

    # Before the join ------------------------------------------------------------------------------

    def prepare(self, state: Membership) -> bool:
        version = self.config.version if self.assignment is None else self.assignment.version
        if version == wire.EAGER:
            self._stop(state, self.work or NOTHING)
        return True

    def prepares_until_ms(self, state: Membership) -> int | None:
        return None

    def protocols(self, state: Membership) -> tuple[JoinGroupProtocol, ...]:
        self.joined_with = self.newest
        report = self._report()
        metadata = wire.ConnectMetadata(url=self.url, config_offset=self.newest.offset)
        offered = []
        for name, version in PROTOCOLS.items():
            if version <= self.config.version:
                mine = None if report is None else replace(report, version=version)
                sent = replace(metadata, version=version, assignment=mine)
                offered.append(JoinGroupProtocol(name, wire.encode_connect_metadata(sent)))
        return tuple(offered)

    def _report(self) -> wire.ConnectAssignment | None:
        if self.assignment is None or self.work is None:
            return None
        work = self.work.after_wire()
        return replace(self.assignment, connectors=work.connectors, tasks=work.tasks)

    # The leader -----------------------------------------------------------------------------------

    def lead(self, state: Membership, response: JoinGroupResponse) -> Shares:
        """Returns each worker's assignment.

        If a worker has read more of the configuration topic than the leader, all workers get
        CONFIG_MISMATCH.
        """
        reports = {
            one.member_id: wire.decode_connect_metadata(one.metadata) for one in response.members
        }
        leader = response.member_id
        newest = max(one.config_offset for one in reports.values())
        if self.joined_with.offset < newest:
            self.joined_with = self.newest
        common = wire.ConnectAssignment(
            leader=leader,
            leader_url=reports[leader].url,
            config_offset=max(newest, self.joined_with.offset),
            version=PROTOCOLS[response.protocol_name or ""],
        )
        if self.joined_with.offset < newest:
            failed = wire.encode_connect_assignment(replace(common, error=wire.CONFIG_MISMATCH))
            return tuple((member, failed) for member in reports)
        if common.version == wire.EAGER:
            shares = assign_eager(list(reports), self.joined_with.connectors)
            return tuple((member, _encode(common, shares[member])) for member in reports)
        spec = ConnectSpec(
            {member: assigned_work(one.assignment) for member, one in reports.items()},
            self.joined_with.connectors,
            self.config.scheduled_rebalance_max_delay_ms,
            response.generation_id,
            self.last_completed_generation_id,
        )
        self.memory, result = handle(self.memory, spec, state.now_ms)
        common = replace(common, delay_ms=result.delay_ms)
        return tuple(
            (member, _encode(common, result.assigned[member], result.revoked[member]))
            for member in reports
        )

    # After the join -------------------------------------------------------------------------------

    def take(self, state: Membership, assignment: bytes) -> None:
        """Stops revoked work, and applies the rest of the assignment."""
        received = wire.decode_connect_assignment(assignment)
        self.is_rejoin_requested = False
        work = assigned_work(received)
        if received.version > wire.EAGER:
            revoked = revoked_work(received)
            self._stop(state, revoked, is_revoked=True)
            work = work + ((self.work or NOTHING) - revoked)
        self.assignment, self.work = received, work
        self.last_completed_generation_id = state.generation.generation_id
        self.scheduled_ms = state.now_ms + received.delay_ms if received.delay_ms > 0 else None
        self.is_resolved = False

    def settle(self, state: Membership) -> None:
        """Does the herder's work between rebalances; nothing while the coordinator is unknown."""
        if state.coordinator_node is None:
            return
        if self._is_due(state):
            self.scheduled_ms = None
            self.is_rejoin_requested = True
        elif not self.is_resolved:
            self._complete(state)
        if self.is_resolved and not self.is_rejoin_requested and self._has_updates():
            self._read_updates(state)

    def _is_due(self, state: Membership) -> bool:
        return self.scheduled_ms is not None and self.scheduled_ms <= state.now_ms

    def _has_updates(self) -> bool:
        return self.is_reconfigured or self.newest.offset != self.configuration.offset

    def _read_updates(self, state: Membership) -> None:
        """Applies the newest configuration to the herder; rejoins if that change requires it."""
        assert self.assignment is not None
        self.configuration = self.newest
        # While a rebalance is scheduled, a configuration at another offset also needs a rejoin.
        differs = self.configuration.offset != self.assignment.config_offset
        is_unsettled = self.scheduled_ms is not None and differs
        self.is_rejoin_requested = self.is_reconfigured or is_unsettled
        self.is_reconfigured = False
        if self.assignment.version > wire.EAGER:
            # The tasks of changed connectors stop now; the rebalance assigns them again.
            again = tuple(one for one in self.running.tasks if one.connector in self.reconfigured)
            self._stop(state, Work((), again))
            self.reconfigured.clear()
            self._restart(state)
        self.recreated.clear()  # an eager rebalance restarts everything

    def _restart(self, state: Membership) -> None:
        """Restarts the worker's connectors that were created again; they have no tasks yet."""
        again = tuple(one for one in self.running.connectors if one in self.recreated)
        self._stop(state, Work(again, ()))
        if there := Work(tuple(one for one in again if one in self.configuration.connectors), ()):
            state.effects.append(Start(there))
            self.running = self.running + there

    def _complete(self, state: Membership) -> None:
        """Starts new work after a rebalance, when the worker has the leader's configuration."""
        assert self.assignment is not None
        assert self.work is not None
        wanted = self.assignment.config_offset
        if self.configuration.offset < wanted:
            self.configuration = self.newest
            if self.newest.offset < wanted:
                return
        if self.configuration.offset != wanted:
            self.is_rejoin_requested = True
            return
        new = self.work - self.running
        if new:
            state.effects.append(Start(new))
        self.running = self.running + new
        self.is_resolved = True
        if revoked_work(self.assignment):
            self.assignment = replace(self.assignment, revoked_connectors=(), revoked_tasks=())
            self.is_rejoin_requested = True

    def next_settle_ms(self, state: Membership) -> int | None:
        """Returns a time in ms: now if work waits, else the leader's next rebalance, or None."""
        if state.coordinator_node is None:
            return None
        if not self.is_resolved:
            assert self.assignment is not None
            behind = self.newest.offset < self.assignment.config_offset
            return self.scheduled_ms if behind else state.now_ms
        return state.now_ms if self._has_updates() else self.scheduled_ms

    def is_at_work(self, state: Membership) -> bool:
        """Returns whether the herder can accept a request: no rebalance is running or expected."""
        return (
            state.coordinator_node is not None
            and self.is_resolved
            and not (self.is_reconfigured or self._is_due(state))
        )

    def give_up(self, state: Membership) -> None:
        self._stop(state, self.running)
        self.work = None

    def lose(self, state: Membership) -> None:
        """Stops all work, because the coordinator is unknown and other workers may run it."""
        self._stop(state, self.work or NOTHING)
        self.work = None

    def _stop(self, state: Membership, work: Work, *, is_revoked: bool = False) -> None:
        gone = self.running - (self.running - work)
        if gone:
            state.effects.append(Stop(gone, is_revoked))
        self.running = self.running - work

    def answered(self, state: Membership, sent: SentRequest, response: Response) -> None:
        """Does nothing: a worker's role sends no requests of its own."""


def _encode(common: wire.ConnectAssignment, work: Work, revoked: Work = NOTHING) -> bytes:
    ordered = work.after_wire()
    message = replace(
        common,
        connectors=ordered.connectors,
        tasks=ordered.tasks,
        revoked_connectors=revoked.connectors,
        revoked_tasks=revoked.tasks,
    )
    return wire.encode_connect_assignment(message)


def assigned_work(message: wire.ConnectAssignment | None) -> Work:
    if message is None:
        return NOTHING
    return Work(message.connectors, tuple(Task(*task) for task in message.tasks))


def revoked_work(message: wire.ConnectAssignment) -> Work:
    return Work(message.revoked_connectors, tuple(Task(*task) for task in message.revoked_tasks))


class Worker(GroupMember):
    """A Connect worker: it starts and stops the connectors and tasks that its group assigns."""

    kind: Literal["worker"] = "worker"

    def __init__(self, config: WorkerConfig, *, url: str, rng: random.Random) -> None:
        self._herder = Herder(config, url)
        self._looks_since_ms = -1  # first poll (ms) that only looked for a coordinator; -1: none
        super().__init__(Membership(config, rng, self._herder))

    @property
    def config(self) -> WorkerConfig:
        return self._herder.config

    @property
    def running(self) -> Work:
        return self._herder.running

    def is_at_work(self) -> bool:
        """Returns whether no rebalance is running or expected: a leader can then serve requests."""
        state = self._state
        return (
            state.state is MemberState.STABLE
            and not (needs_rejoin(state) or state.is_joining())
            and self._herder.is_at_work(state)
        )

    def next_poll_ms(self) -> int | None:
        """Returns when (ms) a poll will have an effect, or when the worker gives up its work.

        A worker that finds no coordinator gives up its work; if it is starting or stopping work, it
        does so afterwards.
        """
        due = (super().next_poll_ms(), self._gives_up_ms())
        return min((at_ms for at_ms in due if at_ms is not None), default=None)

    def _gives_up_ms(self) -> int | None:
        """Returns when (ms) the worker gives up its work; None if it has a coordinator or joins.

        The worker gives up a heartbeat interval after the first poll at which it only looked for a
        coordinator. Before that poll, returns the present time, so that this poll comes at once.
        """
        state = self._state
        unknown = state.unknown_since_ms
        if unknown is None or not state.needs_prepare or self._herder.work is None:
            return None
        if self._looks_since_ms < unknown:
            return state.now_ms
        return self._looks_since_ms + self._herder.config.heartbeat_interval_ms

    def _poll(self, event: Poll) -> None:
        state, alone = self._state, self._gives_up_ms()
        if alone is not None and alone <= state.now_ms:
            assert state.unknown_since_ms is not None
            if self._looks_since_ms < state.unknown_since_ms:
                self._looks_since_ms = state.now_ms
            else:
                self._herder.lose(state)
        super()._poll(event)

    def _handle_own(self, event: MemberEvent) -> None:
        match event:
            case ConfigurationUpdated(offset, connectors):
                self._herder.update(Configuration(offset, dict(connectors)))
            case Close():
                self._leave()
                self._herder.is_in = False
            case _:
                super()._handle_own(event)
