# SPDX-License-Identifier: Apache-2.0
"""SyncGroup: members wait until the leader has sent the assignment and the log has stored it.

    CompletingRebalance  parked; the leader's assignment is appended, then sent to all members
    Stable               answered at once with the member's assignment
    other states         refused: see `member_checks`

Source   GroupMetadataManager.classicGroupSync; docs/behaviour/coordinator.md#5-syncgroup;
         KIP-559 (the request has the protocol's type and name).
"""

from kafka_rebalance.wire.classic_groups import SyncGroup, SyncGroupResponse
from kafka_rebalance.wire.error_codes import ErrorCode, of_append_error
from kafka_rebalance.wire.messages import GroupState

from ..machine.continuations import StoreAssignment
from ..machine.events import Received
from ..machine.state import CoordinatorState, Write
from .group import Group
from .member_checks import refuse_member
from .rebalance import drop_assignments, hand_out, prepare, stop_waiting_for_syncs
from .records import group_record

_NAMES_ITS_PROTOCOL = 5


def sync_group(state: CoordinatorState, event: Received, request: SyncGroup) -> None:
    """Answers a SyncGroup, or parks it until the leader's assignment is stored."""
    group = state.classic(request.group_id)
    error = _check(event, request, group)
    if group is None or error is not ErrorCode.NONE:
        state.respond(event.request_id, SyncGroupResponse(error_code=error))
        return
    member = group.get(request.member_id)
    group.pending_sync.pop(member.member_id, None)
    if not group.pending_sync:
        stop_waiting_for_syncs(state, group)
    state.park_sync(member, event.request_id)
    if group.is_(GroupState.STABLE):
        # `hand_out` would renew the session; Kafka does not renew it for this SyncGroup.
        response = SyncGroupResponse(
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            assignment=member.assignment,
        )
        state.answer_sync(member, response)
    elif group.is_leader(member.member_id):
        given = dict(request.assignments)
        assignment = {member_id: given.get(member_id, b"") for member_id in group.members}
        then = StoreAssignment(group, group.generation_id, assignment)
        state.append([group_record(group, assignment)], Write(then))


def _check(event: Received, request: SyncGroup, group: Group | None) -> ErrorCode:
    version = _NAMES_ITS_PROTOCOL if event.api_version is None else event.api_version
    sent_type, sent_name = request.protocol_type, request.protocol_name
    if version >= _NAMES_ITS_PROTOCOL and (sent_type is None or sent_name is None):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    error = refuse_member(group, request)
    if (
        group is not None
        and error in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS)
        and (_differ(sent_type, group.protocol_type) or _differ(sent_name, group.protocol_name))
    ):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return error


def _differ(sent: str | None, own: str | None) -> bool:
    return sent is not None and own is not None and sent != own


def stored(state: CoordinatorState, then: StoreAssignment) -> None:
    """Sends the stored assignment to all members, unless a new rebalance has begun."""
    group = then.group
    if not _is_current(then):
        return
    for member in group.members.values():
        member.assignment = then.assignment.get(member.member_id, b"")
        hand_out(state, group, member, ErrorCode.NONE)
    state.move(group, GroupState.STABLE)


def not_stored(state: CoordinatorState, then: StoreAssignment, error: ErrorCode) -> None:
    if _is_current(then):
        drop_assignments(state, then.group, of_append_error(error))
        prepare(state, then.group)


def _is_current(then: StoreAssignment) -> bool:
    group = then.group
    return group.is_(GroupState.COMPLETING_REBALANCE) and (
        then.generation_id == group.generation_id
    )
