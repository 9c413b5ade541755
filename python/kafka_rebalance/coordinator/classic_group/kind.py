# SPDX-License-Identifier: Apache-2.0
"""SyncGroup, Heartbeat and LeaveGroup of members; classic groups as a `GroupKind`; descriptions.

In CompletingRebalance, a SyncGroup is parked until the leader's assignment is stored. A heartbeat
in PreparingRebalance renews the session although its response is REBALANCE_IN_PROGRESS. All members
in a LeaveGroup are removed first; then at most one rebalance starts.

A request is checked in this order: the group's state, the member's ids, the generation; then
REBALANCE_IN_PROGRESS, which only members of the present generation receive.

DescribeGroups and ListGroups, from administrators, read durable groups: a group whose first record
is still in flight is absent.

Source   GroupMetadataManager.classicGroupSync, classicGroupHeartbeat, classicGroupLeave,
         validateClassicGroupSync, validateClassicGroupHeartbeat; ClassicGroup.validateOffsetCommit,
         validateOffsetDelete, validateDeleteGroup (Kafka 4.4.0);
         docs/behaviour/coordinator.md#5-syncgroup, docs/behaviour/coordinator.md#6-heartbeat,
         docs/behaviour/coordinator.md#7-leavegroup.
"""

from kafka_rebalance.wire import classic_groups as wire
from kafka_rebalance.wire.error_codes import ErrorCode, of_append_error
from kafka_rebalance.wire.messages import GroupState, Request, common_fields
from kafka_rebalance.wire.offsets import CommitRequest, OffsetCommit, OffsetDelete, TxnOffsetCommit

from ..machine.deadlines import INITIAL_REBALANCE, MEMBER_KINDS, DeadlineKey
from ..machine.events import Answer, Continuation, LogRecord, Received
from ..machine.state import GroupKind, Shard, Write, of_kind
from . import rebalance
from .group import CONSUMER, ClassicGroupMember, Group, group_record, group_tombstone

_S = GroupState
_E = ErrorCode
_Errors = dict[GroupState | None, ErrorCode]
_UNAVAILABLE: _Errors = {_S.DEAD: _E.COORDINATOR_NOT_AVAILABLE}
_UNKNOWN: _Errors = {None: _E.UNKNOWN_MEMBER_ID, _S.EMPTY: _E.UNKNOWN_MEMBER_ID}
_REBALANCING: _Errors = {_S.PREPARING_REBALANCE: _E.REBALANCE_IN_PROGRESS}
_ABSENT: _Errors = {None: _E.GROUP_ID_NOT_FOUND, _S.DEAD: _E.GROUP_ID_NOT_FOUND}
_NON_EMPTY = (_S.PREPARING_REBALANCE, _S.COMPLETING_REBALANCE, _S.STABLE)

# Request -> state -> error; None stands for an absent group. A state left out has no error.
ERROR_BY_STATE: dict[type[Request], _Errors] = {
    wire.JoinGroup: {**_UNAVAILABLE},
    wire.SyncGroup: {**_UNKNOWN, **_REBALANCING, **_UNAVAILABLE},
    wire.Heartbeat: {**_UNKNOWN, **_REBALANCING, **_UNAVAILABLE},
    wire.LeaveGroup: {None: _E.UNKNOWN_MEMBER_ID, **_UNAVAILABLE},
    OffsetCommit: {_S.COMPLETING_REBALANCE: _E.REBALANCE_IN_PROGRESS, **_UNAVAILABLE},
    TxnOffsetCommit: {**_UNAVAILABLE},
    OffsetDelete: {**_ABSENT},
    wire.DeleteGroups: {**_ABSENT, **dict.fromkeys(_NON_EMPTY, _E.NON_EMPTY_GROUP)},
}


def refuse_in_state(group: Group | None, request: Request) -> ErrorCode:
    """Returns the error in ERROR_BY_STATE for the group's state; NONE if there is no error."""
    state = None if group is None else group.state
    return ERROR_BY_STATE[type(request)].get(state, ErrorCode.NONE)


def refuse_member(
    group: Group | None, request: wire.SyncGroup | wire.Heartbeat | CommitRequest
) -> ErrorCode:
    """Returns the error for a member's request (state, ids, generation), or NONE."""
    error = refuse_in_state(group, request)
    if group is None or error not in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
        return error
    if unknown := group.check(request.member_id, request.group_instance_id):
        return unknown
    return error if request.generation_id == group.generation_id else ErrorCode.ILLEGAL_GENERATION


_NAMES_ITS_PROTOCOL = 5


class StoreAssignment(Continuation):
    """After the append, all members get the leader's assignment, and the group becomes Stable."""

    group: Group
    generation_id: int
    assignment: dict[str, bytes]

    def done(self, state: Shard) -> None:
        group = self.group
        if self._is_current():
            for member in group.members.values():
                member.assignment = self.assignment.get(member.member_id, b"")
                rebalance.hand_out(state, group, member, ErrorCode.NONE)
            state.move(group, GroupState.STABLE)

    def failed(self, state: Shard, error: ErrorCode) -> None:
        if self._is_current():
            rebalance.drop_assignments(state, self.group, of_append_error(error))
            rebalance.prepare(state, self.group)

    def _is_current(self) -> bool:
        """Returns whether no new rebalance has begun."""
        is_same = self.generation_id == self.group.generation_id
        return is_same and self.group.is_(GroupState.COMPLETING_REBALANCE)


def sync_group(state: Shard, event: Received, request: wire.SyncGroup) -> None:
    """Answers a SyncGroup, or parks it until the leader's assignment is stored."""
    group = state.classic(request.group_id)
    error = _check(event, request, group)
    if group is None or error is not ErrorCode.NONE:
        state.respond(event.request_id, wire.SyncGroupResponse(error_code=error))
        return
    member = group.members[request.member_id]
    group.pending_sync.pop(member.member_id, None)
    if not group.pending_sync:
        rebalance.stop_waiting_for_syncs(state, group)
    state.park_sync(member, event.request_id)
    if group.is_(GroupState.STABLE):
        # `hand_out` would renew the session; Kafka does not renew it for this SyncGroup.
        response = wire.SyncGroupResponse(
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            assignment=member.assignment,
        )
        state.answer_sync(member, response)
    elif group.is_leader(member.member_id):
        given = dict(request.assignments)
        assignment = {member_id: given.get(member_id, b"") for member_id in group.members}
        then = StoreAssignment(group, group.generation_id, assignment)
        state.append([state.record(group_record, group, assignment)], Write(then))


def _check(event: Received, request: wire.SyncGroup, group: Group | None) -> ErrorCode:
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


def heartbeat(state: Shard, event: Received, request: wire.Heartbeat) -> None:
    """Answers a Heartbeat; a refused Heartbeat does not renew the session."""
    group = state.classic(request.group_id)
    error = refuse_member(group, request)
    response = wire.HeartbeatResponse(error_code=error)
    if group is not None and error in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
        state.renew_session(group, group.members[request.member_id])
        state.answer_when_durable(Answer(event.request_id, response, request))
    else:
        state.respond(event.request_id, response)


def leave_group(state: Shard, event: Received, request: wire.LeaveGroup) -> None:
    """Removes members; the response waits until this request's append, if any, is durable."""
    group = state.classic(request.group_id)
    error = refuse_in_state(group, request)
    if group is None:
        entries = tuple(wire.LeftMember(*entry, error) for entry in request.members)
        state.respond(event.request_id, wire.LeaveGroupResponse(members=entries))
        return
    if error is not ErrorCode.NONE:
        state.respond(event.request_id, wire.LeaveGroupResponse(error_code=error))
        return
    entries = tuple(
        wire.LeftMember(*entry, _take_out(state, group, entry)) for entry in request.members
    )
    with state.answering(event.request_id, request, wire.LeaveGroupResponse(members=entries)):
        if all(entry.error_code for entry in entries):
            return
        if group.is_(GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            rebalance.prepare(state, group)
        elif group.is_(GroupState.PREPARING_REBALANCE):
            rebalance.try_complete_join(state, group)


def _take_out(state: Shard, group: Group, entry: wire.MemberIdentity) -> ErrorCode:
    member_id, instance = entry
    if member_id == wire.UNKNOWN_MEMBER:
        member_id = group.static_members.get(instance or "", wire.UNKNOWN_MEMBER)
        if member_id == wire.UNKNOWN_MEMBER:
            return ErrorCode.UNKNOWN_MEMBER_ID
    elif member_id in group.pending:
        group.remove(member_id)
        state.end_session(group, member_id)
        return ErrorCode.NONE
    elif error := group.check(member_id, instance):
        return error
    state.end_session(group, member_id)
    rebalance.remove(state, group, group.members[member_id])
    return ErrorCode.NONE


# The kind ----------------------------------------------------------------------------------------


class ClassicGroups(GroupKind):
    fall_silent = staticmethod(rebalance.fall_silent)

    def start_members(self, state: Shard, group: Group) -> None:
        for member in group.members.values():
            state.renew_session(group, member)
        if len(group.members) > state.config.group_max_size:
            # `group.max.size` was lowered: all members rejoin, and the last to do so are refused.
            rebalance.prepare(state, group)

    def deadline(self, state: Shard, group: Group, key: DeadlineKey) -> None:
        if key.kind == INITIAL_REBALANCE or (key.kind in MEMBER_KINDS and key.member_id):
            return  # the deadline belongs to an earlier group with this id, or to its member
        if key.kind == "join":
            rebalance.join_deadline(state, group)
        elif key.kind == "sync":
            rebalance.sync_deadline(state, group)
        else:
            rebalance.session_deadline(state, group, key.member_id)

    def tombstones(self, group: Group) -> list[LogRecord]:
        return [group_tombstone(group.group_id)]

    def refuse_deletion(self, group: Group, request: wire.DeleteGroups | OffsetDelete) -> ErrorCode:
        error = refuse_in_state(group, request)
        if type(request) is wire.DeleteGroups or error is not ErrorCode.NONE:
            return error
        other = not group.is_empty and group.protocol_type != CONSUMER
        return ErrorCode.NON_EMPTY_GROUP if other else ErrorCode.NONE


# Administrators -----------------------------------------------------------------------------------

_ABSENT_IS_NOT_FOUND = 6


def describe_groups(state: Shard, event: Received, request: wire.DescribeGroups) -> None:
    """Describes groups; the response is sent at once."""
    new = event.api_version is None or event.api_version >= _ABSENT_IS_NOT_FOUND
    absent = ErrorCode.GROUP_ID_NOT_FOUND if new else ErrorCode.NONE
    described = []
    for group_id in request.group_ids:
        group = of_kind(state.durable_group(group_id), Group)
        there = group and _describe(group)
        described.append(there or wire.DescribedGroup(group_id, absent))
    state.respond(event.request_id, wire.DescribeGroupsResponse(groups=tuple(described)))


def _describe(group: Group) -> wire.DescribedGroup:
    stable = group.is_(GroupState.STABLE)

    def member(one: ClassicGroupMember) -> wire.DescribedMember:
        metadata = one.metadata(group.protocol_name) if stable else b""
        fields = common_fields(one, wire.DescribedMember)
        return wire.DescribedMember(**fields | {"metadata": metadata})

    members = tuple(map(member, group.members.values()))
    protocols = group.protocol_type or "", (group.protocol_name or "") if stable else ""
    return wire.DescribedGroup(group.group_id, ErrorCode.NONE, group.state, *protocols, members)


def list_groups(state: Shard, event: Received, request: wire.ListGroups) -> None:
    """Lists groups; the response is sent at once."""
    known = dict.fromkeys([*state.groups, *(group.group_id for group in state.removed)])
    for write in state.writes.values():
        known |= {group.group_id: None for group in write.deleted}
    states = {str(one).lower() for one in request.states}
    types = {one.lower() for one in request.types}
    listed = []
    for group in map(state.durable_group, known):
        if group is None:
            continue
        # Quirk: the name of NotReady in a filter is `not_ready`.
        is_not_ready = group.state is GroupState.NOT_READY
        name = "not_ready" if is_not_ready else group.state.value.lower()
        if (not states or name in states) and (not types or group.group_type in types):
            # Only classic groups have a protocol type; for others, the group's type is listed.
            classic = of_kind(group, Group)
            protocol = group.group_type if classic is None else classic.protocol_type or ""
            ids = group.group_id, protocol, group.state, group.group_type
            listed.append(wire.ListedGroup(*ids))
    state.respond(event.request_id, wire.ListGroupsResponse(groups=tuple(listed)))
