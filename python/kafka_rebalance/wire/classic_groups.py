# SPDX-License-Identifier: Apache-2.0
"""Requests and responses of classic groups, and of administrators. Times are in ms.

Source   the request and response schemas of Kafka 4.4.0 (JoinGroupRequest.json, …).
"""

from typing import NamedTuple

from .error_codes import ErrorCode
from .messages import GroupState, Request, Response

NO_GENERATION = -1
UNKNOWN_MEMBER = ""


class JoinGroupProtocol(NamedTuple):
    """An assignor (or a protocol of Connect) that a member supports, with metadata for it."""

    name: str
    metadata: bytes


class MemberIdentity(NamedTuple):
    """A member that leaves or is removed; administrators may send only its instance id."""

    member_id: str = UNKNOWN_MEMBER
    group_instance_id: str | None = None


class FindCoordinatorResponse(Response):
    """The node id of the coordinator; -1 if there is an error."""

    error_code: ErrorCode = ErrorCode.NONE
    node_id: int = -1


class FindCoordinator(Request):
    """A client looks for the broker that coordinates a group."""

    response = FindCoordinatorResponse

    group_id: str


class JoinedMember(NamedTuple):
    """A member in the leader's JoinGroup response."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


class JoinGroupResponse(Response):
    """The response to JoinGroup. Only the leader gets `members`. KIP-814 adds `skip_assignment`."""

    error_code: ErrorCode = ErrorCode.NONE
    generation_id: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    member_id: str = UNKNOWN_MEMBER
    members: tuple[JoinedMember, ...] = ()


class JoinGroup(Request):
    """A member asks to join the next generation."""

    response = JoinGroupResponse

    group_id: str
    member_id: str = UNKNOWN_MEMBER
    group_instance_id: str | None = None
    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int = 300_000
    protocol_type: str = "consumer"
    protocols: tuple[JoinGroupProtocol, ...] = ()


class SyncGroupResponse(Response):
    """The member's assignment, with the group's protocol."""

    error_code: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


class SyncGroup(Request):
    """A member asks for its assignment; the leader's request contains all members' assignments."""

    response = SyncGroupResponse

    group_id: str
    member_id: str
    generation_id: int
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: tuple[tuple[str, bytes], ...] = ()


class HeartbeatResponse(Response):
    """The response to a heartbeat: only an error code."""

    error_code: ErrorCode = ErrorCode.NONE


class Heartbeat(Request):
    """A member reports that it is alive; the response shows whether it has to rejoin."""

    response = HeartbeatResponse

    group_id: str
    member_id: str
    generation_id: int
    group_instance_id: str | None = None


class LeftMember(NamedTuple):
    """The result of one entry of a LeaveGroup, with the ids of the request."""

    member_id: str
    group_instance_id: str | None
    error_code: ErrorCode


class LeaveGroupResponse(Response):
    """The results, one for each member of the request."""

    error_code: ErrorCode = ErrorCode.NONE
    members: tuple[LeftMember, ...] = ()


class LeaveGroup(Request):
    """Members leave, or an administrator removes them."""

    response = LeaveGroupResponse

    group_id: str
    members: tuple[MemberIdentity, ...]


# Administrators -----------------------------------------------------------------------------------


class DeleteGroupsResponse(Response):
    """The response to DeleteGroups: pairs (group id, error code), in the request's order."""

    groups: tuple[tuple[str, ErrorCode], ...] = ()


class DeleteGroups(Request):
    """An administrator deletes empty groups."""

    response = DeleteGroupsResponse

    group_ids: tuple[str, ...]

    def refused(self, error: ErrorCode) -> DeleteGroupsResponse:
        return DeleteGroupsResponse(groups=tuple((one, error) for one in self.group_ids))


class DescribedMember(NamedTuple):
    """A member in DescribeGroups; as in Kafka, it has `metadata` only if the group is Stable."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class DescribedGroup(NamedTuple):
    """A group in DescribeGroups. `state` is Dead for an absent group, None after an error."""

    group_id: str
    error_code: ErrorCode = ErrorCode.NONE
    state: GroupState | None = GroupState.DEAD
    protocol_type: str = ""
    protocol_name: str = ""
    members: tuple[DescribedMember, ...] = ()


class DescribeGroupsResponse(Response):
    """Descriptions of groups, in the request's order."""

    groups: tuple[DescribedGroup, ...] = ()


class DescribeGroups(Request):
    """An administrator asks for the state and the members of groups."""

    response = DescribeGroupsResponse

    group_ids: tuple[str, ...]

    def refused(self, error: ErrorCode) -> DescribeGroupsResponse:
        groups = tuple(DescribedGroup(one, error, None) for one in self.group_ids)
        return DescribeGroupsResponse(groups=groups)


class ListedGroup(NamedTuple):
    """One group; its type is "classic", "consumer", "share" or "streams"."""

    group_id: str
    protocol_type: str
    state: GroupState
    group_type: str = "classic"


class ListGroupsResponse(Response):
    """The coordinator's groups, or those of the requested states and types."""

    error_code: ErrorCode = ErrorCode.NONE
    groups: tuple[ListedGroup, ...] = ()


class ListGroups(Request):
    """An administrator lists groups. `states` and `types` select some, in upper or lower case."""

    response = ListGroupsResponse

    states: tuple[GroupState | str, ...] = ()
    types: tuple[str, ...] = ()
