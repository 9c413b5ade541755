# SPDX-License-Identifier: Apache-2.0
"""Finds the member of a request, or refuses the request.

    dynamic, unknown, and it does not join          UNKNOWN_MEMBER_ID
    static, joins, and the instance id is in use    UNRELEASED_INSTANCE_ID
    static, the instance id is unknown              UNKNOWN_MEMBER_ID
    static, another member has the instance id      FENCED_INSTANCE_ID
    a larger epoch than the member's                FENCED_MEMBER_EPOCH
    a smaller epoch                                 FENCED_MEMBER_EPOCH, unless it is the member's
                                                    previous one and the member owns nothing else
                                                    than what is assigned to it

An instance id is free for a new member id after its member has left with epoch -2. The new member
gets the fields, the target and the partitions of the old one.

Source   GroupMetadataManager.getOrMaybeSubscribe…ConsumerGroupMember, replaceMember,
         throwIfConsumerGroupMemberEpochIsInvalid (Kafka 4.4.0); KIP-345.
"""

from dataclasses import replace
from functools import partial

from kafka_rebalance.wire.broker_groups import (
    JOIN_EPOCH,
    LEAVE_STATIC_EPOCH,
    ConsumerGroupHeartbeat,
)
from kafka_rebalance.wire.error_codes import ErrorCode

from ..broker_assigned import log
from ..broker_assigned.members import RequestRefused, check_epoch, known_member, known_static
from ..broker_assigned.target import NO_TARGET
from .group import ConsumerGroup
from .member import ConsumerGroupMember
from .records import current_record, member_record, member_tombstones, target_record


def find_dynamic(group: ConsumerGroup, request: ConsumerGroupHeartbeat) -> ConsumerGroupMember:
    if request.member_epoch == JOIN_EPOCH:
        known = group.members.get(request.member_id)
        return ConsumerGroupMember(request.member_id) if known is None else known
    member = known_member(group, request.member_id)
    _check_epoch(member, request)
    return member


def find_static(
    group: ConsumerGroup, request: ConsumerGroupHeartbeat, records: log.Records
) -> ConsumerGroupMember:
    instance_id = request.instance_id or ""
    if request.member_epoch == JOIN_EPOCH:
        holder = group.static_member(instance_id)
        if holder is None:
            return find_dynamic(group, request)
        if holder.classic is None and holder.member_epoch != LEAVE_STATIC_EPOCH:
            raise RequestRefused(ErrorCode.UNRELEASED_INSTANCE_ID)
        return take_over(group, holder, request.member_id, records)
    member = known_static(group, request.member_id, instance_id)
    _check_epoch(member, request)
    return member


def take_over(
    group: ConsumerGroup, holder: ConsumerGroupMember, member_id: str, records: log.Records
) -> ConsumerGroupMember:
    """Replaces the holder of an instance id by a member with the new id, in epoch 0."""
    group_id = group.group_id
    member = replace(
        holder, member_id=member_id, member_epoch=JOIN_EPOCH, previous_member_epoch=JOIN_EPOCH
    )
    target = group.targets.get(holder.member_id, NO_TARGET)
    records += member_tombstones(group_id, holder.member_id)
    records.append(member_record(group_id, member))
    records.append(target_record(group_id, member_id, target))
    records.append(current_record(group_id, member))
    return member


def _check_epoch(member: ConsumerGroupMember, request: ConsumerGroupHeartbeat) -> None:
    check_epoch(member, request.member_epoch, partial(_owns_only_assigned, member, request))


def _owns_only_assigned(member: ConsumerGroupMember, request: ConsumerGroupHeartbeat) -> bool:
    return request.topic_partitions is not None and all(
        topic in member.assigned and member.assigned[topic].keys() >= set(partitions)
        for topic, partitions in request.topic_partitions
    )
