# SPDX-License-Identifier: Apache-2.0
"""Changes share groups by records: those of an append, at once, and those of a log that is loaded.

A group is created by the first of its records, and removed by the tombstone of its epoch.

Errors   IllegalRecord for a record that does not fit the groups; the group can then be half
         changed, and the caller restores or drops it.
Source   GroupMetadataManager.replay, ShareGroupMember.Builder.updateWith, Assignment.fromRecord
         (Kafka 4.4.0).
"""

from dataclasses import replace
from typing import cast

from kafka_rebalance.java.hash_map import HashMap, HashSet, Uuid, uuid_hash
from kafka_rebalance.wire import broker_records as wire
from kafka_rebalance.wire.broker_records import (
    BrokerRecord,
    RecordType,
    TargetEpochValue,
    TargetTopic,
    TargetValue,
)

from ..broker_assigned.group import IllegalRecord, ReconciliationState
from ..broker_assigned.replay import (
    Groups,
    delete_current,
    delete_group,
    delete_member,
    delete_target_epoch,
)
from ..broker_assigned.table_order import in_copied_set, name_set, topic_map
from .group import ShareGroup, ShareGroupMember
from .share_state import NamedPartitions, ShareState, StateTopics

_T = RecordType


def replay_share(groups: Groups, record: BrokerRecord, now_ms: int) -> None:
    """Applies one record at a time. Errors: IllegalRecord."""
    (kind, group_id, name), value = record
    group = _group(groups, group_id, creates=value is not None)
    if group is None:
        return
    member_id = cast(str, name)
    match value:
        case wire.ShareEpochValue(epoch, metadata_hash):
            group.epoch, group.metadata_hash = epoch, metadata_hash
        case wire.ShareMemberValue():
            group.update(_with_fields(group.member(member_id), value))
        case TargetEpochValue(epoch, timestamp):
            group.assignment_epoch, group.assignment_timestamp_ms = epoch, timestamp
        case TargetValue(topics):
            group.targets[member_id] = {t: tuple(each) for t, each in _partitions(topics).items()}
        case wire.ShareCurrentValue():
            group.update(_with_current(group.member(member_id), value))
        case wire.ShareStateValue():
            group.share_state = _share_state(value, now_ms)
        case None:
            _bury(groups, group, kind, member_id)


def _group(groups: Groups, group_id: str, *, creates: bool) -> ShareGroup | None:
    group = groups.get(group_id)
    if isinstance(group, ShareGroup):
        return group
    if group is not None:
        raise IllegalRecord(f"group {group_id!r} is not a share group")
    if not creates:
        return None
    new = groups[group_id] = ShareGroup(group_id)
    return new


def _with_fields(member: ShareGroupMember, value: wire.ShareMemberValue) -> ShareGroupMember:
    return replace(
        member,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        subscribed_topic_names=name_set(value.subscribed_topic_names),
    )


def _with_current(member: ShareGroupMember, value: wire.ShareCurrentValue) -> ShareGroupMember:
    return replace(
        member,
        member_epoch=value.member_epoch,
        previous_member_epoch=value.previous_member_epoch,
        state=ReconciliationState(value.state),
        assigned={t: dict.fromkeys(each) for t, each in _partitions(value.assigned).items()},
    )


def _partitions(topics: tuple[TargetTopic, ...]) -> dict[Uuid, list[int]]:
    read = {topic: in_copied_set(partitions) for topic, partitions in topics}
    return {topic: read[topic] for topic in topic_map(read)}


def _share_state(value: wire.ShareStateValue, now_ms: int) -> ShareState:
    deleting = HashSet[Uuid](uuid_hash)
    for topic, _ in value.deleting:
        deleting.add(topic)
    initializing, initialized = _state_topics(value.initializing), _state_topics(value.initialized)
    return ShareState(initializing, initialized, tuple(deleting), now_ms)


def _state_topics(topics: tuple[wire.ShareStateTopic, ...]) -> StateTopics:
    table = HashMap[Uuid, NamedPartitions](uuid_hash)
    for topic, name, partitions in topics:
        table.put(topic, NamedPartitions(name, tuple(in_copied_set(partitions))))
    return dict(table.items())


def _bury(groups: Groups, group: ShareGroup, kind: RecordType, member_id: str) -> None:
    if kind is _T.SHARE_GROUP_METADATA:
        delete_group(groups, group)
    elif kind is _T.SHARE_GROUP_STATE_PARTITION_METADATA:
        group.share_state = None
    elif kind is _T.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA:
        delete_target_epoch(group)
    elif kind is _T.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER:
        group.targets.pop(member_id, None)
    elif kind is _T.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT:
        delete_current(group, member_id, assigned={})
    else:
        delete_member(group, member_id)
