# SPDX-License-Identifier: Apache-2.0
"""What the machine asks of classic groups; DescribeGroups and ListGroups for administrators.

Both requests read durable groups, so a group whose first record is still in flight is absent.
"""

from kafka_rebalance.wire import classic_groups as wire
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import GroupState
from kafka_rebalance.wire.offsets import OffsetDelete

from ..machine.deadlines import INITIAL_REBALANCE, MEMBER_KINDS, DeadlineKey
from ..machine.events import LogRecord, Received
from ..machine.state import AnyGroup, CoordinatorState, GroupKind, of_kind
from . import rebalance
from .group import CONSUMER, Group, group_tombstone
from .member_requests import refuse_in_state

_ABSENT_IS_NOT_FOUND = 6


class ClassicGroups(GroupKind):
    """Classic groups."""

    fall_silent = staticmethod(rebalance.fall_silent)

    def start_members(self, state: CoordinatorState, group: Group) -> None:
        for member in group.members.values():
            state.renew_session(group, member)
        if len(group.members) > state.config.group_max_size:
            # `group.max.size` was lowered: all members rejoin, and the last to do so are refused.
            rebalance.prepare(state, group)

    def deadline(self, state: CoordinatorState, group: Group, key: DeadlineKey) -> None:
        if key.kind == INITIAL_REBALANCE or (key.kind in MEMBER_KINDS and key.member_id):
            return  # a deadline of the group that had this id before, or of its member
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
        other = group.not_(GroupState.EMPTY) and group.protocol_type != CONSUMER
        return ErrorCode.NON_EMPTY_GROUP if other else ErrorCode.NONE


# Administrators -----------------------------------------------------------------------------------


def describe_groups(state: CoordinatorState, event: Received, request: wire.DescribeGroups) -> None:
    """Describes groups; the response is sent at once."""
    new = event.api_version is None or event.api_version >= _ABSENT_IS_NOT_FOUND
    absent = ErrorCode.GROUP_ID_NOT_FOUND if new else ErrorCode.NONE
    described = []
    for group_id in request.group_ids:
        group = of_kind(state.durable_group(group_id), Group)
        if group is not None:
            described.append(_describe(group))
        else:
            described.append(wire.DescribedGroup(group_id, absent))
    state.respond(event.request_id, wire.DescribeGroupsResponse(groups=tuple(described)))


def _describe(group: Group) -> wire.DescribedGroup:
    stable = group.is_(GroupState.STABLE)
    members = tuple(
        wire.DescribedMember(
            one.member_id,
            one.group_instance_id,
            one.client_id,
            one.client_host,
            one.metadata(group.protocol_name) if stable else b"",
            one.assignment,
        )
        for one in group.members.values()
    )
    return wire.DescribedGroup(
        group.group_id,
        ErrorCode.NONE,
        group.state,
        group.protocol_type or "",
        (group.protocol_name or "") if stable else "",
        members,
    )


def list_groups(state: CoordinatorState, event: Received, request: wire.ListGroups) -> None:
    """Lists groups; the response is sent at once."""
    known = dict.fromkeys([*state.groups, *(group.group_id for group in state.removed)])
    for write in state.writes.values():
        known |= {group.group_id: None for group in write.deleted}
    groups = (state.durable_group(group_id) for group_id in known)
    states = {str(one).lower() for one in request.states}
    types = {one.lower() for one in request.types}
    listed = tuple(
        one
        for one in map(_listed, groups)
        if one is not None
        and (not states or _filter_name(one) in states)
        and (not types or one.group_type in types)
    )
    state.respond(event.request_id, wire.ListGroupsResponse(groups=listed))


def _filter_name(group: wire.ListedGroup) -> str:
    """Returns the name of the group's state in a filter. Quirk: NotReady is `not_ready`."""
    is_not_ready = group.state is GroupState.NOT_READY
    return "not_ready" if is_not_ready else group.state.value.lower()


def _listed(group: AnyGroup | None) -> wire.ListedGroup | None:
    if group is None:
        return None
    # The protocol type and the group's type have the same name, except in classic groups.
    classic = of_kind(group, Group)
    protocol_type = group.group_type if classic is None else classic.protocol_type or ""
    return wire.ListedGroup(group.group_id, protocol_type, group.state, group.group_type)
