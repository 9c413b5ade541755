# SPDX-License-Identifier: Apache-2.0
"""Members of a consumer group that use the classic protocol: JoinGroup, SyncGroup, Heartbeat, …

A JoinGroup is answered at once: the generation is the member's epoch, and no member leads. The
owned partitions in the subscription acknowledge revocations. A heartbeat is answered with
REBALANCE_IN_PROGRESS if the member's epoch is old, if it has partitions to give up, or if a
partition that it waits for is free. A LeaveGroup starts one new epoch, even if it lists several
members.

Source   GroupMetadataManager.classicGroup…ToConsumerGroup (Kafka 4.4.0).
"""

from dataclasses import replace
from typing import Any

from kafka_rebalance.errors import WireError
from kafka_rebalance.wire import classic_groups as wire
from kafka_rebalance.wire.broker_groups import TopicPartitions
from kafka_rebalance.wire.broker_records import ClassicMetadata
from kafka_rebalance.wire.consumer_protocol import Subscription, by_topic, decode_subscription
from kafka_rebalance.wire.error_codes import ErrorCode

from ..broker_assigned import log
from ..broker_assigned.group import ReconciliationState
from ..broker_assigned.kind import BrokerAssigned
from ..broker_assigned.members import RequestRefused, arm_session, known_member, updated
from ..broker_assigned.table_order import in_copied_set, name_set
from ..broker_assigned.target import NO_TARGET, EpochChange
from ..classic_group.group import CONSUMER, without_repeats
from ..classic_group.join_group import REQUIRES_KNOWN_ID, version_of
from ..machine.cluster import ClusterTopics
from ..machine.deadlines import JOIN, SESSION, SYNC, DeadlineKey
from ..machine.events import Answer, Received
from ..machine.state import Shard
from . import patterns
from .group import ConsumerGroup, ConsumerGroupMember
from .heartbeat import Owned, next_epoch, one_step, reconciled
from .migration import can_downgrade_with, downgrade, encode_partitions
from .patterns import PatternChange


def join_group(
    kind: BrokerAssigned,
    state: Shard,
    event: Received,
    request: wire.JoinGroup,
    group: ConsumerGroup,
) -> None:
    """Handles a JoinGroup. Errors: RequestRefused."""
    if state.config.group_consumer_migration_policy == "disabled":
        raise RequestRefused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    request = replace(request, protocols=without_repeats(request.protocols))
    is_unknown = request.member_id == wire.UNKNOWN_MEMBER
    member_id = state.new_member_id() if is_unknown else request.member_id
    kind.check_room(state, group, member_id, request.group_instance_id)
    names = [one.name for one in request.protocols]
    if request.protocol_type != CONSUMER or not group.supports(names):
        raise RequestRefused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    version = version_of(event)
    if version == 0:
        request = replace(request, rebalance_timeout_ms=request.session_timeout_ms)
    if is_unknown and request.group_instance_id is None and version >= REQUIRES_KNOWN_ID:
        required = wire.JoinGroupResponse(
            error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id
        )
        state.respond(event.request_id, required)
        return
    request = replace(request, member_id=member_id)
    records: log.Records = []
    old = _find(kind, group, request, records, is_unknown=is_unknown)
    _join(state, event, request, group, old, records)


def _join(
    state: Shard,
    event: Received,
    request: wire.JoinGroup,
    group: ConsumerGroup,
    old: ConsumerGroupMember,
    records: log.Records,
) -> None:
    holder = group.static_member(request.group_instance_id)
    downgrades = holder is not None and can_downgrade_with(state, group, holder)
    subscription = _subscription(request)
    new = _updated(event, request, old, subscription)
    owned = _owned(subscription, state.cluster)
    is_changed = new.subscribed_topic_names != old.subscribed_topic_names
    if new != old:
        records.append(group.member_record(new))
    change = EpochChange(group, old, new, records, group.epoch, group.is_homogeneous)
    pattern = patterns.update(state, change)
    is_changed |= pattern.change is not PatternChange.NONE
    if is_changed or group.must_refresh(state.now_ms):
        change = next_epoch(state, change, is_new=is_changed)
    try:
        if downgrades:
            _downgrade(state, event, request, change, owned, is_changed)
            return
        done = reconciled(state, change, is_changed, owned)
        log.write(state, group.group_id, records, _answer(event, request, done, _armed(request)))
    finally:
        patterns.ask(state, group.group_id, pattern.to_resolve)


def _find(
    kind: BrokerAssigned,
    group: ConsumerGroup,
    request: wire.JoinGroup,
    records: log.Records,
    *,
    is_unknown: bool,
) -> Any:
    member_id, instance_id = request.member_id, request.group_instance_id
    if instance_id is not None and not is_unknown:
        return known_member(group, member_id, instance_id)
    holder = group.static_member(instance_id)
    if holder is not None:
        return kind.take_over(group, holder, member_id, records)
    return kind.member_of(group, member_id)


def _subscription(request: wire.JoinGroup) -> Subscription:
    """Returns the subscription in the metadata of the first protocol that the member lists."""
    try:
        return decode_subscription(request.protocols[0].metadata)
    except WireError as error:
        raise RequestRefused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL) from error


def _owned(subscription: Subscription, cluster: ClusterTopics) -> Owned:
    return tuple(
        TopicPartitions(cluster.topics[topic].topic_id, tuple(numbers))
        for topic, numbers in by_topic(subscription.owned_partitions).items()
        if topic in cluster.topics
    )


def _updated(
    event: Received, request: wire.JoinGroup, old: ConsumerGroupMember, subscription: Subscription
) -> ConsumerGroupMember:
    instance_id = request.group_instance_id
    return updated(
        old,
        event,
        request,
        ("rebalance_timeout_ms",),
        instance_id=old.instance_id if instance_id is None else instance_id,
        rack_id=subscription.rack_id or old.rack_id,
        subscribed_topic_names=name_set(subscription.topics),
        subscribed_topic_regex="",
        classic=ClassicMetadata(request.session_timeout_ms, request.protocols),
    )


def _downgrade(
    state: Shard,
    event: Received,
    request: wire.JoinGroup,
    change: EpochChange,
    owned: Owned,
    is_changed: bool,
) -> None:
    """Makes the group classic; it rebalances only if its targets are older than its epoch."""
    group, new = change.group, change.member
    rebalances = group.assignment_epoch < change.epoch
    if not rebalances:
        target = (group.assignment_epoch, group.target_of(new) or NO_TARGET)
        new = one_step(state, change, target, is_changed, owned)
    then = _answer(event, request, new, ())
    replaced = group.members[group.static_members[new.instance_id or ""]]
    records = change.records
    downgrade(state, group, [replaced], then, joining=new, records=records, rebalances=rebalances)


def _answer(
    event: Received,
    request: wire.JoinGroup,
    member: ConsumerGroupMember,
    armed: tuple[tuple[DeadlineKey, int], ...],
) -> Answer:
    response = wire.JoinGroupResponse(
        generation_id=member.member_epoch,
        protocol_type=CONSUMER,
        protocol_name=request.protocols[0].name,
        member_id=member.member_id,
    )
    cancelled = DeadlineKey(JOIN, request.group_id, member.member_id)
    return Answer(event.request_id, response, request, cancelled=cancelled, armed=armed)


def _armed(request: wire.JoinGroup) -> tuple[tuple[DeadlineKey, int], ...]:
    group_id, member_id = request.group_id, request.member_id
    return (
        (DeadlineKey(SESSION, group_id, member_id), request.session_timeout_ms),
        (DeadlineKey(SYNC, group_id, member_id), request.rebalance_timeout_ms),
    )


def sync_group(
    state: Shard, event: Received, request: wire.SyncGroup, group: ConsumerGroup
) -> None:
    """Handles a SyncGroup. Errors: RequestRefused."""
    member, classic = _classic_member(group, request)
    name, metadata = classic.protocols[0]
    if request.protocol_type not in (None, CONSUMER) or request.protocol_name not in (None, name):
        raise RequestRefused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    is_behind = group.assignment_epoch > member.member_epoch
    if is_behind and member.state is not ReconciliationState.UNREVOKED_PARTITIONS:
        _arm_join_if_absent(state, group.group_id, member)
        raise RequestRefused(ErrorCode.REBALANCE_IN_PROGRESS)
    assigned = {topic: tuple(in_copied_set(epochs)) for topic, epochs in member.assigned.items()}
    response = wire.SyncGroupResponse(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=encode_partitions(assigned, metadata, state.cluster),
    )
    session = DeadlineKey(SESSION, group.group_id, member.member_id)
    cancelled = DeadlineKey(SYNC, group.group_id, member.member_id)
    armed = ((session, classic.session_timeout_ms),)
    then = Answer(event.request_id, response, request, cancelled=cancelled, armed=armed)
    log.write(state, group.group_id, [], then)


def _classic_member(
    group: ConsumerGroup, request: wire.SyncGroup | wire.Heartbeat
) -> tuple[ConsumerGroupMember, ClassicMetadata]:
    member = known_member(group, request.member_id, request.group_instance_id)
    if member.classic is None:
        raise RequestRefused(ErrorCode.UNKNOWN_MEMBER_ID)
    if member.member_epoch != request.generation_id:
        raise RequestRefused(ErrorCode.ILLEGAL_GENERATION)
    return member, member.classic


def heartbeat(state: Shard, event: Received, request: wire.Heartbeat, group: ConsumerGroup) -> None:
    """Handles a Heartbeat. Errors: RequestRefused."""
    member, classic = _classic_member(group, request)
    arm_session(state, group.group_id, member.member_id, classic.session_timeout_ms)
    is_unreleased = member.state is ReconciliationState.UNRELEASED_PARTITIONS
    must_rejoin = (
        member.member_epoch < group.assignment_epoch
        or member.state is ReconciliationState.UNREVOKED_PARTITIONS
        or (is_unreleased and not group.waits_for_release(member))
    )
    if must_rejoin:
        _arm_join_if_absent(state, group.group_id, member)
    error = ErrorCode.REBALANCE_IN_PROGRESS if must_rejoin else ErrorCode.NONE
    response = wire.HeartbeatResponse(error_code=error)
    state.answer_when_durable(Answer(event.request_id, response, request))


def leave_group(
    kind: BrokerAssigned,
    state: Shard,
    event: Received,
    request: wire.LeaveGroup,
    group: ConsumerGroup,
) -> None:
    """Handles a LeaveGroup; members of both protocols can leave."""
    leaving: dict[str, ConsumerGroupMember] = {}
    entries = []
    for entry in request.members:
        try:
            member = _leaving(group, entry)
        except RequestRefused as refused:
            entries.append(wire.LeftMember(*entry, refused.error))
            continue
        leaving[member.member_id] = member
        entries.append(wire.LeftMember(*entry, ErrorCode.NONE))
    response = wire.LeaveGroupResponse(members=tuple(entries))
    then = Answer(event.request_id, response, request)
    kind.remove(state, group, list(leaving.values()), then)


def _leaving(group: ConsumerGroup, entry: wire.MemberIdentity) -> ConsumerGroupMember:
    member_id, instance_id = entry
    if instance_id is not None and member_id == wire.UNKNOWN_MEMBER:
        member_id = group.static_members.get(instance_id, wire.UNKNOWN_MEMBER)
    return known_member(group, member_id, instance_id)


def _arm_join_if_absent(state: Shard, group_id: str, member: ConsumerGroupMember) -> None:
    key = DeadlineKey(JOIN, group_id, member.member_id)
    if not state.deadlines.is_armed(key):
        state.deadlines.arm(key, state.now_ms + member.rebalance_timeout_ms)
