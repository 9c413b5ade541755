# SPDX-License-Identifier: Apache-2.0
"""Finds the group of a request, or refuses the request. `assigning_group/members.py` has members.

    the group has another type, even an empty one     GROUP_ID_NOT_FOUND
    absent, and the member does not join              GROUP_ID_NOT_FOUND
    the group is full                                 GROUP_MAX_SIZE_REACHED

Source   GroupMetadataManager.getOrMaybeCreateShareGroup, throwIfShareGroupIsFull (Kafka 4.4.0).
"""

from kafka_rebalance.wire.broker_groups import JOIN_EPOCH, ShareGroupHeartbeat
from kafka_rebalance.wire.error_codes import ErrorCode

from ..assigning_group.refused import RequestRefused
from ..coordinator_state import CoordinatorState
from .group import ShareGroup


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
