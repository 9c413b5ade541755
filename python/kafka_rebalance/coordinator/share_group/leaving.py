# SPDX-License-Identifier: Apache-2.0
"""Members leave a share group, or are removed when their session ends.

A leave makes the group's next epoch, and computes no targets: the next heartbeat of any member
does. After the last leave, the next target need not wait for the assignment interval.

Source   GroupMetadataManager.shareGroupLeave, shareGroupFenceMember (Kafka 4.4.0).
"""

from kafka_rebalance.wire.broker_groups import ShareGroupHeartbeat, ShareGroupHeartbeatResponse

from ..assigning_group import log
from ..assigning_group.group import NOT_ASSIGNED_MS
from ..assigning_group.members import known_member
from ..assigning_group.timeouts import cancel_all
from ..continuations import Continuation, Retry, SendResponse
from ..coordinator_state import CoordinatorState
from ..deadlines import SESSION, DeadlineKey
from ..interface import Received
from .group import ShareGroup
from .member import ShareGroupMember
from .members import known_share_group
from .records import epoch_record, member_tombstones, target_epoch_record


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
