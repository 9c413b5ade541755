# SPDX-License-Identifier: Apache-2.0
"""Members leave a share group, or are removed when their session ends.

A leave makes the group's next epoch, and computes no targets: the next heartbeat of any member
does. After the last leave, the next target need not wait for the assignment interval.

Source   GroupMetadataManager.shareGroupLeave, shareGroupFenceMember (Kafka 4.4.0).

Finds the group of a request, or refuses the request. `broker_assigned/members.py` has members.

    the group has another type, even an empty one     GROUP_ID_NOT_FOUND
    absent, and the member does not join              GROUP_ID_NOT_FOUND
    the group is full                                 GROUP_MAX_SIZE_REACHED

Source   GroupMetadataManager.getOrMaybeCreateShareGroup, throwIfShareGroupIsFull (Kafka 4.4.0).
"""

from kafka_rebalance.wire.broker_groups import (
    JOIN_EPOCH,
    ShareGroupHeartbeat,
    ShareGroupHeartbeatResponse,
)
from kafka_rebalance.wire.error_codes import ErrorCode

from ..broker_assigned import log
from ..broker_assigned.group import NOT_ASSIGNED_MS
from ..broker_assigned.members import RequestRefused, known_member
from ..broker_assigned.timeouts import cancel_all
from ..machine.continuations import Continuation, Retry, SendResponse
from ..machine.deadlines import SESSION, DeadlineKey
from ..machine.events import Received
from ..machine.state import CoordinatorState
from .group import ShareGroup, ShareGroupMember
from .records import epoch_record, member_tombstones, target_epoch_record


def known_share_group(state: CoordinatorState, group_id: str) -> ShareGroup:
    group = state.groups.get(group_id)
    if not isinstance(group, ShareGroup):
        raise RequestRefused(ErrorCode.GROUP_ID_NOT_FOUND)
    return group


def group_of(state: CoordinatorState, request: ShareGroupHeartbeat) -> ShareGroup:
    """Returns the group; a new one is not in the state yet."""
    if request.member_epoch == JOIN_EPOCH and request.group_id not in state.groups:
        return ShareGroup(request.group_id)
    group = known_share_group(state, request.group_id)
    is_full = len(group.members) >= state.config.group_share_max_size
    if is_full and request.member_id not in group.members:
        raise RequestRefused(ErrorCode.GROUP_MAX_SIZE_REACHED)
    return group


def leave_share_group(
    state: CoordinatorState, event: Received, request: ShareGroupHeartbeat
) -> None:
    """Handles a heartbeat with epoch -1. Errors: RequestRefused."""
    group = known_share_group(state, request.group_id)
    member = known_member(group, request.member_id)
    response = ShareGroupHeartbeatResponse(
        member_id=request.member_id, member_epoch=request.member_epoch
    )
    _remove(state, group, member, SendResponse(event.request_id, response, request))


def _remove(
    state: CoordinatorState, group: ShareGroup, member: ShareGroupMember, then: Continuation
) -> None:
    group_id, epoch = group.group_id, group.epoch + 1
    metadata_hash = state.cluster.hash_of(group.counts_with(member, None))
    records: log.Records = [*member_tombstones(group_id, member.member_id)]
    records.append(epoch_record(group_id, epoch, metadata_hash))
    if len(group.members) == 1:
        records.append(target_epoch_record(group_id, epoch, NOT_ASSIGNED_MS))
    cancel_all(state, group_id, member.member_id)
    log.write(state, group_id, records, then)


def share_deadline(state: CoordinatorState, group: ShareGroup, key: DeadlineKey) -> None:
    """Removes the member whose session has ended; other deadlines are void."""
    member = group.members.get(key.member_id)
    if member is not None and key.kind == SESSION:
        _remove(state, group, member, Retry(key, None))
