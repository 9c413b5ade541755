# SPDX-License-Identifier: Apache-2.0
"""The broker of a simulation: one coordinator, its log, and its node; and who counts as silent.

Every node responds to FindCoordinator. A node without the coordinator responds NOT_COORDINATOR to
all other requests. An append is durable after the network's `log_ms`. A node refuses commits for
partitions that do not exist; the coordinator stores the request's other offsets.

Heartbeats of healthy members are left out, so that a stable group costs no time to simulate:

idle     A member that only has heartbeats to send is not simulated. At its next event, it first
         gets a `Vouched`, which sets the time of its last heartbeat to the last one that was due.
silent   The coordinator runs with `vouched`: it times a member's session only after a report that
         the member is silent.

Source   KafkaApis.handleOffsetCommit (Kafka 4.4.0).
"""

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import kafka_rebalance.coordinator.machine.events as c
from kafka_rebalance.coordinator.coordinator import Coordinator
from kafka_rebalance.frozen import Mutable
from kafka_rebalance.member.interface import Vouched
from kafka_rebalance.wire.broker_groups import ConsumerGroupHeartbeat
from kafka_rebalance.wire.classic_groups import (
    FindCoordinator,
    FindCoordinatorResponse,
    JoinGroup,
    LeaveGroup,
)
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import GroupState, Request, Response, Tick
from kafka_rebalance.wire.offsets import OffsetCommit, OffsetCommitResponse, PartitionError

from .agenda import Agenda
from .process import Process

if TYPE_CHECKING:
    from kafka_rebalance.coordinator.consumer_group.group import ConsumerGroup

    from .journal import Entry
    from .process import AnyMember


class Broker(Mutable):
    """The broker that coordinates the group.

    `has` returns whether a partition exists. `watch` receives each change of a classic group's
    state. The broker calls `look` after an append of records, because only records change the
    epochs of a consumer group.
    """

    coordinator: Coordinator
    agenda: Agenda
    log_ms: int
    has: Callable[[str, int], bool]
    watch: Callable[[c.Transition, str], None]
    respond: Callable[[int, Response], None]
    look: Callable[[str], None]
    journal: "list[Entry] | None"
    node: int | None = 0
    sender: str = ""  # the process whose request is being handled
    is_touched: bool = False  # the coordinator handled an event, so its deadlines may differ
    tick_at: int | None = None  # the next time at which the coordinator gets a Tick
    log: list[c.LogEntry] = field(default_factory=list)
    refused: dict[int, tuple[PartitionError, ...]] = field(default_factory=dict)
    moves: int = 0  # how often another node became the coordinator; also the newest node's number

    def receive(self, node: int | None, event: c.Received) -> None:
        request, number = event.request, event.request_id
        if isinstance(request, FindCoordinator):
            self.respond(number, self._found())
            return
        if node != self.node:
            self.respond(number, request.refused(ErrorCode.NOT_COORDINATOR))
            return
        if isinstance(request, OffsetCommit) and request.offsets:
            request = self._of_known(number, request)
            if not request.offsets:
                self.respond(number, self._whole(number, OffsetCommitResponse()))
                return
            event = replace(event, request=request)
        self.sender = event.client_id
        self.handle(event, self._cause(request, self.sender))
        self.sender = ""

    def _of_known(self, number: int, request: OffsetCommit) -> OffsetCommit:
        """Returns the commit without nonexistent partitions; `_whole` adds their errors later."""
        known = tuple(one for one in request.offsets if self.has(one.topic, one.partition))
        if len(known) == len(request.offsets):
            return request
        self.refused[number] = tuple(
            PartitionError(one.topic, one.partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            for one in request.offsets
            if not self.has(one.topic, one.partition)
        )
        return replace(request, offsets=known)

    def _whole(self, number: int, response: Response) -> Response:
        refused = self.refused.pop(number, ())
        if not (refused and isinstance(response, OffsetCommitResponse)):
            return response
        return replace(response, partitions=(*refused, *response.partitions))

    def _found(self) -> Response:
        if self.node is None:
            return FindCoordinatorResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return FindCoordinatorResponse(node_id=self.node)

    def _cause(self, request: Request, sender: str) -> str:
        group: Any
        match request:
            case LeaveGroup():
                return f"{sender} leaves"
            case JoinGroup():
                group = self.coordinator.classic_group(request.group_id)
                instance_id = request.group_instance_id
            case ConsumerGroupHeartbeat(member_epoch=epoch):
                if epoch:
                    return f"{sender} leaves" if epoch < 0 else "the topics changed"
                group = self.coordinator.groups().get(request.group_id)
                instance_id = request.instance_id
            case _:
                return f"{sender} answers"
        known = group is not None and (
            request.member_id in group.members or instance_id in group.static_members
        )
        return f"{sender} {'rejoins' if known else 'joins'}"

    def consumer_group(self, group_id: str) -> "ConsumerGroup | None":
        """Returns the consumer group (KIP-848) with this id; None if there is none."""
        group: Any = self.coordinator.groups().get(group_id)
        return None if group is None or group.group_type == "classic" else group

    def leave_node(self) -> None:
        self.handle(c.Unloaded(), "the coordinator moves")
        self.node = None

    def take_node(self) -> None:
        self.moves += 1
        self.node = self.moves
        self.handle(c.Loaded(tuple(self.log)), "the coordinator moves")

    def arm_tick(self) -> None:
        """Schedules a Tick at the coordinator's next deadline, unless one is due earlier."""
        self.is_touched = False
        due = self.coordinator.next_deadline_ms()
        if due is not None and (self.tick_at is None or due < self.tick_at):
            self.tick_at = max(due, self.agenda.now_ms)
            self.agenda.push(self.tick_at, self._tick)

    def _tick(self) -> None:
        if self.tick_at == self.agenda.now_ms:
            self.tick_at = None
            self.handle(Tick(), "time is up")

    def _append(self, event: c.Appended | c.PatternsDue) -> None:
        answers = partial(self.handle, event, "the log answers")
        self.agenda.push(self.agenda.now_ms + self.log_ms, answers)

    def handle(self, event: c.CoordinatorEvent, cause: str = "") -> None:
        """Passes an event to the coordinator; `cause` explains the rebalance, if any."""
        now_ms = self.agenda.now_ms
        effects = self.coordinator.handle(event, now_ms)
        self.is_touched = True
        if self.journal is not None:
            from .journal import CoordinatorEntry

            self.journal.append(CoordinatorEntry(now_ms, event, tuple(effects)))
        has_written = False
        for effect in effects:
            match effect:
                case c.Respond():
                    number = effect.request_id
                    self.respond(number, self._whole(number, effect.response))
                case c.Append(append_id, records):
                    position = len(self.log)
                    self.log += (c.LogEntry(position + i, *one) for i, one in enumerate(records))
                    self._append(c.Appended(append_id, position))
                    has_written = True
                case c.PatternsDue():
                    self._append(effect)
                case c.Transition():
                    self.watch(effect, cause)
                case c.Expired(key):
                    cause = f"{key.member_id or 'somebody'}{_EXPIRED[key.kind]}"
                case _:
                    pass
        if has_written:
            self.look(cause)


_EXPIRED = {
    "heartbeat": "'s session ended",
    "session-timeout": "'s session ended",
    "rebalance-timeout": " revoked too late",
    "sync": " synced too late",
    "join": "",
}


class Liveness(Mutable):
    """Lets idle members skip heartbeats; reports the ids in `silent` to the coordinator."""

    agenda: Agenda
    broker: Broker
    processes: Mapping[str, Process]
    group_id: str
    silent: set[str] = field(default_factory=set)
    _settled: tuple[int, int | None] = (-1, None)  # the log's length; the epoch if Stable then

    def is_at_rest(self, member: "AnyMember") -> bool:
        """Returns whether the member has only heartbeats to send, in a group that is Stable."""
        if not member.is_idle():
            return False
        if (by_broker := self.broker.consumer_group(self.group_id)) is not None:
            return self._is_settled(by_broker, member)
        group = self.broker.coordinator.classic_group(self.group_id)
        return (
            group is not None
            and group.state is GroupState.STABLE
            and group.generation_id == member.generation_id
            and member.member_id in group.members
        )

    def _is_settled(self, group: "ConsumerGroup", member: "AnyMember") -> bool:
        """Returns whether no heartbeat of the member would change the group or the member.

        The group's state is computed once for each length of the log, because only records change
        it. A group with patterns is never settled: the broker resolves patterns at heartbeats.
        """
        length = len(self.broker.log)
        if self._settled[0] != length:
            is_stable = group.state is GroupState.STABLE and not len(group.patterns)
            self._settled = (length, group.assignment_epoch if is_stable else None)
        return (
            self._settled[1] == member.generation_id
            and member.member_id in group.members
            and not group.must_refresh(self.agenda.now_ms)
        )

    def wake(self, process: Process) -> None:
        """Simulates a process again if it was idle, because an event concerns it."""
        if process.idle_since_ms is None or process.member is None:
            return
        now_ms, every = self.agenda.now_ms, process.member.heartbeat_interval_ms
        since = process.idle_since_ms
        due = process.member.next_heartbeat_ms()
        if process.member.kind == "async" and due is not None:
            since = due - every  # the member counts the interval from its last heartbeat
        last = since + (now_ms - since) // every * every
        process.idle_since_ms = None
        process.handle(Vouched(last, now_ms), now_ms)
        due = process.member.next_deadline_ms()
        if due is not None:
            self.agenda.arm(max(due, now_ms), process.wake, process.incarnation)

    def wake_all(self) -> None:
        for process in self.processes.values():
            self.wake(process)

    def wake_replaced(self) -> None:
        """Wakes idle members that are no longer at rest, such as a replaced static member."""
        for process in self.processes.values():
            member = process.member if process.idle_since_ms is not None else None
            if member is not None and not self.is_at_rest(member):
                self.wake(process)

    def fall_silent(self, process: Process) -> None:
        """Reports to the coordinator that the member has been silent since its last heartbeat."""
        member, now_ms = process.member, self.agenda.now_ms
        if member is None or not member.member_id:
            return
        due = member.next_heartbeat_ms()
        every = member.heartbeat_interval_ms
        since = now_ms if due is None else max(due - every, 0)
        self.report_silent(member.member_id, min(since, now_ms))

    def report_silent(self, member_id: str, since_ms: int) -> None:
        """Reports a member id as silent to the coordinator; an empty id is ignored."""
        if member_id:
            self.silent.add(member_id)
            self.broker.handle(c.Silent(self.group_id, member_id, since_ms))

    def report_heard(self, member_id: str) -> None:
        self.silent.discard(member_id)
        self.broker.handle(c.Heard(self.group_id, member_id))

    def repeat_reports(self) -> None:
        """Repeats the reports of all silent members after the coordinator has loaded the log."""
        for member_id in sorted(self.silent):
            self.report_silent(member_id, self.agenda.now_ms)
