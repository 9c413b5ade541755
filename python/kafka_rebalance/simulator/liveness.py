# SPDX-License-Identifier: Apache-2.0
"""Leaves out the heartbeats of healthy members, so that a stable group costs no time to simulate.

idle     A member that only has heartbeats to send is not simulated. At its next event, it first
         gets a `Vouched`, which sets the time of its last heartbeat to the last one that was due.
silent   The coordinator runs with `vouched`: it times a member's session only after a report that
         the member is silent.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from kafka_rebalance.coordinator.machine.events import Heard, Silent
from kafka_rebalance.frozen import Mutable
from kafka_rebalance.member.interface import Vouched
from kafka_rebalance.wire.messages import GroupState

from .agenda import Agenda
from .broker import Broker
from .process import Process

if TYPE_CHECKING:
    from kafka_rebalance.coordinator.consumer_group.group import ConsumerGroup

    from .process import AnyMember


class Liveness(Mutable):
    """Lets idle members skip heartbeats; reports the ids in `silent` to the coordinator."""

    agenda: Agenda
    broker: Broker
    processes: Mapping[str, Process]
    group_id: str
    silent: set[str] = field(default_factory=set)
    _settled: tuple[int, int | None] = (-1, None)  # length of the log, epoch if Stable then

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
        it. A group with patterns never counts: the broker resolves them at heartbeats.
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
            self.broker.handle(Silent(self.group_id, member_id, since_ms))

    def report_heard(self, member_id: str) -> None:
        self.silent.discard(member_id)
        self.broker.handle(Heard(self.group_id, member_id))

    def repeat_reports(self) -> None:
        """Repeats the reports of all silent members after the coordinator has loaded the log."""
        for member_id in sorted(self.silent):
            self.report_silent(member_id, self.agenda.now_ms)
