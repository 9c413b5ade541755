# SPDX-License-Identifier: Apache-2.0
"""Changes groups by records: those of an append, at once, and those of the log, when it is loaded.

A group is created by the first of its records, and removed by the tombstone of its epoch. A record
replaces the hash tables of a member by new ones, so their order depends on the record only.

Errors   IllegalRecord for a record that does not fit the groups; the group can then be half
         changed, and the caller restores or drops it.
Source   GroupMetadataManager.replay, ConsumerGroupMember.Builder.updateWith,
         Assignment.fromRecord, Utils.assignmentFromTopicPartitions (Kafka 4.4.0).
"""

from dataclasses import replace
from typing import cast

from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.wire import broker_records as wire
from kafka_rebalance.wire.broker_records import BrokerRecord, RecordType

from ..broker_assigned.group import ReconciliationState
from ..broker_assigned.replay import (
    Groups,
    delete_current,
    delete_group,
    delete_member,
    delete_target_epoch,
    group_of_record,
)
from ..broker_assigned.table_order import in_copied_set, in_new_map, name_set, topic_map
from ..broker_assigned.target import Target
from .group import ConsumerGroup, ResolvedPattern
from .member import NO_PARTITIONS, ConsumerGroupMember, PartitionEpochs

_T = RecordType


def replay(groups: Groups, record: BrokerRecord) -> None:
    """Applies one record. Errors: IllegalRecord, OwnedTwice."""
    (kind, group_id, name), value = record
    group = group_of_record(groups, group_id, ConsumerGroup, creates=value is not None)
    if group is None:
        return
    match value:
        case wire.EpochValue(epoch, metadata_hash):
            group.epoch, group.metadata_hash = epoch, metadata_hash
        case wire.OldMetadataValue():
            group.has_old_metadata = True
        case wire.MemberValue():
            group.update(_with_fields(_member(group, name), value))
        case wire.TargetEpochValue(epoch, timestamp):
            group.assignment_epoch, group.assignment_timestamp_ms = epoch, timestamp
        case wire.TargetValue():
            group.targets[cast(str, name)] = _target(value)
        case wire.CurrentValue():
            group.update(_with_current(_member(group, name), value))
        case wire.PatternValue(topics, version, timestamp):
            group.resolve(cast(str, name), ResolvedPattern(name_set(topics), version, timestamp))
        case None:
            _bury(groups, group, kind, name)


def _member(group: ConsumerGroup, member_id: str | None) -> ConsumerGroupMember:
    known = group.members.get(cast(str, member_id))
    return ConsumerGroupMember(cast(str, member_id)) if known is None else known


def _with_fields(member: ConsumerGroupMember, value: wire.MemberValue) -> ConsumerGroupMember:
    return replace(
        member,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        subscribed_topic_names=name_set(value.subscribed_topic_names),
        subscribed_topic_regex=value.subscribed_topic_regex,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        server_assignor=value.server_assignor,
        classic=value.classic,
    )


def _with_current(member: ConsumerGroupMember, value: wire.CurrentValue) -> ConsumerGroupMember:
    epoch = value.member_epoch
    return replace(
        member,
        member_epoch=epoch,
        previous_member_epoch=value.previous_member_epoch,
        state=ReconciliationState(value.state),
        assigned=_partition_epochs(value.assigned, max(epoch, 0)),
        pending_revocation=_partition_epochs(value.pending_revocation, max(epoch, 0)),
    )


def _partition_epochs(topics: tuple[wire.CurrentTopic, ...], without: int) -> PartitionEpochs:
    """Returns the partitions with their epochs; `without` is for a record that has no epochs."""
    read: dict[Uuid, dict[int, int]] = {}
    for topic, partitions, epochs in topics:
        fits = epochs is not None and len(epochs) == len(partitions)
        listed = zip(partitions, epochs or (), strict=True) if fits else None
        found = dict.fromkeys(partitions, without) if listed is None else dict(listed)
        read[topic] = {partition: found[partition] for partition in in_new_map(found)}
    return {topic: read[topic] for topic in topic_map(read)}


def _target(value: wire.TargetValue) -> Target:
    read = {topic: in_copied_set(partitions) for topic, partitions in value.topics}
    return {topic: tuple(read[topic]) for topic in topic_map(read)}


def _bury(groups: Groups, group: ConsumerGroup, kind: RecordType, name: str | None) -> None:
    member_id = cast(str, name)
    if kind is _T.CONSUMER_GROUP_METADATA:
        delete_group(groups, group)
    elif kind is _T.CONSUMER_GROUP_PARTITION_METADATA:
        group.has_old_metadata = False
    elif kind is _T.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA:
        delete_target_epoch(group)
    elif kind is _T.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER:
        group.targets.pop(member_id, None)
    elif kind is _T.CONSUMER_GROUP_REGULAR_EXPRESSION:
        group.resolve(member_id, None)
    elif kind is _T.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT:
        nothing = NO_PARTITIONS
        delete_current(group, member_id, assigned=nothing, pending_revocation=nothing)
    else:
        delete_member(group, member_id)
