# SPDX-License-Identifier: Apache-2.0
"""Members leave a consumer group, or are removed when a deadline passes.

    epoch -1   the member leaves; its partitions are free at once; the group gets its next epoch
    epoch -2   a static member will come back: it keeps its partitions and its target until its
               session ends

A leave computes no targets: the next heartbeat of any member does. If only classic members remain,
the group can become a classic group (`migration.py`).

Source   GroupMetadataManager.consumerGroupLeave, consumerGroupFenceMembers (Kafka 4.4.0).
"""

from collections import Counter
from dataclasses import replace

from kafka_rebalance.wire.broker_groups import (
    LEAVE_STATIC_EPOCH,
    ConsumerGroupHeartbeat,
    ConsumerGroupHeartbeatResponse,
)
from kafka_rebalance.wire.error_codes import ErrorCode

from ..broker_assigned import log
from ..broker_assigned.group import NOT_ASSIGNED_MS
from ..broker_assigned.members import RequestRefused, known_sender
from ..broker_assigned.timeouts import cancel_all, overdue_member
from ..machine.continuations import Continuation, SendResponse
from ..machine.deadlines import DeadlineKey
from ..machine.events import Received
from ..machine.state import CoordinatorState
from .group import ConsumerGroup
from .member import NO_PARTITIONS, ConsumerGroupMember
from .migration import can_downgrade, downgrade
from .records import (
    current_record,
    epoch_record,
    member_tombstones,
    pattern_tombstone,
    target_epoch_record,
)
from .subscription_counts import count_names


def leave(state: CoordinatorState, event: Received, request: ConsumerGroupHeartbeat) -> None:
    """Handles a heartbeat with epoch -1 or -2. Errors: RequestRefused."""
    group = state.groups.get(request.group_id)
    if not isinstance(group, ConsumerGroup):
        raise RequestRefused(ErrorCode.GROUP_ID_NOT_FOUND)
    epoch = request.member_epoch
    response = ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=epoch)
    then = SendResponse(event.request_id, response, request)
    member = known_sender(group, request.member_id, request.instance_id)
    if request.instance_id is not None and epoch == LEAVE_STATIC_EPOCH:
        away = current_record(group.group_id, _away(member))
        log.write(state, group.group_id, [away], then)
        return
    remove(state, group, [member], then)


def _away(member: ConsumerGroupMember) -> ConsumerGroupMember:
    zeros = {topic: dict.fromkeys(epochs, 0) for topic, epochs in member.assigned.items()}
    return replace(
        member,
        member_epoch=LEAVE_STATIC_EPOCH,
        assigned=zeros or member.assigned,
        pending_revocation=NO_PARTITIONS,
    )


def remove(
    state: CoordinatorState,
    group: ConsumerGroup,
    members: list[ConsumerGroupMember],
    then: Continuation,
) -> None:
    """Removes members, and makes the group's next epoch; or turns it into a classic group."""
    group_id = group.group_id
    records: log.Records = []
    if not members:
        log.write(state, group_id, records, then)
        return
    if can_downgrade(state, group, members):
        downgrade(state, group, members, then)
        return
    counts = dict(group.counts)
    for member in members:
        records += member_tombstones(group_id, member.member_id)
        count_names(counts, member, None)
    for pattern, users in Counter(one.pattern for one in members).items():
        if pattern is not None and group.patterns.get(pattern) == users:
            records.append(pattern_tombstone(group_id, pattern))
            group.uncount_pattern(counts, pattern)
    records.append(epoch_record(group_id, group.epoch + 1, state.cluster.hash_of(counts)))
    if len(group.members) == len(members):
        records.append(target_epoch_record(group_id, group.epoch + 1, NOT_ASSIGNED_MS))
    for member in members:
        cancel_all(state, group_id, member.member_id)
    log.write(state, group_id, records, then)


def member_deadline(state: CoordinatorState, group: ConsumerGroup, key: DeadlineKey) -> None:
    """Removes the member of a deadline that has passed, unless it has revoked in time."""
    overdue = overdue_member(state, group, key)
    if overdue is not None:
        member, retry = overdue
        remove(state, group, [member], retry)
