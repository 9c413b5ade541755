# SPDX-License-Identifier: Apache-2.0
"""Turns a classic group into a consumer group, and back.

An upgrade makes the generation the epoch of the group and of each member, and turns the assignments
into targets; a downgrade does the reverse. An upgrade is refused with GROUP_ID_NOT_FOUND if the
policy forbids it, if the group's members are not consumers or are too many, if an assignment
contains user data, or if the members' bytes cannot be decoded.

Source   GroupMetadataManager.convertToConsumerGroup, convertToClassicGroup,
         ConsumerGroup.fromClassicGroup, ClassicGroup.fromConsumerGroup (Kafka 4.4.0);
         docs/behaviour/consumer-groups.md#9-classic-members-and-migration.
"""

from collections.abc import Iterable

from kafka_rebalance.errors import WireError
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.java.order import java_hash_order
from kafka_rebalance.wire import consumer_protocol as wire
from kafka_rebalance.wire.broker_records import ClassicMetadata
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import GroupState, common_fields

from ..broker_assigned import log
from ..broker_assigned.group import OwnedTwice
from ..broker_assigned.members import RequestRefused, arm_session
from ..broker_assigned.table_order import by_topic_id, in_copied_set, in_new_map, name_set
from ..broker_assigned.target import Target
from ..classic_group.group import CONSUMER, ClassicGroupMember, Group, group_record, group_tombstone
from ..classic_group.rebalance import prepare
from ..machine.cluster import ClusterTopics
from ..machine.events import Continuation
from ..machine.state import Shard
from .group import ConsumerGroup, ConsumerGroupMember


def upgrade(state: Shard, classic: Group, records: log.Records) -> ConsumerGroup:
    """Returns a consumer group with a classic group's members. Errors: RequestRefused."""
    config = state.config
    if (
        not config.allows_upgrades
        or classic.protocol_type != CONSUMER
        or len(classic.members) > config.group_consumer_max_size
    ):
        raise RequestRefused(ErrorCode.GROUP_ID_NOT_FOUND)
    for member in classic.members.values():
        rejoin = ErrorCode.REBALANCE_IN_PROGRESS
        state.refuse_parked(classic, member, rejoin, member.member_id)
    new = _consumer_group(classic, state.cluster)
    records.append(group_tombstone(classic.group_id))
    records += new.all_records()
    for one in new.members.values():
        if one.classic is not None:
            arm_session(state, new.group_id, one.member_id, one.classic.session_timeout_ms)
    return new


def _consumer_group(group: Group, cluster: ClusterTopics) -> ConsumerGroup:
    if group.members and group.protocol_name is None:  # Kafka finds no metadata, and fails
        raise RequestRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
    epoch = group.generation_id
    new = ConsumerGroup(group.group_id, epoch=epoch, assignment_epoch=epoch)
    try:
        for member_id in java_hash_order(list(group.members)):
            member = group.members[member_id]
            target = _assigned(member, cluster)
            new.targets[member_id] = target
            new.update(_consumer_member(member, group.protocol_name, epoch, target))
    except OwnedTwice as error:
        raise RequestRefused(ErrorCode.UNKNOWN_SERVER_ERROR) from error
    except WireError as error:
        raise RequestRefused(ErrorCode.GROUP_ID_NOT_FOUND) from error
    new.metadata_hash = cluster.hash_of(new.counts)
    return new


def _assigned(member: ClassicGroupMember, cluster: ClusterTopics) -> Target:
    if not member.assignment:
        return {}
    data = wire.decode_assignment(member.assignment)
    if data.user_data:
        raise RequestRefused(ErrorCode.GROUP_ID_NOT_FOUND)
    found = {
        cluster.topics[topic].topic_id: tuple(in_copied_set(numbers))
        for topic, numbers in wire.by_topic(data.partitions).items()
        if topic in cluster.topics
    }
    return by_topic_id(found)


def _consumer_member(
    member: ClassicGroupMember, protocol_name: str | None, epoch: int, target: Target
) -> ConsumerGroupMember:
    if protocol_name not in dict(member.protocols):  # rejoined without this protocol: Kafka fails
        raise RequestRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
    subscription = wire.decode_subscription(member.metadata(protocol_name))
    return ConsumerGroupMember(
        **common_fields(member, ConsumerGroupMember),
        member_epoch=epoch,
        previous_member_epoch=epoch,
        instance_id=member.group_instance_id,
        rack_id=subscription.rack_id or None,
        subscribed_topic_names=name_set(subscription.topics),
        assigned={
            topic: dict.fromkeys(in_new_map(numbers), epoch) for topic, numbers in target.items()
        },
        classic=ClassicMetadata(member.session_timeout_ms, member.protocols),
    )


def can_downgrade(
    state: Shard, group: ConsumerGroup, leaving: Iterable[ConsumerGroupMember]
) -> bool:
    """Returns whether the group becomes a classic group when these members leave."""
    gone = list(leaving)
    left = len(group.members) - len(gone)
    classic = group.num_classic_members - sum(one.classic is not None for one in gone)
    return classic == left > 0 and _may_downgrade(state, left)


def can_downgrade_with(state: Shard, group: ConsumerGroup, replaced: ConsumerGroupMember) -> bool:
    """Returns whether the group becomes a classic group when a classic member replaces this one."""
    others = len(group.members) - 1
    is_last = replaced.classic is None and group.num_classic_members == others
    return is_last and _may_downgrade(state, len(group.members))


def _may_downgrade(state: Shard, size: int) -> bool:
    return state.config.allows_downgrades and size <= state.config.group_max_size


def downgrade(
    state: Shard,
    group: ConsumerGroup,
    leaving: Iterable[ConsumerGroupMember],
    then: Continuation | None,
    *,
    joining: ConsumerGroupMember | None = None,
    records: log.Records | None = None,
    rebalances: bool = True,
) -> None:
    """Makes a classic group from the members that do not leave, and from `joining`, if any."""
    gone = {one.member_id for one in leaving}
    members = {one.member_id: one for one in group.members.values() if one.member_id not in gone}
    targets = {member_id: group.targets.get(member_id, {}) for member_id in members}
    renamed = {}
    if joining is not None:
        (old_id,) = gone
        members[joining.member_id] = joining
        targets[joining.member_id] = group.targets.get(old_id, {})
        renamed[old_id] = joining.member_id
    new = Group(
        group.group_id,
        state.now_ms,
        state=GroupState.STABLE,
        generation_id=group.epoch,
        protocol_type=CONSUMER,
    )
    for one in members.values():
        _add(new, one)
    new.protocol_name = new.select_protocol()
    new.find_subscribed_topics()
    for member in new.members.values():
        metadata = member.metadata(new.protocol_name)
        member.assignment = encode_partitions(targets[member.member_id], metadata, state.cluster)
    assignment = {one.member_id: one.assignment for one in new.members.values()}
    written = [*(records or ()), *group.tombstones(renamed), group_record(new, assignment)]
    log.replace_group(state, new)
    for member in new.members.values():
        state.renew_session(new, member)
    if rebalances:
        prepare(state, new)
    log.append_replacement(state, new, written, then)


def _add(group: Group, member: ConsumerGroupMember) -> None:
    assert member.classic is not None  # only classic members remain
    classic = ClassicGroupMember(
        **common_fields(member, ClassicGroupMember),
        group_instance_id=member.instance_id,
        session_timeout_ms=member.classic.session_timeout_ms,
        protocol_type=CONSUMER,
        protocols=member.classic.protocols,
    )
    group.add(classic)


def encode_partitions(target: Target, metadata: bytes, cluster: ClusterTopics) -> bytes:
    """Returns a classic member's assignment as bytes, in the version of its `metadata`."""
    partitions = tuple(
        TopicPartition(cluster.by_id[topic].name, partition)
        for topic, numbers in target.items()
        if topic in cluster.by_id
        for partition in numbers
    )
    version = min(int.from_bytes(metadata[:2], "big"), wire.HIGHEST_VERSION)
    return wire.encode_assignment(wire.AssignmentData(partitions, None, version))
