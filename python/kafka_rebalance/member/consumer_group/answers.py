# SPDX-License-Identifier: Apache-2.0
"""Handles the responses to a member's requests, and requests that get no response.

Source   AbstractHeartbeatRequestManager.onResponse, onErrorResponse, onFailure,
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
from .membership import AsyncMembership, SentFields
from .reconciliation import commit_answered
from .states import NOT_IN_GROUP, TAKES_ASSIGNMENTS, ConsumerMemberState

_S = ConsumerMemberState
_E = ErrorCode
_REDISCOVERS = (_E.NOT_COORDINATOR, _E.COORDINATOR_NOT_AVAILABLE)


def answered(state: AsyncMembership, sent: SentRequest, response: Response) -> None:
    match response:
        case FindCoordinatorResponse(error_code=error, node_id=node):
            if error is _E.NONE:
                state.node, state.find_failures = node, 0
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
    """Handles a request that will get no response: the connection was lost, or time ran out."""
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
    if response.assignment is None or state.state not in TAKES_ASSIGNMENTS:
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
        state.throw(error, f"a heartbeat was answered {error}")  # the member continues
    elif error is _E.COORDINATOR_LOAD_IN_PROGRESS:
        pass
    elif error is not _E.GROUP_ID_NOT_FOUND or state.state is not _S.UNSUBSCRIBED:
        _die(state, error, f"a heartbeat was answered {error}")


def _back_off(state: AsyncMembership) -> None:
    """Makes the next heartbeat due after a back-off, in place of the interval."""
    state.heartbeat_at_ms = state.now_ms
    state.retry_at_ms = state.now_ms + state.backoff_ms(state.heartbeat_failures)
    state.heartbeat_failures += 1


def fence(state: AsyncMembership) -> None:
    """Loses all partitions; unless the member was leaving, it joins again with its old id."""
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
