# SPDX-License-Identifier: Apache-2.0
"""Classic groups as a `GroupKind`; DescribeGroups and ListGroups for administrators.

Both requests read durable groups, so a group whose first record is still in flight is absent.
"""

from kafka_rebalance.wire import classic_groups as wire
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import GroupState
from kafka_rebalance.wire.offsets import OffsetDelete

from ..machine.deadlines import INITIAL_REBALANCE, MEMBER_KINDS, DeadlineKey
from ..machine.events import LogRecord, Received
from ..machine.state import GroupKind, Shard, of_kind
from . import rebalance
from .group import CONSUMER, Group, group_tombstone
from .member_requests import refuse_in_state

_ABSENT_IS_NOT_FOUND = 6


class ClassicGroups(GroupKind):
    """The functions of classic groups, under the names in `GroupKind`."""

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
        other = group.not_(GroupState.EMPTY) and group.protocol_type != CONSUMER
        return ErrorCode.NON_EMPTY_GROUP if other else ErrorCode.NONE


# Administrators -----------------------------------------------------------------------------------


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
