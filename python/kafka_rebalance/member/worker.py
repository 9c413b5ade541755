# SPDX-License-Identifier: Apache-2.0
"""A Connect worker (see `group_member`): it reports, leads, starts and stops connectors and tasks.

    prepare     an eager worker stops everything, an incremental one nothing
    protocols   reports the newest configuration's offset and, from version 1 on, the assigned work
    lead        runs the eager or the incremental assignor on the configuration that is named below
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

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import ClassVar, Literal

from kafka_rebalance.assignors.connect.engines import assign_eager, handle
from kafka_rebalance.assignors.connect.incremental import ConnectSpec, Memory
from kafka_rebalance.assignors.connect.work import Task, Work
from kafka_rebalance.wire import connect_protocol as wire
from kafka_rebalance.wire.classic_groups import JoinGroupProtocol, JoinGroupResponse

from .config import WorkerConfig
from .group_member import GroupMember
from .interface import Close, ConfigurationUpdated, MemberEvent, Poll, Start, Stop
from .membership import Shares
from .states import MemberState

NOTHING = Work()

# The group's protocols, preferred first; a worker offers the protocols up to its own version.
PROTOCOLS = {"sessioned": wire.SESSIONED, "compatible": wire.COMPATIBLE, "default": wire.EAGER}


@dataclass(frozen=True, slots=True)
class Configuration:
    """The connectors in the configuration topic up to an offset: name -> number of tasks."""

    offset: int = -1
    connectors: Mapping[str, int] = field(default_factory=dict)


class Worker(GroupMember):
    """A Connect worker: it starts and stops the connectors and tasks that its group assigns."""

    config: WorkerConfig
    _: KW_ONLY
    kind: ClassVar[Literal["worker"]] = "worker"
    protocol_type = "connect"
    url: str
    # The newest configuration, the one in the last JoinGroup, and the one last applied
    newest: Configuration = Configuration()
    joined_with: Configuration = Configuration()
    configuration: Configuration = Configuration()
    has_read: bool = False  # the configuration was read once, before the first join
    is_reconfigured: bool = False  # connectors or tasks have changed, so a rebalance is needed
    reconfigured: set[str] = field(default_factory=set)  # connectors whose tasks must restart
    # Connectors that were deleted and created again before the herder applied the deletion
    recreated: set[str] = field(default_factory=set)
    assignment: wire.ConnectAssignment | None = None  # the last assignment received
    work: Work | None = None  # None before an assignment, after `give_up` and after `_lose`
    running: Work = NOTHING  # started and not yet stopped
    is_resolved: bool = True  # all assigned work is started
    is_rejoin_requested: bool = False
    scheduled_ms: int | None = None  # when the leader wants the next rebalance
    # The leader's memory between rebalances
    memory: Memory = field(default_factory=Memory)
    last_completed_generation_id: int = -1
    is_in: bool = True
    looks_since_ms: int = -1  # time of the first poll that only looked for a coordinator; or -1

    def wants_in(self) -> bool:
        """Returns True from the worker's start until the worker is closed."""
        return self.is_in

    def has_news(self) -> bool:
        """Returns whether the worker has no valid assignment, lost its work, or wants to rejoin."""
        failed = self.assignment is None or self.assignment.error != wire.NO_ERROR
        return failed or self.work is None or self.is_rejoin_requested

    def _update(self, configuration: Configuration) -> None:
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

    def prepare(self) -> bool:
        version = self.config.version if self.assignment is None else self.assignment.version
        if version == wire.EAGER:
            self._stop(self.work or NOTHING)
        return True

    def protocols(self) -> tuple[JoinGroupProtocol, ...]:
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

    def lead(self, response: JoinGroupResponse) -> Shares:
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
        self.memory, result = handle(self.memory, spec, self.now_ms)
        common = replace(common, delay_ms=result.delay_ms)
        return tuple(
            (member, _encode(common, result.assigned[member], result.revoked[member]))
            for member in reports
        )

    # After the join -------------------------------------------------------------------------------

    def take(self, assignment: bytes) -> None:
        """Stops revoked work, and applies the rest of the assignment."""
        received = wire.decode_connect_assignment(assignment)
        self.is_rejoin_requested = False
        work = assigned_work(received)
        if received.version > wire.EAGER:
            revoked = revoked_work(received)
            self._stop(revoked, is_revoked=True)
            work = work + ((self.work or NOTHING) - revoked)
        self.assignment, self.work = received, work
        self.last_completed_generation_id = self.generation_id
        self.scheduled_ms = self.now_ms + received.delay_ms if received.delay_ms > 0 else None
        self.is_resolved = False

    def settle(self) -> None:
        """Does the herder's work between rebalances; nothing while the coordinator is unknown."""
        if self.coordinator_node is None:
            return
        if self._is_due():
            self.scheduled_ms = None
            self.is_rejoin_requested = True
        elif not self.is_resolved:
            self._complete()
        if self.is_resolved and not self.is_rejoin_requested and self._has_updates():
            self._read_updates()

    def _is_due(self) -> bool:
        return self.scheduled_ms is not None and self.scheduled_ms <= self.now_ms

    def _has_updates(self) -> bool:
        return self.is_reconfigured or self.newest.offset != self.configuration.offset

    def _read_updates(self) -> None:
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
            self._stop(Work((), again))
            self.reconfigured.clear()
            self._restart()
        self.recreated.clear()  # an eager rebalance restarts everything

    def _restart(self) -> None:
        """Restarts the worker's connectors that were created again; they have no tasks yet."""
        again = tuple(one for one in self.running.connectors if one in self.recreated)
        self._stop(Work(again, ()))
        if there := Work(tuple(one for one in again if one in self.configuration.connectors), ()):
            self.effects.append(Start(there))
            self.running = self.running + there

    def _complete(self) -> None:
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
            self.effects.append(Start(new))
        self.running = self.running + new
        self.is_resolved = True
        if revoked_work(self.assignment):
            self.assignment = replace(self.assignment, revoked_connectors=(), revoked_tasks=())
            self.is_rejoin_requested = True

    def next_settle_ms(self) -> int | None:
        """Returns when (ms) `settle` has work: now, at the leader's next rebalance, or None."""
        if self.coordinator_node is None:
            return None
        if not self.is_resolved:
            assert self.assignment is not None
            behind = self.newest.offset < self.assignment.config_offset
            return self.scheduled_ms if behind else self.now_ms
        return self.now_ms if self._has_updates() else self.scheduled_ms

    def give_up(self) -> None:
        self._stop(self.running)
        self.work = None

    def _lose(self) -> None:
        """Stops all work, because the coordinator is unknown and other workers may run it."""
        self._stop(self.work or NOTHING)
        self.work = None

    def _stop(self, work: Work, *, is_revoked: bool = False) -> None:
        gone = self.running - (self.running - work)
        if gone:
            self.effects.append(Stop(gone, is_revoked))
        self.running = self.running - work

    # For the host ---------------------------------------------------------------------------------

    def is_at_work(self) -> bool:
        """Returns whether the member is Stable, knows its coordinator, and expects no rebalance."""
        return (
            self.state is MemberState.STABLE
            and not self.is_rebalancing()
            and self.coordinator_node is not None
            and self.is_resolved
            and not (self.is_reconfigured or self._is_due())
        )

    def next_poll_ms(self) -> int | None:
        """Returns when (ms) a poll will have an effect, or when the worker gives up its work.

        A worker that finds no coordinator gives up its work; if it is starting or stopping work, it
        does so afterwards.
        """
        due = (super().next_poll_ms(), self._gives_up_ms())
        return min((at_ms for at_ms in due if at_ms is not None), default=None)

    def _gives_up_ms(self) -> int | None:
        """Returns when (ms) work is given up; None with a coordinator, in a join or without work.

        The worker gives up its work a heartbeat interval after the first poll that only looked for
        a coordinator. Before that poll, returns the present time, so that this poll comes at once.
        """
        unknown = self.unknown_since_ms
        if unknown is None or not self.needs_prepare or self.work is None:
            return None
        if self.looks_since_ms < unknown:
            return self.now_ms
        return self.looks_since_ms + self.config.heartbeat_interval_ms

    def _poll(self, event: Poll) -> None:
        alone = self._gives_up_ms()
        if alone is not None and alone <= self.now_ms:
            assert self.unknown_since_ms is not None
            if self.looks_since_ms < self.unknown_since_ms:
                self.looks_since_ms = self.now_ms
            else:
                self._lose()
        super()._poll(event)

    def _handle_own(self, event: MemberEvent) -> None:
        match event:
            case ConfigurationUpdated(offset, connectors):
                self._update(Configuration(offset, dict(connectors)))
            case Close():
                self._leave()
                self.is_in = False
            case _:
                super()._handle_own(event)


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
