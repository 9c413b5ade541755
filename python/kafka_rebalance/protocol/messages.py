# SPDX-License-Identifier: Apache-2.0
"""Requests and responses: Kafka's fields under Kafka's names, in memory, not in bytes.

Times in ms.

Source   the request and response schemas of Kafka 4.4.0 (JoinGroupRequest.json, …).
"""

from dataclasses import dataclass
from typing import NamedTuple

from .error_codes import ErrorCode
from .group_state import GroupState

NO_GENERATION = -1
NO_RETENTION = -1
UNKNOWN_MEMBER = ""


class JoinGroupProtocol(NamedTuple):
    """One assignor (or Connect protocol) that a member supports, with its metadata for it."""

    name: str
    metadata: bytes


class MemberIdentity(NamedTuple):
    """Who leaves: by member id, or by instance id alone where an administrator removes it."""

    member_id: str
    group_instance_id: str | None = None


class OffsetToCommit(NamedTuple):
    """One partition of an OffsetCommit. `metadata` null is as empty."""

    topic: str
    partition: int
    offset: int
    metadata: str | None = ""
    leader_epoch: int = -1


# Requests -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class FindCoordinator:
    """Which broker coordinates a group."""

    group_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinGroup:
    """A member asks for a place in the next generation."""

    group_id: str
    member_id: str = UNKNOWN_MEMBER
    group_instance_id: str | None = None
    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int = 300_000
    protocol_type: str = "consumer"
    protocols: tuple[JoinGroupProtocol, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncGroup:
    """A member asks for its assignment; the leader brings everybody's."""

    group_id: str
    member_id: str
    generation_id: int
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """A member is alive."""

    group_id: str
    member_id: str
    generation_id: int
    group_instance_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveGroup:
    """Members leave, or are removed."""

    group_id: str
    members: tuple[MemberIdentity, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommit:
    """Offsets of a member, or of nobody (generation -1).

    `retention_ms` as versions 2 to 4 had it; -1 and None leave it to the broker's setting.
    """

    group_id: str
    offsets: tuple[OffsetToCommit, ...]
    member_id: str = UNKNOWN_MEMBER
    generation_id: int = NO_GENERATION
    group_instance_id: str | None = None
    retention_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommit:
    """Offsets that become visible when the producer's transaction commits."""

    group_id: str
    producer_id: int
    offsets: tuple[OffsetToCommit, ...]
    member_id: str = UNKNOWN_MEMBER
    generation_id: int = NO_GENERATION
    group_instance_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTransaction:
    """The transaction coordinator's marker for a producer (WriteTxnMarkers)."""

    producer_id: int
    committed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetch:
    """Committed offsets of `partitions` (topic, partition), or all where it is None."""

    group_id: str
    partitions: tuple[tuple[str, int], ...] | None = None
    require_stable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetDelete:
    """Forget offsets of (topic, partition)s."""

    group_id: str
    partitions: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteGroups:
    """Forget empty groups."""

    group_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeGroups:
    """State and members of groups."""

    group_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListGroups:
    """All groups, or those in the states named."""

    states: tuple[GroupState, ...] = ()


Request = (
    FindCoordinator
    | JoinGroup
    | SyncGroup
    | Heartbeat
    | LeaveGroup
    | OffsetCommit
    | TxnOffsetCommit
    | EndTransaction
    | OffsetFetch
    | OffsetDelete
    | DeleteGroups
    | DescribeGroups
    | ListGroups
)


# Responses ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class FindCoordinatorResponse:
    """`node_id` -1 where there is none."""

    error_code: ErrorCode = ErrorCode.NONE
    node_id: int = -1


class JoinedMember(NamedTuple):
    """A member as its leader sees it."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinGroupResponse:
    """`members` for the leader only; `skip_assignment` from version 9 on (KIP-814)."""

    error_code: ErrorCode = ErrorCode.NONE
    generation_id: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    member_id: str = UNKNOWN_MEMBER
    members: tuple[JoinedMember, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncGroupResponse:
    """The member's assignment."""

    error_code: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatResponse:
    """Nothing but a code."""

    error_code: ErrorCode = ErrorCode.NONE


class LeftMember(NamedTuple):
    """What became of one entry of a LeaveGroup; ids as they were sent."""

    member_id: str
    group_instance_id: str | None
    error_code: ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveGroupResponse:
    """One entry a member of the request."""

    error_code: ErrorCode = ErrorCode.NONE
    members: tuple[LeftMember, ...] = ()


class PartitionError(NamedTuple):
    """A code for one partition."""

    topic: str
    partition: int
    error_code: ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitResponse:
    """Also of TxnOffsetCommit: one entry a partition, in the request's order."""

    partitions: tuple[PartitionError, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTransactionResponse:
    """The marker is written, or not."""

    error_code: ErrorCode = ErrorCode.NONE


class FetchedOffset(NamedTuple):
    """A committed offset; -1 and no metadata where there is none."""

    topic: str
    partition: int
    offset: int = -1
    leader_epoch: int = -1
    metadata: str = ""
    error_code: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchResponse:
    """Offsets in the request's order."""

    error_code: ErrorCode = ErrorCode.NONE
    offsets: tuple[FetchedOffset, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetDeleteResponse:
    """The group's code, or one code a partition."""

    error_code: ErrorCode = ErrorCode.NONE
    partitions: tuple[PartitionError, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteGroupsResponse:
    """(group_id, code) in the request's order."""

    groups: tuple[tuple[str, ErrorCode], ...] = ()


class DescribedMember(NamedTuple):
    """A member as an administrator sees it; `metadata` in Stable only, as Kafka does."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class DescribedGroup(NamedTuple):
    """A group as an administrator sees it: Dead where it is not there; a refusal has no state."""

    group_id: str
    error_code: ErrorCode = ErrorCode.NONE
    state: GroupState | None = GroupState.DEAD
    protocol_type: str = ""
    protocol_name: str = ""
    members: tuple[DescribedMember, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeGroupsResponse:
    """Groups in the request's order."""

    groups: tuple[DescribedGroup, ...] = ()


class ListedGroup(NamedTuple):
    """One group of the list."""

    group_id: str
    protocol_type: str
    state: GroupState


@dataclass(frozen=True, slots=True, kw_only=True)
class ListGroupsResponse:
    """Groups in the order in which they were created."""

    error_code: ErrorCode = ErrorCode.NONE
    groups: tuple[ListedGroup, ...] = ()


Response = (
    FindCoordinatorResponse
    | JoinGroupResponse
    | SyncGroupResponse
    | HeartbeatResponse
    | LeaveGroupResponse
    | OffsetCommitResponse
    | EndTransactionResponse
    | OffsetFetchResponse
    | OffsetDeleteResponse
    | DeleteGroupsResponse
    | DescribeGroupsResponse
    | ListGroupsResponse
)
