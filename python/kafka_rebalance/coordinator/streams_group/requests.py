# SPDX-License-Identifier: Apache-2.0
"""Answers the JoinGroup of a classic member, which a streams group never admits.

An empty streams group becomes a classic group.
"""

from kafka_rebalance.wire.classic_groups import JoinGroup, JoinGroupResponse
from kafka_rebalance.wire.error_codes import ErrorCode

from ..classic_group import join_group
from ..machine.events import Received
from ..machine.state import CoordinatorState
from .group import StreamsGroup


def classic_join(
    state: CoordinatorState, event: Received, request: JoinGroup, group: StreamsGroup
) -> None:
    """Handles a JoinGroup. Quirk: an empty group is removed even if the join is refused."""
    if group.is_empty:
        state.remove(group)
        join_group.join_group(state, event, request, emptied=group)
    else:
        refused = JoinGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        state.respond(event.request_id, refused)
