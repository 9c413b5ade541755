# SPDX-License-Identifier: Apache-2.0
"""Sends heartbeats when they are due, with the fields that have changed.

    at once        while the member joins, acknowledges or leaves; the first two wait for the
                   response to the last heartbeat
    interval       the coordinator sets it; it is counted from sending
    after an error all fields, after a back-off that the states above do not wait for
    no polls       after `max.poll.interval.ms` the member leaves, and is STALE until the next poll

Source   AbstractHeartbeatRequestManager.poll, HeartbeatRequestState,
         ConsumerHeartbeatRequestManager.HeartbeatState.buildRequestData (Kafka 4.4.0);
         docs/behaviour/consumer-members.md#2-heartbeats.
"""

from kafka_rebalance.wire.broker_groups import ConsumerGroupHeartbeat

from .membership import NO_ASSIGNMENT, AsyncMembership, SentFields
from .states import NOT_IN_GROUP, SENDS_AT_ONCE, ConsumerMemberState

_S = ConsumerMemberState
_UNCHANGED_MS = -1


def beat(state: AsyncMembership) -> None:
    if state.node is None or state.state in NOT_IN_GROUP:
        if state.state is _S.LEAVING:
            state.move(_S.UNSUBSCRIBED)  # without a coordinator, the member just leaves
        return
    is_leaving = state.state in (_S.PREPARE_LEAVING, _S.LEAVING)
    if state.poll_until_ms <= state.now_ms and not is_leaving:
        _go_stale(state)
    elif _sends_now(state) or due_ms(state) == state.now_ms:
        _send(state)


def _sends_now(state: AsyncMembership) -> bool:
    if state.state is _S.LEAVING:
        return True
    return state.state in SENDS_AT_ONCE and not state.heartbeat_in_flight()


def due_ms(state: AsyncMembership) -> int | None:
    """Returns when the heartbeat of the interval is due, at least now; None if one is in flight."""
    if state.node is None or state.state in NOT_IN_GROUP or state.heartbeat_in_flight():
        return None
    return max(state.heartbeat_at_ms, state.retry_at_ms, state.now_ms)


def _go_stale(state: AsyncMembership) -> None:
    """Leaves because the application has not polled for too long."""
    state.move(_S.PREPARE_LEAVING)
    prepare_to_send_leave(state)
    state.send(request(state), is_ignored=True)
    state.move(_S.STALE)
    state.lose()
    state.heartbeat_at_ms = state.now_ms + state.heartbeat_interval_ms
    state.heartbeat_failures = state.retry_at_ms = 0
    state.sent_fields = SentFields()


def prepare_to_send_leave(state: AsyncMembership) -> None:
    state.member_epoch = state.leave_epoch
    state.current = NO_ASSIGNMENT
    state.move(_S.LEAVING)


def _send(state: AsyncMembership) -> None:
    state.send(request(state))
    state.heartbeat_at_ms = state.now_ms + state.heartbeat_interval_ms
    if state.state is _S.ACKNOWLEDGING:
        is_done = state.current == state.target
        state.move(_S.STABLE if is_done else _S.RECONCILING)
    elif state.state is _S.LEAVING:
        state.move(_S.UNSUBSCRIBED)


def has_news(state: AsyncMembership) -> bool:
    """Returns whether the next heartbeat contains more than the ids and the epoch."""
    sent = state.sent_fields
    return (
        sent.rebalance_timeout_ms is None
        or sent.topics != state.subscription
        or sent.pattern != state.pattern
        or sent.assignment != state.current
    )


def request(state: AsyncMembership) -> ConsumerGroupHeartbeat:
    config, sent = state.config, state.sent_fields
    timeout_ms, names, pattern, assignor, owned = _UNCHANGED_MS, None, None, None, None
    rack_id = None
    is_full = state.state is _S.JOINING
    if is_full or sent.rebalance_timeout_ms is None:
        timeout_ms = sent.rebalance_timeout_ms = config.rebalance_timeout_ms
    if is_full or sent.topics != state.subscription:
        names, sent.topics = tuple(sorted(state.subscription)), state.subscription
    if sent.pattern != state.pattern or (is_full and state.pattern is not None):
        pattern, sent.pattern = state.pattern or "", state.pattern
    if is_full or sent.assignor != config.group_remote_assignor:
        assignor = sent.assignor = config.group_remote_assignor
    if is_full or sent.assignment != state.current:
        owned, sent.assignment = state.current.sent(), state.current
    if is_full:
        rack_id = config.client_rack or None
    return ConsumerGroupHeartbeat(
        group_id=config.group_id,
        member_id=state.member_id,
        member_epoch=state.member_epoch,
        instance_id=config.group_instance_id,
        rack_id=rack_id,
        rebalance_timeout_ms=timeout_ms,
        subscribed_topic_names=names,
        subscribed_topic_regex=pattern,
        server_assignor=assignor,
        topic_partitions=owned,
    )
