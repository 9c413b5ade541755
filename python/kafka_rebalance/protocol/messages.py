# SPDX-License-Identifier: Apache-2.0
"""Defines the requests and responses of groups, with Kafka's field names. Times are in ms.

The messages of administrators stand in `admin_messages`, and have their names here too.

Source   the request and response schemas of Kafka 4.4.0 (JoinGroupRequest.json, …).
"""

from dataclasses import dataclass
from typing import NamedTuple

from .admin_messages import DeleteGroups as DeleteGroups
from .admin_messages import DeleteGroupsResponse as DeleteGroupsResponse
from .admin_messages import DescribedGroup as DescribedGroup
from .admin_messages import DescribedMember as DescribedMember
from .admin_messages import DescribeGroups as DescribeGroups
from .admin_messages import DescribeGroupsResponse as DescribeGroupsResponse
from .admin_messages import ListedGroup as ListedGroup
from .admin_messages import ListGroups as ListGroups
from .admin_messages import ListGroupsResponse as ListGroupsResponse
from .error_codes import ErrorCode
from .modern_messages import (
    ConsumerGroupDescribe,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeat,
    ConsumerGroupHeartbeatResponse,
    ShareGroupDescribe,
    ShareGroupDescribeResponse,
    ShareGroupHeartbeat,
    ShareGroupHeartbeatResponse,
)
from .streams_messages import (
    StreamsGroupDescribe,
    StreamsGroupDescribeResponse,
    StreamsGroupHeartbeat,
    StreamsGroupHeartbeatResponse,
)

NO_GENERATION = -1
NO_RETENTION = -1
UNKNOWN_MEMBER = ""


class JoinGroupProtocol(NamedTuple):
    """An assignor (or a protocol of Connect) that a member supports, with metadata for it."""

    name: str
    metadata: bytes


class MemberIdentity(NamedTuple):
    """A member that leaves or is removed; an administrator may give only the instance id."""

    member_id: str
    group_instance_id: str | None = None


class OffsetToCommit(NamedTuple):
    """One partition of an OffsetCommit; Kafka treats a null `metadata` as an empty text."""

    topic: str
    partition: int
    offset: int
    metadata: str | None = ""
    leader_epoch: int = -1


# Requests -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class FindCoordinator:
    """A client looks for the broker that coordinates a group."""

    group_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinGroup:
    """A member asks to belong to the next generation."""

    group_id: str
    member_id: str = UNKNOWN_MEMBER
    group_instance_id: str | None = None
    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int = 300_000
    protocol_type: str = "consumer"
    protocols: tuple[JoinGroupProtocol, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncGroup:
    """A member asks for its assignment; the leader's request contains all members' assignments."""

    group_id: str
    member_id: str
    generation_id: int
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """A member reports that it is alive; the response shows whether it has to rejoin."""

    group_id: str
    member_id: str
    generation_id: int
    group_instance_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveGroup:
    """Members leave, or an administrator removes them."""

    group_id: str
    members: tuple[MemberIdentity, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommit:
    """Offsets of a member, or of a client that is not a member (generation -1).

    Only versions 2 to 4 have `retention_ms`; -1 and None mean the broker's own setting.
    """

    group_id: str
    offsets: tuple[OffsetToCommit, ...]
    member_id: str = UNKNOWN_MEMBER
    generation_id: int = NO_GENERATION
    group_instance_id: str | None = None
    retention_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommit:
    """Offsets that become visible when the producer commits its transaction."""

    group_id: str
    producer_id: int
    offsets: tuple[OffsetToCommit, ...]
    member_id: str = UNKNOWN_MEMBER
    generation_id: int = NO_GENERATION
    group_instance_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTransaction:
    """The transaction coordinator ends a producer's transaction with a marker (WriteTxnMarkers)."""

    producer_id: int
    committed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetch:
    """A client reads the committed offsets of `partitions` (topic, partition); None means all.

    A member of a consumer group can send its id and epoch.
    """

    group_id: str
    partitions: tuple[tuple[str, int], ...] | None = None
    require_stable: bool = False
    member_id: str | None = None
    member_epoch: int = NO_GENERATION


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetDelete:
    """An administrator deletes a group's offsets of these partitions (topic, partition)."""

    group_id: str
    partitions: tuple[tuple[str, int], ...]


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
    | ConsumerGroupHeartbeat
    | ConsumerGroupDescribe
    | ShareGroupHeartbeat
    | ShareGroupDescribe
    | StreamsGroupHeartbeat
    | StreamsGroupDescribe
)


# Responses ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class FindCoordinatorResponse:
    """The coordinator's node; `node_id` is -1 with an error."""

    error_code: ErrorCode = ErrorCode.NONE
    node_id: int = -1


class JoinedMember(NamedTuple):
    """A member in the leader's JoinGroup response."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinGroupResponse:
    """Only the leader receives `members`; `skip_assignment` exists from version 9 on (KIP-814)."""

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
    """The member's assignment, with the group's protocol."""

    error_code: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatResponse:
    """The response to a heartbeat: only an error code."""

    error_code: ErrorCode = ErrorCode.NONE


class LeftMember(NamedTuple):
    """The result of one entry of a LeaveGroup, with the ids of the request."""

    member_id: str
    group_instance_id: str | None
    error_code: ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveGroupResponse:
    """The results, one for each member of the request."""

    error_code: ErrorCode = ErrorCode.NONE
    members: tuple[LeftMember, ...] = ()


class PartitionError(NamedTuple):
    """The error code of one partition."""

    topic: str
    partition: int
    error_code: ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitResponse:
    """Responds to OffsetCommit and TxnOffsetCommit: a code for each partition, in request order."""

    partitions: tuple[PartitionError, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTransactionResponse:
    """Reports whether the transaction's marker was written."""

    error_code: ErrorCode = ErrorCode.NONE


class FetchedOffset(NamedTuple):
    """A committed offset; a partition without one has offset -1 and no metadata."""

    topic: str
    partition: int
    offset: int = -1
    leader_epoch: int = -1
    metadata: str = ""
    error_code: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchResponse:
    """Committed offsets, in the request's order; sorted by partition if it asks for all."""

    error_code: ErrorCode = ErrorCode.NONE
    offsets: tuple[FetchedOffset, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetDeleteResponse:
    """The error code of the group, or one for each partition."""

    error_code: ErrorCode = ErrorCode.NONE
    partitions: tuple[PartitionError, ...] = ()


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
    | ConsumerGroupHeartbeatResponse
    | ConsumerGroupDescribeResponse
    | ShareGroupHeartbeatResponse
    | ShareGroupDescribeResponse
    | StreamsGroupHeartbeatResponse
    | StreamsGroupDescribeResponse
)
