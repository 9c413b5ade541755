# SPDX-License-Identifier: Apache-2.0
"""DescribeGroups and ListGroups: show groups to administrators.

Both requests read durable groups, so a group whose first record is still in flight is absent.
A description has metadata and protocol only in Stable, and the stored assignments in every state.
An absent group, and one of another kind, is described as Dead; from version 6 on, the response also
has an error (KIP-1043).
"""

from kafka_rebalance.wire.classic_groups import (
    DescribedGroup,
    DescribedMember,
    DescribeGroups,
    DescribeGroupsResponse,
    ListedGroup,
    ListGroups,
    ListGroupsResponse,
)
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import GroupState

from ..machine.events import Received
from ..machine.state import AnyGroup, CoordinatorState, of_kind
from .group import Group

_ABSENT_IS_NOT_FOUND = 6


def describe_groups(state: CoordinatorState, event: Received, request: DescribeGroups) -> None:
    """Describes groups; the response is sent at once."""
    new = event.api_version is None or event.api_version >= _ABSENT_IS_NOT_FOUND
    absent = ErrorCode.GROUP_ID_NOT_FOUND if new else ErrorCode.NONE
    described = []
    for group_id in request.group_ids:
        group = of_kind(state.durable_group(group_id), Group)
        if group is not None:
            described.append(_describe(group))
        else:
            described.append(DescribedGroup(group_id, absent))
    state.respond(event.request_id, DescribeGroupsResponse(groups=tuple(described)))


def _describe(group: Group) -> DescribedGroup:
    stable = group.is_(GroupState.STABLE)
    members = tuple(
        DescribedMember(
            one.member_id,
            one.group_instance_id,
            one.client_id,
            one.client_host,
            one.metadata(group.protocol_name) if stable else b"",
            one.assignment,
        )
        for one in group.members.values()
    )
    return DescribedGroup(
        group.group_id,
        ErrorCode.NONE,
        group.state,
        group.protocol_type or "",
        (group.protocol_name or "") if stable else "",
        members,
    )


def list_groups(state: CoordinatorState, event: Received, request: ListGroups) -> None:
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
    state.respond(event.request_id, ListGroupsResponse(groups=listed))


def _filter_name(group: ListedGroup) -> str:
    """Returns how a filter must name the group's state. Quirk: NotReady is `not_ready` there."""
    is_not_ready = group.state is GroupState.NOT_READY
    return "not_ready" if is_not_ready else group.state.value.lower()


def _listed(group: AnyGroup | None) -> ListedGroup | None:
    if group is None:
        return None
    # Kafka's names of the protocol type and of the group's type are equal, but for classic groups.
    classic = of_kind(group, Group)
    protocol_type = group.group_type if classic is None else classic.protocol_type or ""
    return ListedGroup(group.group_id, protocol_type, group.state, group.group_type)
