# SPDX-License-Identifier: Apache-2.0
"""Builds the records of consumer groups, in the order in which Kafka writes them.

    a join         member, [group], [targets, target metadata], [current]
    a leave        current-, target-, member-, [pattern-], group, [target metadata]
    a deletion     current- and target- of all, target metadata-, member- of all, pattern-, old
                   metadata-, group-

A "-" marks a tombstone.

Source   GroupCoordinatorRecordHelpers, ConsumerGroup.createGroupTombstoneRecords (Kafka 4.4.0).
"""

from collections.abc import Mapping

from kafka_rebalance.java.order import by_name
from kafka_rebalance.wire import broker_records as wire
from kafka_rebalance.wire.broker_records import BrokerRecord as Record
from kafka_rebalance.wire.broker_records import RecordKey, RecordType

from ..broker_assigned.records import record_types
from ..broker_assigned.target import Target
from .group import ConsumerGroup, ResolvedPattern
from .member import ConsumerGroupMember, PartitionEpochs

_T = RecordType
TYPES = record_types("CONSUMER")
member_tombstones = TYPES.member_tombstones
target_epoch_record = TYPES.target_epoch_record


def member_record(group_id: str, member: ConsumerGroupMember) -> Record:
    value = wire.MemberValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(by_name(member.subscribed_topic_names)),
        subscribed_topic_regex=member.subscribed_topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic=member.classic,
    )
    key = RecordKey(_T.CONSUMER_GROUP_MEMBER_METADATA, group_id, member.member_id)
    return Record(key, value)


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> Record:
    key = RecordKey(_T.CONSUMER_GROUP_METADATA, group_id)
    return Record(key, wire.EpochValue(epoch, metadata_hash))


def target_record(group_id: str, member_id: str, target: Target) -> Record:
    topics = tuple(wire.TargetTopic(topic, tuple(numbers)) for topic, numbers in target.items())
    key = RecordKey(_T.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER, group_id, member_id)
    return Record(key, wire.TargetValue(topics))


def current_record(group_id: str, member: ConsumerGroupMember) -> Record:
    value = wire.CurrentValue(
        member.member_epoch,
        member.previous_member_epoch,
        member.state,
        _current_topics(member.assigned),
        _current_topics(member.pending_revocation),
    )
    key = RecordKey(_T.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT, group_id, member.member_id)
    return Record(key, value)


def _current_topics(partitions: PartitionEpochs) -> tuple[wire.CurrentTopic, ...]:
    return tuple(
        wire.CurrentTopic(topic, tuple(epochs), tuple(epochs.values()))
        for topic, epochs in partitions.items()
    )


def pattern_record(group_id: str, pattern: str, resolved: ResolvedPattern) -> Record:
    topics = tuple(by_name(resolved.topics))
    value = wire.PatternValue(topics, resolved.version, resolved.timestamp_ms)
    return Record(RecordKey(_T.CONSUMER_GROUP_REGULAR_EXPRESSION, group_id, pattern), value)


def pattern_tombstone(group_id: str, pattern: str) -> Record:
    return Record(RecordKey(_T.CONSUMER_GROUP_REGULAR_EXPRESSION, group_id, pattern))


def old_metadata_tombstone(group_id: str) -> Record:
    return Record(RecordKey(_T.CONSUMER_GROUP_PARTITION_METADATA, group_id))


def group_tombstones(
    group: ConsumerGroup, renamed: Mapping[str, str] | None = None
) -> list[Record]:
    """Returns the tombstones of the whole group; `renamed` replaces a member id by a newer id."""
    group_id, new_ids = group.group_id, renamed or {}
    current, target, member = TYPES.current, TYPES.target, TYPES.member
    ids = [new_ids.get(member_id, member_id) for member_id in group.members]

    def of_all(kind: RecordType) -> list[Record]:
        return [Record(RecordKey(kind, group_id, member_id)) for member_id in ids]

    return [
        *of_all(current),
        *of_all(target),
        Record(RecordKey(_T.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA, group_id)),
        *of_all(member),
        *(pattern_tombstone(group_id, pattern) for pattern in group.resolved),
        old_metadata_tombstone(group_id),
        Record(RecordKey(_T.CONSUMER_GROUP_METADATA, group_id)),
    ]


def group_records(group: ConsumerGroup) -> list[Record]:
    """Returns the records of a whole group that was a classic group before."""
    group_id, members = group.group_id, group.members.values()
    return [
        *(member_record(group_id, one) for one in members),
        epoch_record(group_id, group.epoch, group.metadata_hash),
        *(target_record(group_id, one.member_id, group.targets[one.member_id]) for one in members),
        target_epoch_record(group_id, group.assignment_epoch, group.assignment_timestamp_ms),
        *(current_record(group_id, one) for one in members),
    ]
