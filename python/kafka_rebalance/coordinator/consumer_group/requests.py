# SPDX-License-Identifier: Apache-2.0
"""Passes the requests of classic members, and deadlines, to a consumer group."""

from collections.abc import Callable
from typing import Any

from kafka_rebalance.wire.classic_groups import Heartbeat, JoinGroup, LeaveGroup, SyncGroup
from kafka_rebalance.wire.messages import Request

from ..classic_group import join_group
from ..machine.deadlines import MEMBER_KINDS, DeadlineKey
from ..machine.events import Received
from ..machine.state import CoordinatorState
from . import classic_members
from .group import ConsumerGroup
from .leaving import member_deadline

_Handler = Callable[[CoordinatorState, Received, Any, ConsumerGroup], None]


def _join(
    state: CoordinatorState, event: Received, request: JoinGroup, group: ConsumerGroup
) -> None:
    if group.is_empty:
        # An empty group becomes a classic group. Quirk: it is removed even if the join is refused.
        state.remove(group)
        join_group.join_group(state, event, request, emptied=group)
    else:
        classic_members.join_group(state, event, request, group)


HANDLERS: dict[type[Request], _Handler] = {
    JoinGroup: _join,
    SyncGroup: classic_members.sync_group,
    Heartbeat: classic_members.heartbeat,
    LeaveGroup: classic_members.leave_group,
}


def deadline(state: CoordinatorState, group: ConsumerGroup, key: DeadlineKey) -> None:
    """Handles a deadline; one of the classic group that the group was is void."""
    if key.kind in MEMBER_KINDS and key.member_id:
        member_deadline(state, group, key)
