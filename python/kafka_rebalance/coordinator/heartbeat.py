# SPDX-License-Identifier: Apache-2.0
"""Heartbeat: renews a member's session, and its error tells the member to rejoin.

`member_checks` has the error of each state. In PreparingRebalance a heartbeat renews the session
although its answer is REBALANCE_IN_PROGRESS, also for members that have rejoined.

Source   GroupMetadataManager.classicGroupHeartbeat;
         docs/behaviour/coordinator.md#6-heartbeat.
"""

from kafka_rebalance.protocol.error_codes import ErrorCode
from kafka_rebalance.protocol.group_state import GroupState
from kafka_rebalance.protocol.messages import Heartbeat, HeartbeatResponse

from .coordinator_state import CoordinatorState
from .interface import Received


def heartbeat(state: CoordinatorState, event: Received, request: Heartbeat) -> None:
    """Answers a Heartbeat; a refused Heartbeat does not renew the session."""
    error = _beat(state, request)
    response = HeartbeatResponse(error_code=error)
    if error in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
        state.respond_when_durable(event.request_id, request, response)
    else:
        state.respond(event.request_id, response)


def _beat(state: CoordinatorState, request: Heartbeat) -> ErrorCode:
    group = state.groups.get(request.group_id)
    if group is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if group.is_(GroupState.DEAD):
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    error = group.check(request.member_id, request.group_instance_id)
    if error is not ErrorCode.NONE:
        return error
    if request.generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    state.renew_session(group, group.get(request.member_id))
    if group.is_(GroupState.PREPARING_REBALANCE):
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE
