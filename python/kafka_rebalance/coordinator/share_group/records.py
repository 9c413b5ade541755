# SPDX-License-Identifier: Apache-2.0
"""Builds the records of share groups, in the order in which Kafka writes them.

    a join         member, [group], [targets, target metadata], [current], [share state]
    a leave        current-, target-, member-, group, [target metadata]
    a deletion     [share state]; then current- and target- of all, target metadata-, member- of
                   all, share state-, group-

A "-" marks a tombstone.

Source   GroupCoordinatorRecordHelpers, ShareGroup.createGroupTombstoneRecords (Kafka 4.4.0).
"""

from collections.abc import Mapping

from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.java.order import by_name
from kafka_rebalance.wire import broker_records as wire
from kafka_rebalance.wire.broker_records import BrokerRecord as Record
from kafka_rebalance.wire.broker_records import (
    RecordKey,
    RecordType,
    TargetTopic,
    TargetValue,
)

from ..broker_assigned.records import record_types
from ..broker_assigned.target import Target
from .group import ShareGroup, ShareGroupMember
from .share_state import StateTopics

_T = RecordType
TYPES = record_types("SHARE")
member_tombstones = TYPES.member_tombstones
target_epoch_record = TYPES.target_epoch_record


def member_record(group_id: str, member: ShareGroupMember) -> Record:
    value = wire.ShareMemberValue(
        member.rack_id,
        member.client_id,
        member.client_host,
        tuple(by_name(member.subscribed_topic_names)),
    )
    return Record(RecordKey(_T.SHARE_GROUP_MEMBER_METADATA, group_id, member.member_id), value)


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> Record:
    key = RecordKey(_T.SHARE_GROUP_METADATA, group_id)
    return Record(key, wire.ShareEpochValue(epoch, metadata_hash))


def target_record(group_id: str, member_id: str, target: Target) -> Record:
    topics = tuple(TargetTopic(topic, tuple(numbers)) for topic, numbers in target.items())
    key = RecordKey(_T.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER, group_id, member_id)
    return Record(key, TargetValue(topics))


def current_record(group_id: str, member: ShareGroupMember) -> Record:
    assigned = tuple(TargetTopic(topic, tuple(each)) for topic, each in member.assigned.items())
    value = wire.ShareCurrentValue(
        member.member_epoch, member.previous_member_epoch, member.state, assigned
    )
    key = RecordKey(_T.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT, group_id, member.member_id)
    return Record(key, value)


def share_state_record(
    group_id: str,
    initializing: StateTopics,
    initialized: StateTopics,
    deleting: Mapping[Uuid, str],
) -> Record:
    key = RecordKey(_T.SHARE_GROUP_STATE_PARTITION_METADATA, group_id)
    value = wire.ShareStateValue(
        _state_topics(initializing),
        _state_topics(initialized),
        tuple(wire.DeletingTopic(*one) for one in deleting.items()),
    )
    return Record(key, value)


def _state_topics(topics: StateTopics) -> tuple[wire.ShareStateTopic, ...]:
    return tuple(wire.ShareStateTopic(topic, *named) for topic, named in topics.items())


def group_tombstones(group: ShareGroup) -> list[Record]:
    """Returns the tombstones of a group without members, the only one that can be deleted."""
    kinds = (
        _T.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA,
        _T.SHARE_GROUP_STATE_PARTITION_METADATA,
        _T.SHARE_GROUP_METADATA,
    )
    return [Record(RecordKey(kind, group.group_id)) for kind in kinds]
