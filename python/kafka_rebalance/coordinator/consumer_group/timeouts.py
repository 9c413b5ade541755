# SPDX-License-Identifier: Apache-2.0
"""The deadlines of a member of a consumer group; when one passes, the member is removed.

    session-timeout     starts anew with each accepted heartbeat
    rebalance-timeout   the member must give up its pending partitions; void if its epoch changed
    join                a classic member was told to rejoin
    sync                a classic member has joined and must send SyncGroup

Source   GroupMetadataManager.scheduleConsumerGroupSessionTimeout, …RebalanceTimeout, …JoinTimeout,
         …SyncTimeout (Kafka 4.4.0).
"""

from ..coordinator_state import CoordinatorState
from ..deadlines import JOIN, MEMBER_KINDS, REBALANCE, SESSION, DeadlineKey
from .group import ConsumerGroup
from .member import ConsumerGroupMember, ReconciliationState


def arm_session(state: CoordinatorState, group_id: str, member_id: str, timeout_ms: int) -> None:
    state.start_session(DeadlineKey(SESSION, group_id, member_id), timeout_ms)


def fall_silent(
    state: CoordinatorState, group: ConsumerGroup, member_id: str, since_ms: int
) -> None:
    """Starts the session timeout of a silent member at `since_ms`."""
    member = group.members.get(member_id)
    if member is None:
        return
    timeout_ms = state.config.group_consumer_session_timeout_ms
    if member.classic is not None:
        timeout_ms = member.classic.session_timeout_ms  # a classic member chooses it itself
    key = DeadlineKey(SESSION, group.group_id, member_id)
    state.deadlines.arm(key, max(since_ms + timeout_ms, state.now_ms))


def after_step(state: CoordinatorState, group_id: str, member: ConsumerGroupMember) -> None:
    """Arms or cancels the rebalance timeout after a written step of a reconciliation."""
    if member.classic is not None:
        return
    if member.state is ReconciliationState.UNREVOKED_PARTITIONS:
        arm_rebalance(state, group_id, member)
    else:
        cancel(state, DeadlineKey(REBALANCE, group_id, member.member_id))


def arm_rebalance(state: CoordinatorState, group_id: str, member: ConsumerGroupMember) -> None:
    key = DeadlineKey(REBALANCE, group_id, member.member_id)
    state.deadlines.arm(key, state.now_ms + member.rebalance_timeout_ms)
    state.revocations[key] = member.member_epoch


def arm_join_if_absent(state: CoordinatorState, group_id: str, member: ConsumerGroupMember) -> None:
    key = DeadlineKey(JOIN, group_id, member.member_id)
    if not state.deadlines.is_armed(key):
        state.deadlines.arm(key, state.now_ms + member.rebalance_timeout_ms)


def cancel_all(state: CoordinatorState, group_id: str, member_id: str) -> None:
    for kind in MEMBER_KINDS:
        cancel(state, DeadlineKey(kind, group_id, member_id))


def cancel(state: CoordinatorState, key: DeadlineKey) -> None:
    """Cancels a deadline of a member."""
    state.deadlines.cancel(key)
    state.revocations.pop(key, None)
