# SPDX-License-Identifier: Apache-2.0
"""JoinGroup: decides who may join, with which member id, and whether the group rebalances.

0. The kind of the group, and whether it exists.
1. Capacity: `group.max.size`.
2. The group's protocols.
3. No member id: a known static member gets a new id, a new static member is added, a dynamic member
   gets an id and rejoins (KIP-394).
4. A member id: pending, known or fenced.
5. A known member: in PreparingRebalance, its JoinGroup is parked; in other states, a rebalance
   starts, or the JoinGroup is answered at once.

Source   GroupMetadataManager.classicGroupJoin; docs/behaviour/coordinator.md#3-joingroup;
         KIP-345 (static members), KIP-394, KIP-814 (skip_assignment).
"""

from collections.abc import Sequence
from dataclasses import replace

from kafka_rebalance.wire import classic_groups as wire
from kafka_rebalance.wire.error_codes import ErrorCode, of_append_error
from kafka_rebalance.wire.messages import GroupState, common_fields

from ..config import NEW_MEMBER_JOIN_TIMEOUT_MS
from ..machine.events import Continuation, LogRecord, Received
from ..machine.state import Shard, Write
from .group import ClassicGroupMember, Group, group_record, new_group_record, without_repeats
from .kind import refuse_in_state
from .rebalance import joined, prepare, rebalance_or_complete, try_complete_join

_NEWEST = 9
REQUIRES_KNOWN_ID = 4
_KNOWS_SKIPPING = 9


def join_group(
    state: Shard, event: Received, request: wire.JoinGroup, *, buried: Sequence[LogRecord] = ()
) -> None:
    """Answers a JoinGroup, or parks it until the join phase ends.

    `buried` holds the tombstones of an empty group of another kind, which a classic group replaces.
    """
    group = state.classic(request.group_id)
    is_new = group is None
    if group is None:
        if request.member_id != wire.UNKNOWN_MEMBER:
            _refuse(state, event, ErrorCode.UNKNOWN_MEMBER_ID, request.member_id)
            return
        group = state.create(request.group_id)
    protocols = without_repeats(request.protocols)
    if len(protocols) < len(request.protocols):
        request = replace(request, protocols=protocols)
    if version_of(event) == 0:
        # In version 0, one field is used for both timeouts.
        request = replace(request, rebalance_timeout_ms=request.session_timeout_ms)
    if not _has_room(state, group, request.member_id):
        group.remove(request.member_id)
        _refuse(state, event, ErrorCode.GROUP_MAX_SIZE_REACHED)
    elif error := refuse_in_state(group, request):
        _refuse(state, event, error, request.member_id)
    elif not group.supports(request.protocol_type, tuple([name for name, _ in request.protocols])):
        _refuse(state, event, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id)
    elif request.member_id == wire.UNKNOWN_MEMBER:
        _join_without_id(state, event, request, group)
    else:
        _join_with_id(state, event, request, group)
    if is_new:
        # This is the group's first record: if the append fails, the group is removed again.
        state.append([*buried, state.record(new_group_record, group)], Write(None))


def _has_room(state: Shard, group: Group, member_id: str) -> bool:
    limit = state.config.group_max_size
    if group.is_(GroupState.EMPTY, GroupState.DEAD):
        return True
    member = group.members.get(member_id)
    if group.is_(GroupState.PREPARING_REBALANCE):
        # If the limit was lowered below the group's size, the last members to rejoin are refused.
        waits = member is not None and member.parked_join is not None
        return waits or group.awaiting_join < limit
    return member is not None or len(group.members) < limit


def _join_without_id(state: Shard, event: Received, request: wire.JoinGroup, group: Group) -> None:
    instance = request.group_instance_id
    member_id = f"{event.client_id if instance is None else instance}-{state.new_id()}"
    if instance is None and version_of(event) >= REQUIRES_KNOWN_ID:
        group.add_pending(member_id)
        state.arm_session(group, member_id, request.session_timeout_ms)
        _refuse(state, event, ErrorCode.MEMBER_ID_REQUIRED, member_id)
    elif instance in group.static_members:
        _take_over(state, event, request, group, member_id)
    else:
        _add(state, event, request, group, member_id)


def _join_with_id(state: Shard, event: Received, request: wire.JoinGroup, group: Group) -> None:
    member_id = request.member_id
    if member_id in group.pending:
        if request.group_instance_id is not None:
            # A pending id belongs to a dynamic member, and the sender is a static one.
            _refuse(state, event, ErrorCode.UNKNOWN_SERVER_ERROR)
        else:
            _add(state, event, request, group, member_id)
        return
    if error := group.check(member_id, request.group_instance_id):
        _refuse(state, event, error, member_id)
        return
    member = group.members[member_id]
    unchanged = member.protocols == request.protocols
    if group.is_(GroupState.COMPLETING_REBALANCE) and unchanged:
        # The member may not have received our first response, so it is sent again.
        state.respond(event.request_id, joined(group, member, group.joined_members()))
    elif group.is_(GroupState.STABLE) and unchanged and not group.is_leader(member_id):
        state.respond(event.request_id, joined(group, member))
    elif group.is_(GroupState.EMPTY):
        _refuse(state, event, ErrorCode.UNKNOWN_MEMBER_ID, member_id)
    else:
        # A leader that rejoins with unchanged protocols has seen its topics change: assign again.
        group.update(member, request)
        state.park_join(group, member, event.request_id)
        rebalance_or_complete(state, group)


def _add(
    state: Shard, event: Received, request: wire.JoinGroup, group: Group, member_id: str
) -> None:
    member = ClassicGroupMember(
        **common_fields(replace(request, member_id=member_id), ClassicGroupMember),
        client_id=event.client_id,
        client_host=event.client_host,
        is_new=True,
        parked_join=event.request_id,
    )
    if group.is_(GroupState.PREPARING_REBALANCE) and group.previous_state is GroupState.EMPTY:
        group.new_member_added = True
    group.add(member)
    # A member sends no heartbeats before its first response, so its session timeout starts later.
    state.arm_session(group, member_id, NEW_MEMBER_JOIN_TIMEOUT_MS)
    rebalance_or_complete(state, group)


def _take_over(
    state: Shard, event: Received, request: wire.JoinGroup, group: Group, member_id: str
) -> None:
    """Replaces a restarted static member's id; the group may rebalance (step 3)."""
    assert request.group_instance_id is not None
    member = group.members[group.static_members[request.group_instance_id]]
    old_id, old_leader = member.member_id, group.leader_id
    # 1. Requests that are parked under the old id are answered with FENCED_INSTANCE_ID.
    state.refuse_parked(group, member, ErrorCode.FENCED_INSTANCE_ID, old_id)
    # 2. The new id replaces the old id; its session starts now.
    before = replace(member)
    group.replace_static(request.group_instance_id, member_id)
    state.renew_session(group, member)
    group.update(member, request)
    state.park_join(group, member, event.request_id)
    # 3. The group's state decides what follows.
    if group.is_(GroupState.PREPARING_REBALANCE):
        try_complete_join(state, group)
    elif group.is_(GroupState.COMPLETING_REBALANCE):
        # The leader may already be computing an assignment for the old id.
        prepare(state, group)
    elif group.select_protocol() == group.protocol_name:
        knows = version_of(event) >= _KNOWS_SKIPPING
        then = ReplaceStatic(group, before, old_leader, event.request_id, knows)
        assignment = {one.member_id: one.assignment for one in group.members.values()}
        state.append([group_record(group, assignment)], Write(then))
    else:
        rebalance_or_complete(state, group)


class ReplaceStatic(Continuation):
    """Answers a static member under its new id, without a rebalance; `before` has the old id."""

    group: Group
    before: ClassicGroupMember
    old_leader: str | None
    request_id: int
    knows_skipping: bool

    def done(self, state: Shard) -> None:
        """Answers the JoinGroup when the new id is in the log; the member keeps its assignment."""
        group, member = self.group, self._waiting_member()
        if member is None or not group.is_(GroupState.STABLE):
            return  # a new rebalance has begun, and will answer the JoinGroup
        leads = group.is_leader(member.member_id)
        if self.knows_skipping:
            response = joined(group, member, group.joined_members())
            response = replace(response, skip_assignment=leads)
        else:
            # A client that does not know `skip_assignment` would assign again if it were the
            # leader. So the response names the previous leader, and the member acts as a follower.
            response = replace(joined(group, member), leader=self.old_leader or "")
        state.answer_join(group, member, response)

    def failed(self, state: Shard, error: ErrorCode) -> None:
        """Makes the old id valid again, and refuses the JoinGroup."""
        group, before, member = self.group, self.before, self._waiting_member()
        if member is None:
            return
        response = replace(
            joined(group, member),
            error_code=of_append_error(error),
            leader=self.old_leader or "",
            member_id=wire.UNKNOWN_MEMBER,
        )
        state.answer_join(group, member, response)
        group.update(member, before)
        group.replace_static(before.group_instance_id or "", before.member_id)
        state.renew_session(group, member)

    def _waiting_member(self) -> ClassicGroupMember | None:
        """Returns the static member; None if it was removed, or its JoinGroup was answered."""
        group, instance = self.group, self.before.group_instance_id or ""
        member = group.members.get(group.static_members.get(instance, ""))
        waits = member is not None and member.parked_join == self.request_id
        return member if waits else None


def version_of(event: Received) -> int:
    """Returns the version of a JoinGroup."""
    return _NEWEST if event.api_version is None else event.api_version


def _refuse(
    state: Shard, event: Received, error: ErrorCode, member_id: str = wire.UNKNOWN_MEMBER
) -> None:
    response = wire.JoinGroupResponse(error_code=error, member_id=member_id)
    state.respond(event.request_id, response)
