# SPDX-License-Identifier: Apache-2.0
"""Builds the records of streams groups, in the order in which Kafka writes them.

    a join         member, [topology], [group], [targets, target metadata], [current]
    a leave        current-, target-, member-, group, [target metadata]
    a deletion     target metadata-, group-, topology-; the group is empty

A "-" marks a tombstone. Tasks are sorted by subtopology and partition.

Source   StreamsCoordinatorRecordHelpers, StreamsGroup.createGroupTombstoneRecords (Kafka 4.4.0).
"""

from collections.abc import Collection, Mapping

from kafka_rebalance.java.order import name_key
from kafka_rebalance.wire import broker_records as wire
from kafka_rebalance.wire.broker_records import BrokerRecord as Record
from kafka_rebalance.wire.broker_records import RecordKey, RecordType, Role
from kafka_rebalance.wire.streams_topology import KeyValue, StreamsTopology

from ..broker_assigned.records import record_types
from .group import StreamsGroup
from .member import StreamsGroupMember
from .tasks import GroupTasks, Task, task_list

_T = RecordType
TYPES = record_types("STREAMS")
member_tombstones = TYPES.member_tombstones
target_epoch_record = TYPES.target_epoch_record


def member_record(group_id: str, member: StreamsGroupMember) -> Record:
    value = wire.StreamsMemberValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=member.user_endpoint,
        client_tags=_sorted(member.client_tags),
    )
    return Record(RecordKey(_T.STREAMS_GROUP_MEMBER_METADATA, group_id, member.member_id), value)


def epoch_record(
    group: StreamsGroup,
    epoch: int,
    metadata_hash: int,
    validated_topology_epoch: int,
    configs: Mapping[str, str],
) -> Record:
    value = wire.StreamsEpochValue(
        epoch, metadata_hash, validated_topology_epoch, _sorted(configs), *group.description_epochs
    )
    return Record(RecordKey(_T.STREAMS_GROUP_METADATA, group.group_id), value)


def _sorted(strings: Mapping[str, str]) -> tuple[KeyValue, ...]:
    return tuple(KeyValue(name, strings[name]) for name in sorted(strings, key=name_key))


def topology_record(group_id: str, topology: StreamsTopology) -> Record:
    return Record(RecordKey(_T.STREAMS_GROUP_TOPOLOGY, group_id), topology)


def target_record(group_id: str, member_id: str, target: GroupTasks) -> Record:
    key = RecordKey(_T.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER, group_id, member_id)
    return Record(key, wire.StreamsTargetValue(*map(_role, target)))


def current_record(group_id: str, member: StreamsGroupMember) -> Record:
    assigned, pending = member.assigned, member.pending_revocation
    value = wire.StreamsCurrentValue(
        member.member_epoch,
        member.previous_member_epoch,
        member.state,
        _active(assigned.active),
        _role(assigned.standby),
        _role(assigned.warmup),
        _active(pending.active),
        _role(pending.standby),
        _role(pending.warmup),
    )
    key = RecordKey(_T.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT, group_id, member.member_id)
    return Record(key, value)


def _role(tasks: Collection[Task]) -> Role:
    return tuple(wire.TaskIds(*one) for one in task_list(tasks))


def _active(epochs: Mapping[Task, int]) -> Role:
    return tuple(
        wire.TaskIds(name, numbers, tuple(epochs[name, number] for number in numbers))
        for name, numbers in task_list(epochs)
    )


def group_tombstones(group: StreamsGroup) -> list[Record]:
    """Returns the tombstones of a group, which has no members."""
    kinds = (
        _T.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA,
        _T.STREAMS_GROUP_METADATA,
        _T.STREAMS_GROUP_TOPOLOGY,
    )
    return [Record(RecordKey(kind, group.group_id)) for kind in kinds]
