# SPDX-License-Identifier: Apache-2.0
"""Does the group's part of poll(), and repeats it while a rejoin is needed.

    1. rejoin?      yes if `rejoin_needed` is set, or the role has a reason
    2. coordinator  is looked up if it is unknown
    3. prepare      the role prepares, once for each rebalance
    4. JoinGroup    is sent with the role's protocols; `answers.joined` handles the response
    5. take         the role applies the assignment

Source   AbstractCoordinator.joinGroupIfNeeded; docs/behaviour/member.md#3-poll,
         docs/behaviour/member.md#4-join.
"""

from kafka_rebalance.errors import WireError
from kafka_rebalance.wire.classic_groups import FindCoordinator, JoinGroup
from kafka_rebalance.wire.error_codes import ErrorCode

from .config import join_timeout_ms
from .membership import Membership
from .states import MemberState

_JOIN_VERSION = 9


def needs_rejoin(state: Membership) -> bool:
    """Returns whether the member wants to be in a group, and has a reason to send JoinGroup."""
    role = state.role
    return (state.rejoin_needed or role.has_news(state)) and role.wants_in()


def go_on(state: Membership) -> None:
    """Takes all steps of a rebalance that are possible in one poll without waiting."""
    while needs_rejoin(state) or state.is_joining():
        if state.coordinator_node is None:
            state.find_coordinator()
            return
        if state.arrived is not None:
            assignment, state.arrived = state.arrived, None
            if state.state is MemberState.STABLE and state.generation.is_known:
                try:
                    state.role.take(state, assignment)
                except WireError as error:
                    problem = f"the assignment cannot be read: {error}"
                    state.throw(ErrorCode.UNKNOWN_SERVER_ERROR, problem)
                    state.arrived = assignment  # kept, so that every later poll throws again
                state.needs_prepare = True
                if state.fatal is not None:
                    return
            else:
                state.reset(keep_id=False)
            continue
        if state.is_joining() or state.now_ms < state.retry_at_ms:
            return
        if state.needs_prepare:
            if not state.role.prepare(state):
                return
            state.needs_prepare = state.is_leader = False
        join(state)
        return


def join(state: Membership) -> None:
    config = state.config
    state.move(MemberState.PREPARING_REBALANCE)
    state.rejoin_needed = True
    request = JoinGroup(
        group_id=config.group_id,
        member_id=state.generation.member_id,
        group_instance_id=config.group_instance_id,
        session_timeout_ms=config.session_timeout_ms,
        rebalance_timeout_ms=config.rebalance_timeout_ms,
        protocol_type=state.role.protocol_type,
        protocols=state.role.protocols(state),
    )
    state.send(request, join_timeout_ms(config), _JOIN_VERSION)


def waits_in_poll(state: Membership) -> bool:
    """Returns whether poll() blocks: for the coordinator, or for the commit of an eager member.

    Source   ConsumerCoordinator.poll, maybeMarkPartitionsPendingRevocation (nothing is fetched).
    """
    waits = state.coordinator_node is None or state.role.is_pending_revocation
    return waits and needs_rejoin(state)


def next_step_ms(state: Membership) -> int | None:
    """Returns when `go_on` can take its next step in a rebalance; None if an event comes first."""
    if state.coordinator_node is None:
        return None if state.is_waiting_for(FindCoordinator) else state.retry_at_ms
    if state.arrived is not None:
        return state.now_ms
    if state.is_joining():
        return None
    waits = state.role.prepares_until_ms(state)
    return max(state.now_ms, state.retry_at_ms) if waits is None else waits
