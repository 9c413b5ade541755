"""What poll does about the group: prepare, join, take the assignment, and again if need be.

    1. rejoin?      asked for; the subscription is another; the leader's view of topics is outdated
    2. coordinator  found first
    3. prepare      commit; eager members give up everything, cooperative ones what they no longer
                    subscribe to; without a generation all is lost
    4. JoinGroup    every assignor's metadata; the answer is `answers.joined`
    5. take         callbacks: revoked before assigned; what was revoked means joining once more

Source   AbstractCoordinator.joinGroupIfNeeded, ConsumerCoordinator.onJoinPrepare/onJoinComplete;
         sections 7.3 to 7.5 and 7.8 of the behaviour.
"""

import re

from kafka_rebalance.coordinator import ErrorCode, JoinGroup, OffsetCommit, Protocol
from kafka_rebalance.errors import WireError
from kafka_rebalance.wire import Subscription, decode_assignment, encode_subscription

from .events import Assigned, Lost, Revoked
from .leading import snapshot
from .state import State
from .states import MemberState

_JOIN_VERSION = 9


def needs_rejoin(state: State) -> bool:
    """Whether the next poll joins."""
    return (
        state.rejoin_needed or is_outdated(state) or state.joined_subscription != state.subscription
    )


def is_outdated(state: State) -> bool:
    """Whether topics are not any more what this leader assigned by."""
    if not state.is_leader or state.assigned_by is None:
        return False
    racks = bool(state.config.client_rack)
    return snapshot(state.topics, state.group_subscription, racks=racks) != state.assigned_by


def is_subscribed(state: State) -> bool:
    """Whether it wants anything at all; a pattern counts before any topic matches."""
    return bool(state.subscription) or state.pattern is not None


def go_on(state: State) -> None:
    """One poll's part of a rebalance: as far as it goes without waiting."""
    while is_subscribed(state) and (needs_rejoin(state) or state.is_joining()):
        if state.coordinator_node is None:
            state.find_coordinator()
            return
        if state.arrived is not None:
            assignment, state.arrived = state.arrived, None
            if state.state is MemberState.STABLE and state.generation.is_known:
                take(state, assignment)
                state.needs_prepare = True
                if state.fatal is not None:
                    return
            else:
                state.reset(keep_id=False)
            continue
        if state.is_joining() or state.now_ms < state.retry_at_ms:
            return
        if state.needs_prepare and not prepare(state):
            return
        state.needs_prepare = False
        join(state)
        return


def prepare(state: State) -> bool:
    """Before a join; False while a commit is waited for."""
    if state.config.enable_auto_commit and not _has_committed(state):
        return False
    state.committed, state.prepare_until_ms = False, None
    owned = state.owned
    if not state.generation.is_known:
        if owned:
            state.effects.append(Lost(owned))
        state.owned = ()
    elif state.is_cooperative:
        dropped = tuple(one for one in owned if not _wants(state, one.topic))
        if dropped:
            state.effects.append(Revoked(dropped))
            state.owned = tuple(one for one in owned if one not in set(dropped))
    else:
        state.effects.append(Revoked(owned))
        state.owned = ()
    state.is_leader = False
    state.group_subscription = frozenset()
    return True


def _has_committed(state: State) -> bool:
    """A commit before the join: it ends, or a member's rebalance timeout has passed."""
    if state.committed or not state.generation.is_known:
        return True
    if state.prepare_until_ms is None:
        state.prepare_until_ms = state.now_ms + state.config.rebalance_timeout_ms
    if state.now_ms >= state.prepare_until_ms:
        return True
    if state.is_waiting_for(OffsetCommit):
        return False
    return not state.commit()


def join(state: State) -> None:
    """Sends JoinGroup."""
    config = state.config
    state.move(MemberState.PREPARING_REBALANCE)
    state.rejoin_needed = True
    state.joined_subscription = state.subscription
    topics = tuple(sorted(state.subscription))
    known = state.generation.generation_id
    protocols = tuple(
        Protocol(
            name,
            encode_subscription(
                Subscription(
                    topics,
                    assignor.subscription_user_data(topics),
                    state.owned,
                    known if known >= 0 else None,
                    config.client_rack or None,
                )
            ),
        )
        for name, assignor in state.assignors.items()
    )
    request = JoinGroup(
        group_id=config.group_id,
        member_id=state.generation.member_id,
        group_instance_id=config.group_instance_id,
        session_timeout_ms=config.session_timeout_ms,
        rebalance_timeout_ms=config.rebalance_timeout_ms,
        protocols=protocols,
    )
    state.send(request, config.join_timeout_ms, _JOIN_VERSION)


def take(state: State, assignment: bytes) -> None:
    """An assignment has come: callbacks, in Kafka's order."""
    try:
        assigned = decode_assignment(assignment).partitions
    except WireError as error:
        state.throw(ErrorCode.UNKNOWN_SERVER_ERROR, f"the assignment cannot be read: {error}")
        return
    if not state.is_leader:
        state.assigned_by = None
    if not all(_wants(state, one.topic) for one in assigned):
        state.rejoin_needed = True  # of a subscription that is not ours any more
        return
    if state.is_cooperative:
        kept = set(assigned)
        revoked = tuple(one for one in state.owned if one not in kept)
        if revoked:
            state.effects.append(Revoked(revoked))
            state.rejoin_needed = True
    if state.pattern is not None:
        # What the leader knows already must not make this member join again.
        state.subscription |= {one.topic for one in assigned}
        state.joined_subscription = state.subscription
    protocol = state.generation.protocol_name
    if protocol in state.assignors:
        state.assignors[protocol].on_assignment(assigned, state.generation.generation_id)
    state.commit_at_ms = state.now_ms + state.config.auto_commit_interval_ms
    held = set(state.owned)
    state.owned = tuple(assigned)
    state.effects.append(Assigned(tuple(one for one in assigned if one not in held)))


def _wants(state: State, topic: str) -> bool:
    if state.pattern is not None:
        return re.fullmatch(state.pattern, topic) is not None
    return topic in state.subscription


def give_up(state: State) -> None:
    """Before leaving: everything is revoked, or lost where the generation is not sure."""
    if state.owned:
        sure = state.generation.is_known and state.state not in (
            MemberState.PREPARING_REBALANCE,
            MemberState.COMPLETING_REBALANCE,
        )
        state.effects.append(Revoked(state.owned) if sure else Lost(state.owned))
    state.owned = ()
