# SPDX-License-Identifier: Apache-2.0
"""Idle and silent members: why a group at rest costs nothing.

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
    """Getters: is_silent, is_at_rest. Inputs: wake, wake_all, wake_replaced; report_*, fall_silent.

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
        """Whether heartbeats would change nothing: the member is in a Stable group's generation."""
        group = self._broker.coordinator.groups().get(self._group_id)
        return (
            member.is_idle()
            and group is not None
            and group.is_(GroupState.STABLE)
            and group.generation_id == member.generation_id
            and group.has(member.member_id)
        )

    def wake(self, process: Process) -> None:
        """Something happens to a process: an idle member was healthy until now."""
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
        """Something happens to the group: wakes every idle member."""
        for process in self._processes.values():
            self.wake(process)

    def wake_replaced(self) -> None:
        """Wakes idle members that are no longer at rest: a new static member may replace one."""
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
        """Reports a member id silent to the coordinator; an empty id is none."""
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
