# SPDX-License-Identifier: Apache-2.0
"""The deadlines of a member of a consumer group; when one passes, the member is removed.

    session-timeout     as in `broker_assigned/timeouts.py`; a classic member chooses its length
    rebalance-timeout   as there; only members of the consumer protocol have it
    join                a classic member was told to rejoin
    sync                a classic member has joined and must send SyncGroup

Source   GroupMetadataManager.scheduleConsumerGroupJoinTimeout, …SyncTimeout (Kafka 4.4.0).
"""

from ..broker_assigned.group import ReconciliationState
from ..broker_assigned.timeouts import arm_or_cancel_rebalance, fall_silent
from ..machine.deadlines import JOIN, DeadlineKey
from ..machine.state import CoordinatorState
from .group import ConsumerGroup
from .member import ConsumerGroupMember


def consumer_falls_silent(
    state: CoordinatorState, group: ConsumerGroup, member_id: str, since_ms: int
) -> None:
    """Starts the session timeout of a silent member at `since_ms`."""
    member = group.members.get(member_id)
    if member is None:
        return
    timeout_ms = state.config.group_consumer_session_timeout_ms
    if member.classic is not None:
        timeout_ms = member.classic.session_timeout_ms  # a classic member chooses it itself
    fall_silent(state, group, member_id, since_ms, timeout_ms)


def after_step(state: CoordinatorState, group_id: str, member: ConsumerGroupMember) -> None:
    """Arms or cancels the rebalance timeout after a written step of a reconciliation."""
    if member.classic is None:
        revokes = member.state is ReconciliationState.UNREVOKED_PARTITIONS
        arm_or_cancel_rebalance(state, group_id, member, revokes=revokes)


def arm_join_if_absent(state: CoordinatorState, group_id: str, member: ConsumerGroupMember) -> None:
    key = DeadlineKey(JOIN, group_id, member.member_id)
    if not state.deadlines.is_armed(key):
        state.deadlines.arm(key, state.now_ms + member.rebalance_timeout_ms)
