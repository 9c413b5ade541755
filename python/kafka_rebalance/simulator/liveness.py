# SPDX-License-Identifier: Apache-2.0
"""Idle and silent members: the reason why a group at rest costs nothing to simulate.

idle     a member with nothing to do but heartbeats is not simulated; when something happens,
         Vouched reports to it that it was healthy until now
silent   the coordinator runs with `vouched`: it times only the sessions of silent members
"""

from collections.abc import Mapping

from kafka_rebalance.member import GroupMember, Vouched
from kafka_rebalance.protocol import GroupState

from .agenda import Agenda
from .broker import Broker
from .process import Process
from .scheduled import Wake


class Liveness:
    """Tracks such members. Getters: is_silent, is_at_rest. Inputs: wake, report_*, fall_silent, ….

    `is_silent` and the reports are about member ids, the other methods about processes.
    """

    def __init__(
        self, agenda: Agenda, broker: Broker, processes: Mapping[str, Process], group_id: str
    ) -> None:
        self._agenda = agenda
        self._broker = broker
        self._processes = processes
        self._group_id = group_id
        self._silent: set[str] = set()

    def is_silent(self, member_id: str) -> bool:
        """Returns whether the coordinator times the member's session."""
        return member_id in self._silent

    def is_at_rest(self, member: GroupMember) -> bool:
        """Returns whether heartbeats would change nothing: the member is in a Stable generation."""
        group = self._broker.coordinator.groups().get(self._group_id)
        return (
            member.is_idle()
            and group is not None
            and group.is_(GroupState.STABLE)
            and group.generation_id == member.generation_id
            and group.has(member.member_id)
        )

    def wake(self, process: Process) -> None:
        """Wakes a process to which something happens; an idle member was healthy until now."""
        if process.idle_since_ms is None or process.member is None:
            return
        now_ms, every = self._agenda.now_ms, process.plan.config.heartbeat_interval_ms
        beats = (now_ms - process.idle_since_ms) // every
        last = process.idle_since_ms + beats * every
        process.idle_since_ms = None
        process.handle(Vouched(last, now_ms), now_ms)
        due = process.member.next_deadline_ms()
        if due is not None:
            self._agenda.arm(max(due, now_ms), Wake(process.name, process.incarnation))

    def wake_all(self) -> None:
        """Wakes every idle member, because something happens to the group."""
        for process in self._processes.values():
            self.wake(process)

    def wake_replaced(self) -> None:
        """Wakes idle members that are no longer at rest: a static one may have been replaced."""
        for process in self._processes.values():
            member = process.member if process.idle_since_ms is not None else None
            if member is not None and not self.is_at_rest(member):
                self.wake(process)

    def fall_silent(self, process: Process) -> None:
        """Reports the member silent since its last heartbeat."""
        member, now_ms = process.member, self._agenda.now_ms
        if member is None or not member.member_id:
            return
        due = member.next_heartbeat_ms()
        every = process.plan.config.heartbeat_interval_ms
        since = now_ms if due is None else max(due - every, 0)
        self.report_silent(member.member_id, min(since, now_ms))

    def report_silent(self, member_id: str, since_ms: int) -> None:
        """Reports a member id as silent to the coordinator; an empty id is ignored."""
        if member_id:
            self._silent.add(member_id)
            self._broker.silent(self._group_id, member_id, since_ms, self._agenda.now_ms)

    def report_heard(self, member_id: str) -> None:
        """Reports to the coordinator that a member sends heartbeats again."""
        self._silent.discard(member_id)
        self._broker.heard(self._group_id, member_id, self._agenda.now_ms)

    def repeat_reports(self) -> None:
        """Reports all silent members to a coordinator that has loaded the log."""
        for member_id in sorted(self._silent):
            self.report_silent(member_id, self._agenda.now_ms)
