# SPDX-License-Identifier: Apache-2.0
"""Heartbeat: renews a member's session, and informs the member of a rebalance.

`member_checks` has the error of each state. In PreparingRebalance, a heartbeat renews the session
although its response is REBALANCE_IN_PROGRESS. This holds for members that have rejoined, too.

Source   GroupMetadataManager.classicGroupHeartbeat;
         docs/behaviour/coordinator.md#6-heartbeat.
"""

from kafka_rebalance.wire.classic_groups import Heartbeat, HeartbeatResponse
from kafka_rebalance.wire.error_codes import ErrorCode

from ..machine.events import Received
from ..machine.state import CoordinatorState
from .member_checks import refuse_member


def heartbeat(state: CoordinatorState, event: Received, request: Heartbeat) -> None:
    """Answers a Heartbeat; a refused Heartbeat does not renew the session."""
    group = state.classic(request.group_id)
    error = refuse_member(group, request)
    response = HeartbeatResponse(error_code=error)
    if group is not None and error in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
        state.renew_session(group, group.get(request.member_id))
        state.respond_when_durable(event.request_id, request, response)
    else:
        state.respond(event.request_id, response)
