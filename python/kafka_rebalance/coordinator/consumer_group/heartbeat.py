# SPDX-License-Identifier: Apache-2.0
"""ConsumerGroupHeartbeat: a member joins, stays or leaves, and learns what it may use.

    1. the request's fields                        INVALID_REQUEST, UNSUPPORTED_ASSIGNOR
    2. the group; epoch 0 creates or converts it   GROUP_ID_NOT_FOUND
    3. room for a new member                       GROUP_MAX_SIZE_REACHED
    4. the member and its epoch                    `find_member`
    5. the member's fields, and its pattern        `patterns.py`
    6. the group's epoch and the targets           `target.py`
    7. this member's reconciliation                `reconciliation.py`

The response has an assignment if the member joins, sends all its fields, or has got others. It
contains what the member may use now, not what it waits for.

Source   GroupCoordinatorService.consumerGroupHeartbeat, GroupMetadataManager.consumerGroupHeartbeat
         (Kafka 4.4.0); docs/behaviour/consumer-groups.md#3-heartbeats; KIP-848.
"""

from dataclasses import replace
from functools import partial

from kafka_rebalance.wire.broker_groups import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    ConsumerGroupHeartbeat,
    TopicPartitions,
)
from kafka_rebalance.wire.error_codes import ErrorCode

from ..broker_assigned import log
from ..broker_assigned.kind import BrokerAssigned
from ..broker_assigned.members import (
    UNCHANGED_MS,
    arm_or_cancel_rebalance,
    is_blank,
    updated,
)
from ..broker_assigned.records import target_topics
from ..broker_assigned.table_order import name_set
from ..broker_assigned.target import EpochChange, Target, target_for
from ..machine.events import Received
from ..machine.state import CoordinatorState
from . import patterns
from .group import RECORDS, ConsumerGroup
from .member import ConsumerGroupMember
from .patterns import PatternChange
from .reconciliation import Owned, Reconciliation
from .target import next_epoch, subscribed_names, targets_of

_FIELDS = (
    "instance_id",
    "rack_id",
    "rebalance_timeout_ms",
    "server_assignor",
    "subscribed_topic_regex",
)


def refuse_fields(
    state: CoordinatorState, request: ConsumerGroupHeartbeat, version: int | None
) -> ErrorCode:
    """Returns the error of a request whose fields do not fit together, else NONE."""
    # 1.
    epoch = request.member_epoch
    texts: list[str | None] = [request.group_id]
    if version is None or version >= 1 or epoch > JOIN_EPOCH or epoch == LEAVE_EPOCH:
        texts.append(request.member_id)
    texts += [request.instance_id, request.rack_id]
    invalid = any(map(is_blank, texts)) or epoch < LEAVE_STATIC_EPOCH
    if epoch == JOIN_EPOCH:
        names = (request.subscribed_topic_names, request.subscribed_topic_regex)
        invalid |= request.rebalance_timeout_ms == UNCHANGED_MS
        invalid |= request.topic_partitions != () or names == (None, None)
    elif epoch == LEAVE_STATIC_EPOCH:
        invalid |= request.instance_id is None
    if invalid:
        return ErrorCode.INVALID_REQUEST
    known = (None, *state.config.group_consumer_assignors)
    return ErrorCode.NONE if request.server_assignor in known else ErrorCode.UNSUPPORTED_ASSIGNOR


def beat(
    kind: BrokerAssigned, state: CoordinatorState, event: Received, request: ConsumerGroupHeartbeat
) -> None:
    """Answers the heartbeat of a member that joins or stays. Errors: RequestRefused."""
    records: log.Records = []
    # 2. and 3.
    group, converted = kind.group_for(state, request, records)
    member_id = request.member_id or state.new_member_id()
    kind.check_room(state, group, member_id, request.instance_id)
    # 4.
    asked = replace(request, member_id=member_id)
    old = kind.find_member(group, asked, records)
    # 5. and 6.
    new = _updated(event, asked, old)
    is_changed = new.subscribed_topic_names != old.subscribed_topic_names
    if new != old:
        records.append(RECORDS.member_record(group.group_id, new))
    pattern = patterns.update(state, group, old, new, records)
    change = _epoch(state, group, old, new, records, is_changed, pattern.change)
    has_changed = is_changed or pattern.change is not PatternChange.NONE
    try:
        new = reconciled(state, change, old, records, has_changed, request.topic_partitions)
        shown = _shown(request, old, new)
        kind.answer(state, event, group, new, records, converted=converted, assignment=shown)
    finally:
        patterns.ask(state, group.group_id, pattern.to_resolve)


def _updated(
    event: Received, request: ConsumerGroupHeartbeat, old: ConsumerGroupMember
) -> ConsumerGroupMember:
    """Returns the member with the fields of the request; None and -1 keep a field."""
    names = request.subscribed_topic_names
    kept = old.subscribed_topic_names if names is None else name_set(names)
    return updated(old, event, request, _FIELDS, subscribed_topic_names=kept, classic=None)


def _epoch(
    state: CoordinatorState,
    group: ConsumerGroup,
    old: ConsumerGroupMember,
    new: ConsumerGroupMember,
    records: log.Records,
    is_changed: bool,
    pattern: PatternChange,
) -> EpochChange:
    default = state.config.group_consumer_assignors[0]
    before, after = group.preferred_assignor(), group.preferred_assignor_with(old, new)
    is_new = is_changed or pattern is PatternChange.UPDATED_AND_RESOLVED
    is_new |= (before or default) != (after or default)
    change = EpochChange(group, new, group.epoch, group.is_homogeneous)
    if is_new or group.must_refresh(state.now_ms):
        return next_epoch(state, change, old, records, is_new=is_new)
    return change


def reconciled(
    state: CoordinatorState,
    change: EpochChange,
    old: ConsumerGroupMember,
    records: log.Records,
    has_changed_subscription: bool,
    owned: Owned,
) -> ConsumerGroupMember:
    """Returns the changed member, moved toward its target."""
    # 6. and 7.
    computed = partial(targets_of, state, change, old)
    target = target_for(state, change, RECORDS, computed, records)
    return stepped(state, change, target, records, has_changed_subscription, owned)


def stepped(
    state: CoordinatorState,
    change: EpochChange,
    target: tuple[int, Target],
    records: log.Records,
    has_changed_subscription: bool,
    owned: Owned,
) -> ConsumerGroupMember:
    """Returns the changed member after one step toward `target`, which is an epoch with it."""
    group, member = change.group, change.member
    names = subscribed_names(group, member)
    topics = frozenset(state.cluster.ids(names))
    steps = Reconciliation(group, *target, names, topics, has_changed_subscription, owned)
    new = steps.next(member)
    if new != member:
        records.append(RECORDS.current_record(group.group_id, new))
        if new.classic is None:
            arm_or_cancel_rebalance(state, group.group_id, new)
    return new


def _shown(
    request: ConsumerGroupHeartbeat, old: ConsumerGroupMember, new: ConsumerGroupMember
) -> tuple[TopicPartitions, ...] | None:
    """Returns the assignment of the response; None for none."""
    subscription = (request.subscribed_topic_names, request.subscribed_topic_regex)
    is_full = (
        request.rebalance_timeout_ms != UNCHANGED_MS
        and subscription != (None, None)
        and request.topic_partitions is not None
    )
    shows = request.member_epoch == JOIN_EPOCH or is_full or old.assigned != new.assigned
    return target_topics(new.assigned) if shows else None
