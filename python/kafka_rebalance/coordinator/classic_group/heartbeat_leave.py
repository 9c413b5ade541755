# SPDX-License-Identifier: Apache-2.0
"""Heartbeat and LeaveGroup: a member stays, or members leave.

A heartbeat renews the member's session, and informs the member of a rebalance: `member_checks` has
the error of each state. In PreparingRebalance, it renews the session although its response is
REBALANCE_IN_PROGRESS. This holds for members that have rejoined, too.

Members leave, or an administrator removes them by instance id. All members of the request are
removed first; then at most one rebalance starts.

Source   GroupMetadataManager.classicGroupHeartbeat, classicGroupLeave;
         docs/behaviour/coordinator.md#6-heartbeat, docs/behaviour/coordinator.md#7-leavegroup;
         KIP-345 (batches).
"""

from kafka_rebalance.wire.classic_groups import (
    UNKNOWN_MEMBER,
    Heartbeat,
    HeartbeatResponse,
    LeaveGroup,
    LeaveGroupResponse,
    LeftMember,
    MemberIdentity,
)
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import GroupState

from ..machine.events import Received
from ..machine.state import CoordinatorState
from .group import Group
from .member_checks import refuse_in_state, refuse_member
from .rebalance import prepare, remove, try_complete_join


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


def leave_group(state: CoordinatorState, event: Received, request: LeaveGroup) -> None:
    """Removes members; the response is sent when the append of this step, if any, is durable."""
    group = state.classic(request.group_id)
    error = refuse_in_state(group, request)
    if group is None:
        entries = tuple(LeftMember(*entry, error) for entry in request.members)
        state.respond(event.request_id, LeaveGroupResponse(members=entries))
        return
    if error is not ErrorCode.NONE:
        state.respond(event.request_id, LeaveGroupResponse(error_code=error))
        return
    entries = tuple(LeftMember(*entry, _take_out(state, group, entry)) for entry in request.members)
    with state.answering(event.request_id, request, LeaveGroupResponse(members=entries)):
        if all(entry.error_code is not ErrorCode.NONE for entry in entries):
            return
        if group.is_(GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            prepare(state, group)
        elif group.is_(GroupState.PREPARING_REBALANCE):
            try_complete_join(state, group)


def _take_out(state: CoordinatorState, group: Group, entry: MemberIdentity) -> ErrorCode:
    member_id, instance = entry
    if member_id == UNKNOWN_MEMBER:
        member_id = group.static_members.get(instance or "", UNKNOWN_MEMBER)
        if member_id == UNKNOWN_MEMBER:
            return ErrorCode.UNKNOWN_MEMBER_ID
    elif member_id in group.pending:
        group.remove(member_id)
        state.end_session(group, member_id)
        return ErrorCode.NONE
    else:
        error = group.check(member_id, instance)
        if error is not ErrorCode.NONE:
            return error
    state.end_session(group, member_id)
    remove(state, group, group.get(member_id))
    return ErrorCode.NONE
