# SPDX-License-Identifier: Apache-2.0
"""Sends heartbeats when they are due, with the fields that have changed; handles the responses to
a member's requests.

    at once        while the member joins, acknowledges or leaves; the first two wait for the
                   response to the last heartbeat
    interval       set by the coordinator, and counted from the time of sending the last heartbeat
    after an error all fields but the rack are sent; after a back-off, unless the member's state
                   sends at once
    no polls       after `max.poll.interval.ms` the member leaves, and is STALE until the next poll

Source   AbstractHeartbeatRequestManager.poll, HeartbeatRequestState,
         ConsumerHeartbeatRequestManager.HeartbeatState.buildRequestData (Kafka 4.4.0);
         docs/behaviour/consumer-members.md#2-heartbeats;
         AbstractHeartbeatRequestManager.onResponse, onErrorResponse, onFailure,
         AbstractMembershipManager.onHeartbeatSuccess, transitionToFenced (Kafka 4.4.0);
         docs/behaviour/consumer-members.md#4-answers.
"""

from kafka_rebalance.wire.broker_groups import (
    ConsumerGroupHeartbeat,
    ConsumerGroupHeartbeatResponse,
)
from kafka_rebalance.wire.classic_groups import FindCoordinator, FindCoordinatorResponse
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import Response
from kafka_rebalance.wire.offsets import OffsetCommit, OffsetCommitResponse

from ..membership import SentRequest
from ..states import IN_GROUP, NOT_IN_GROUP, SENDS_AT_ONCE, ConsumerMemberState
from .membership import NO_ASSIGNMENT, AsyncMembership, SentFields
from .reconciliation import commit_answered

_S = ConsumerMemberState
_E = ErrorCode
_REDISCOVERS = (_E.NOT_COORDINATOR, _E.COORDINATOR_NOT_AVAILABLE)
_UNCHANGED_MS = -1


def beat(state: AsyncMembership) -> None:
    if state.coordinator_node is None or state.state in NOT_IN_GROUP:
        if state.state is _S.LEAVING:
            state.move(_S.UNSUBSCRIBED)  # without a coordinator, no request is sent
        return
    is_leaving = state.state in (_S.PREPARE_LEAVING, _S.LEAVING)
    if state.poll_until_ms <= state.now_ms and not is_leaving:
        _go_stale(state)
        return
    waits = state.state is not _S.LEAVING and state.heartbeat_in_flight()
    if (state.state in SENDS_AT_ONCE and not waits) or due_ms(state) == state.now_ms:
        _send(state)


def due_ms(state: AsyncMembership) -> int | None:
    """Returns when (ms) the next regular heartbeat is due, now or later; None if it must wait."""
    if state.coordinator_node is None or state.state in NOT_IN_GROUP or state.heartbeat_in_flight():
        return None
    return max(state.heartbeat_at_ms, state.retry_at_ms, state.now_ms)


def _go_stale(state: AsyncMembership) -> None:
    """Leaves the group, because the application has not polled for too long."""
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
    """Returns whether the next heartbeat has fields to send besides the ids and the epoch."""
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
    return ConsumerGroupHeartbeat(
        group_id=config.group_id,
        member_id=state.member_id,
        member_epoch=state.member_epoch,
        instance_id=config.group_instance_id,
        rack_id=(config.client_rack or None) if is_full else None,
        rebalance_timeout_ms=timeout_ms,
        subscribed_topic_names=names,
        subscribed_topic_regex=pattern,
        server_assignor=assignor,
        topic_partitions=owned,
    )


def answered(state: AsyncMembership, sent: SentRequest, response: Response) -> None:
    match response:
        case FindCoordinatorResponse(error_code=error, node_id=node):
            if error is _E.NONE:
                state.coordinator_node, state.find_failures = node, 0
            elif error is _E.GROUP_AUTHORIZATION_FAILED:
                _die(state, error, f"FindCoordinator was answered {error}")
            else:
                _find_later(state)
        case ConsumerGroupHeartbeatResponse():
            if not sent.is_ignored:
                _heartbeat_answered(state, response)
        case OffsetCommitResponse(partitions=partitions):
            codes = (one.error_code for one in partitions)
            error = next((code for code in codes if code is not _E.NONE), _E.NONE)
            commit_answered(state, sent, error)
            if error in (*_REDISCOVERS, _E.REQUEST_TIMED_OUT):
                state.forget_coordinator()
        case _:
            pass


def failed(state: AsyncMembership, sent: SentRequest) -> None:
    """Handles a request that gets no response: the connection was lost, or it timed out."""
    match sent.request:
        case FindCoordinator():
            _find_later(state)
        case ConsumerGroupHeartbeat() if not sent.is_ignored:
            state.sent_fields = SentFields()
            _back_off(state)
            state.forget_coordinator()
        case OffsetCommit():
            commit_answered(state, sent, _E.REQUEST_TIMED_OUT)
            state.forget_coordinator()
        case _:
            pass


def _find_later(state: AsyncMembership) -> None:
    state.find_at_ms = state.now_ms + state.backoff_ms(state.find_failures)
    state.find_failures += 1


def _heartbeat_answered(state: AsyncMembership, response: ConsumerGroupHeartbeatResponse) -> None:
    error = response.error_code
    if error is not _E.NONE:
        _refused(state, error)
        return
    if response.heartbeat_interval_ms != state.heartbeat_interval_ms:
        state.heartbeat_interval_ms = response.heartbeat_interval_ms
        state.heartbeat_at_ms = state.now_ms + response.heartbeat_interval_ms
    state.heartbeat_failures = state.retry_at_ms = 0
    gone = state.state in NOT_IN_GROUP or state.state is _S.LEAVING
    if gone or response.member_epoch < 0:
        return
    state.member_epoch = response.member_epoch
    if response.assignment is None or state.state not in IN_GROUP:
        return
    state.target = state.target.updated(response.assignment)
    if state.target != state.current:
        state.move(_S.RECONCILING)
    elif state.state in (_S.RECONCILING, _S.JOINING):
        state.move(_S.STABLE)


def _refused(state: AsyncMembership, error: ErrorCode) -> None:
    state.sent_fields = SentFields()
    _back_off(state)
    if error in _REDISCOVERS:
        state.forget_coordinator()
        state.heartbeat_failures = state.retry_at_ms = 0
    elif error in (_E.FENCED_MEMBER_EPOCH, _E.UNKNOWN_MEMBER_ID):
        fence(state)
        state.heartbeat_failures = state.retry_at_ms = 0
    elif error is _E.TOPIC_AUTHORIZATION_FAILED:
        state.throw(error, f"a heartbeat was answered {error}")  # poll throws, heartbeats continue
    elif error is _E.COORDINATOR_LOAD_IN_PROGRESS:
        pass
    elif error is not _E.GROUP_ID_NOT_FOUND or state.state is not _S.UNSUBSCRIBED:
        _die(state, error, f"a heartbeat was answered {error}")


def _back_off(state: AsyncMembership) -> None:
    """Makes the next heartbeat due after a back-off, instead of after the interval."""
    state.heartbeat_at_ms = state.now_ms
    state.retry_at_ms = state.now_ms + state.backoff_ms(state.heartbeat_failures)
    state.heartbeat_failures += 1


def fence(state: AsyncMembership) -> None:
    """Loses all partitions, then rejoins with the old id; a leaving member stays out."""
    if state.state in (_S.PREPARE_LEAVING, _S.LEAVING):
        state.move(_S.UNSUBSCRIBED)
    elif state.state not in NOT_IN_GROUP:
        state.move(_S.FENCED)
        state.member_epoch = 0
        state.lose()


def _die(state: AsyncMembership, error: ErrorCode, message: str) -> None:
    was_leaving = state.state in (_S.UNSUBSCRIBED, _S.PREPARE_LEAVING, _S.LEAVING)
    state.move(_S.FATAL)
    state.throw(error, message)
    if not was_leaving:
        state.lose()
