# SPDX-License-Identifier: Apache-2.0
"""Moves one member toward its target, at its heartbeat, in the three roles of tasks.

1. If a member is STABLE in the target's epoch, or UNREVOKED_TASKS with a pending task that it has
   not given up, it stays as it is. If it has given up all of them, step 3 counts its epoch as one
   larger.
2. Changes of role within the member are made at once: an active task becomes a standby task, a
   standby task a warm-up, or a warm-up a standby task. The old role is not revoked, unless it is
   the active one. A standby task or warm-up that becomes active is kept until the active task is
   granted; a step that revokes grants none.
3. If tasks are revoked that the member has not given up already, it is UNREVOKED_TASKS in its old
   epoch, and gets nothing new. Otherwise it enters the target's epoch with the kept and the added
   tasks: UNRELEASED_TASKS if a task of the target is not free, else STABLE.

Source   streams/CurrentAssignmentBuilder (Kafka 4.4.0); KIP-1071;
         docs/behaviour/streams-groups.md#4-reconciliation.
"""

from kafka_rebalance.frozen import Frozen
from kafka_rebalance.wire.error_codes import ErrorCode

from ..broker_assigned.members import RequestRefused, stepped
from .group import (
    NOTHING,
    NOTHING_ASSIGNED,
    GroupTasks,
    MemberTasks,
    Owners,
    StreamsGroup,
    StreamsGroupMember,
    Task,
    TasksState,
    has_one_of,
)


class TaskReconciliation(Frozen):
    """The inputs of a member's reconciliation. `owned` is None if it did not report its tasks."""

    group: StreamsGroup
    target_epoch: int
    target: GroupTasks
    owned: GroupTasks | None

    def next(self, member: StreamsGroupMember) -> StreamsGroupMember:
        """Returns the member's next state. Errors: RequestRefused for an UNKNOWN state."""
        # 1.
        epoch = member.member_epoch
        if member.state is TasksState.STABLE and epoch == self.target_epoch:
            return member
        if member.state is TasksState.UNREVOKED_TASKS:
            if self._has_one_of(member.pending_revocation):
                return member
            epoch += 1
        if member.state is TasksState.UNKNOWN:
            if self.owned is None or self.owned != NOTHING:
                raise RequestRefused(ErrorCode.FENCED_MEMBER_EPOCH)
            epoch = self.target_epoch
        return self._computed(member, epoch)

    def _has_one_of(self, tasks: MemberTasks) -> bool:
        """Returns whether the member has one of the tasks, or did not report its tasks."""
        return self.owned is None or has_one_of(self.owned, tasks)

    def _computed(self, member: StreamsGroupMember, epoch: int) -> StreamsGroupMember:
        had, target = member.assigned, self.target
        new = [
            {task for task in wanted if task not in owned}
            for wanted, owned in zip(target, had, strict=True)
        ]
        added = [
            {task for task in new[0] if self._is_free_to_run(member, task)},
            {task for task in new[1] if self._is_free_to_keep(member, task, is_warmup=False)},
            {task for task in new[2] if self._is_free_to_keep(member, task, is_warmup=True)},
        ]
        is_unreleased = added != new
        active = {task: since for task, since in had.active.items() if task in target.active}
        standby, warmup = had.standby & target.standby, had.warmup & target.warmup
        # 2.
        demoted = added[1] & had.active.keys()
        to_warmup, to_standby = added[2] & had.standby, (added[1] - demoted) & had.warmup
        standby |= demoted | to_standby
        warmup |= to_warmup
        added[1] -= demoted | to_standby
        added[2] -= to_warmup
        revoked = MemberTasks(
            {task: since for task, since in had.active.items() if task not in target.active},
            had.standby - target.standby - to_warmup - target.active,
            had.warmup - target.warmup - to_standby - target.active,
        )
        # 3.
        is_revoking = not revoked.is_empty and self._has_one_of(revoked)
        granted = frozenset[Task]() if is_revoking else frozenset(added[0])
        standby |= (had.standby & target.active) - granted
        warmup |= (had.warmup & target.active) - granted
        if is_revoking:
            kept = MemberTasks(active, standby, warmup)
            return stepped(member, TasksState.UNREVOKED_TASKS, epoch, kept, revoked)
        active |= dict.fromkeys(added[0], self.target_epoch)
        state = TasksState.UNRELEASED_TASKS if is_unreleased else TasksState.STABLE
        has = MemberTasks(active, standby | added[1], warmup | added[2])
        return stepped(member, state, self.target_epoch, has, NOTHING_ASSIGNED)

    def _is_free_to_run(self, member: StreamsGroupMember, task: Task) -> bool:
        group, process_id = self.group, member.process_id
        return (
            task not in group.active
            and not _has_another(group.standby, member.assigned.standby, task, process_id)
            and not _has_another(group.warmup, member.assigned.warmup, task, process_id)
        )

    def _is_free_to_keep(self, member: StreamsGroupMember, task: Task, *, is_warmup: bool) -> bool:
        group, process_id, had = self.group, member.process_id, member.assigned
        runs = group.active.get(task) == process_id
        if is_warmup:
            return (
                not runs
                and not _has_another(group.standby, had.standby, task, process_id)
                and process_id not in group.warmup.get(task, ())
            )
        return (
            not (runs and task not in had.active)
            and process_id not in group.standby.get(task, ())
            and not _has_another(group.warmup, had.warmup, task, process_id)
        )


def _has_another(owners: Owners, own: frozenset[Task], task: Task, process_id: str) -> bool:
    """Returns whether another member of the process has the task in this role."""
    return process_id in owners.get(task, ()) and task not in own
