# SPDX-License-Identifier: Apache-2.0
"""Computes the targets of all members, and one member's step toward its own.

The brokers' sticky task assignor computes the targets:

1. While the initial rebalance delay runs, nobody has a target: ASSIGNMENT_DELAYED.
2. If the targets of the group's epoch exist, they are returned. In a Stable group
   (`refined`), if the member's tasks differ from its target, a new epoch keeps the old targets.
3. Within the assignment interval after the last targets, those are returned: ASSIGNMENT_DELAYED.
4. Otherwise the assignor sees the members in the order of the group's hash map, each with its
   present tasks, not with its target.

Source   GroupMetadataManager.maybeUpdateStreamsTargetAssignment, streams/TargetAssignmentBuilder,
         streams/CurrentAssignmentBuilder (Kafka 4.4.0); KIP-1071;
         docs/behaviour/streams-groups.md#3-when-targets-are-computed,
         docs/behaviour/streams-groups.md#4-reconciliation.
"""

from collections.abc import Mapping
from typing import NamedTuple

from kafka_rebalance.assignors.streams import sticky
from kafka_rebalance.errors import GroupError
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.model import Member, StreamsMember, TopicPartition
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.java.order import java_hash_order
from kafka_rebalance.wire.broker_records import BrokerRecord
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.streams_groups import StreamsStatus

from ..broker_assigned.members import RequestRefused, stepped
from ..machine.deadlines import INITIAL_REBALANCE, DeadlineKey
from ..machine.state import Shard
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
from .topology import ConfiguredTopology

NUM_STANDBY_REPLICAS = "num.standby.replicas"
MOST_TASKS = 100_000
"""The largest number of a group's active and standby tasks together; Kafka has no such limit."""


class StreamsChange(Frozen):
    """A change to a group: `member` replaces the member that has its id or instance id.

    `refined` holds the remembered targets of a Stable group that has no other reason for a new
    epoch; the epoch then grows if the member's assignment differs from its target.
    """

    group: StreamsGroup
    epoch: int
    topology: ConfiguredTopology
    configs: Mapping[str, str]
    member: StreamsGroupMember | None = None
    refined: Mapping[str, GroupTasks] | None = None


class Targets(NamedTuple):
    """Targets with their epoch, the records that store them, and a status to report, if any."""

    epoch: int
    targets: Mapping[str, GroupTasks]
    records: tuple[BrokerRecord, ...] = ()
    status: tuple[StreamsStatus, ...] = ()


def initial_key(group_id: str) -> DeadlineKey:
    return DeadlineKey(INITIAL_REBALANCE, group_id)


def targets_for(state: Shard, change: StreamsChange) -> Targets:
    """Returns the targets with which members are reconciled. Errors: RequestRefused."""
    group, group_id, epoch = change.group, change.group.group_id, change.group.assignment_epoch
    delayed = (StreamsStatus.ASSIGNMENT_DELAYED,)
    # 1.
    if state.deadlines.is_armed(initial_key(group_id)):
        return Targets(epoch, {}, status=delayed)
    # 2.
    present = _present(change)
    if epoch >= change.epoch:
        return Targets(epoch, present)
    if change.refined is not None and epoch >= group.epoch:
        record = group.target_epoch_record(change.epoch, group.assignment_timestamp_ms)
        return Targets(change.epoch, present, (record,))
    # 3.
    interval = state.config_of(group_id).group_streams_assignment_interval_ms
    if group.has_recent_targets(interval, state.now_ms):
        return Targets(epoch, present, status=delayed)
    # 4.
    member = change.member
    members = dict(group.members.items()) if member is None else group.members_with(member)
    order = java_hash_order(list(members))
    new = _computed(change, [members[one] for one in order])
    records = [
        group.target_record(member_id, new[member_id])
        for member_id in order
        if present.get(member_id) != new[member_id]
    ]
    records.append(group.target_epoch_record(change.epoch, state.now_ms))
    return Targets(change.epoch, new, tuple(records))


def _present(change: StreamsChange) -> dict[str, GroupTasks]:
    """Returns the present targets by member id; a replaced static member has its new id."""
    targets, new = dict(change.group.targets), change.member
    replaced = None if new is None else change.group.replaced_id(new)
    if new is not None and replaced in targets:
        targets[new.member_id] = targets.pop(replaced)
    return targets


def _computed(change: StreamsChange, members: list[StreamsGroupMember]) -> dict[str, GroupTasks]:
    if not change.topology.is_ready:
        return {one.member_id: NOTHING for one in members}
    try:
        group = GroupSpec(
            change.group.group_id,
            (),
            tuple(Member(one.member_id, (), streams=_seen(one)) for one in members),
            subtopologies=change.topology.subtopologies,
            num_standby_replicas=int(change.configs.get(NUM_STANDBY_REPLICAS, 0)),
            max_partitions=MOST_TASKS,
        )
        answer = sticky.assign(group)
    except GroupError as error:
        raise RequestRefused(ErrorCode.STREAMS_INVALID_TOPOLOGY) from error
    active, standby = answer.active, answer.standby
    ids = [one.member_id for one in members]
    return {one: GroupTasks(frozenset(active[one]), frozenset(standby[one])) for one in ids}


def _seen(member: StreamsGroupMember) -> StreamsMember:
    """Returns a member as the assignor sees it."""
    active, standby, _ = member.assigned
    return StreamsMember(
        member.process_id,
        tuple(TopicPartition(*task) for task in active),
        tuple(TopicPartition(*task) for task in standby),
    )


# Reconciliation -----------------------------------------------------------------------------------


class TaskReconciliation(Frozen):
    """Moves one member toward its target, in the three roles of tasks.

    1. If a member is STABLE in the target's epoch, or UNREVOKED_TASKS with a pending task that it
       has not given up, it stays as it is. If it has given up all of them, step 3 counts its epoch
       as one larger.
    2. Changes of role within the member are made at once: an active task becomes a standby task, a
       standby task a warm-up, or a warm-up a standby task. The old role is not revoked, unless it
       is the active one. A standby task or warm-up that becomes active is kept until the active
       task is granted; a step that revokes grants none.
    3. If tasks are revoked that the member has not given up already, it is UNREVOKED_TASKS in its
       old epoch, and gets nothing new. Otherwise it enters the target's epoch with the kept and the
       added tasks: UNRELEASED_TASKS if a task of the target is not free, else STABLE.

    `owned` is None if the member did not report its tasks.
    """

    group: StreamsGroup
    target_epoch: int
    target: GroupTasks
    owned: GroupTasks | None

    def next(self, member: StreamsGroupMember) -> StreamsGroupMember:
        """Returns the changed member. Errors: RequestRefused if UNKNOWN, unless it owns nothing."""
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
