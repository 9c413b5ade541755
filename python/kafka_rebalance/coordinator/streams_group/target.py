# SPDX-License-Identifier: Apache-2.0
"""Computes the targets of all members with the brokers' sticky task assignor.

1. While the initial rebalance delay runs, nobody has a target: ASSIGNMENT_DELAYED.
2. If the targets of the group's epoch exist, they are returned. If the remembered target
   (`refined`) differs from the member's present one, a new epoch begins with unchanged targets.
3. Within the assignment interval after the last targets, those are returned: ASSIGNMENT_DELAYED.
4. Otherwise the assignor sees the members in the order of the group's hash map, each with its
   present tasks, not with its target.

Source   GroupMetadataManager.maybeUpdateStreamsTargetAssignment, streams/TargetAssignmentBuilder
         (Kafka 4.4.0); docs/behaviour/streams-groups.md#3-when-targets-are-computed.
"""

from collections.abc import Iterable, Mapping
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

from ..broker_assigned.members import RequestRefused
from ..machine.deadlines import INITIAL_REBALANCE, DeadlineKey
from ..machine.state import Shard
from .group import NOTHING, RECORDS, GroupTasks, StreamsGroup, StreamsGroupMember, Task
from .topology import ConfiguredTopology

NUM_STANDBY_REPLICAS = "num.standby.replicas"
MOST_TASKS = 100_000
"""The largest number of a group's active and standby tasks together; Kafka has no such limit."""


class StreamsChange(Frozen):
    """A change of a group: `member` replaces the member that has its id or instance id.

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
    """Targets with their epoch, the records that store them, and a status."""

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
        record = RECORDS.target_epoch_record(group_id, change.epoch, group.assignment_timestamp_ms)
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
        RECORDS.target_record(group_id, member_id, new[member_id])
        for member_id in order
        if present.get(member_id) != new[member_id]
    ]
    records.append(RECORDS.target_epoch_record(group_id, change.epoch, state.now_ms))
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
    return {
        one.member_id: GroupTasks(
            _task_set(answer.active[one.member_id]), _task_set(answer.standby[one.member_id])
        )
        for one in members
    }


def _task_set(tasks: Iterable[TopicPartition]) -> frozenset[Task]:
    return frozenset((one.topic, one.partition) for one in tasks)


def _seen(member: StreamsGroupMember) -> StreamsMember:
    """Returns a member as the assignor sees it."""
    active, standby, _ = member.assigned
    return StreamsMember(
        member.process_id,
        tuple(TopicPartition(*task) for task in active),
        tuple(TopicPartition(*task) for task in standby),
    )
