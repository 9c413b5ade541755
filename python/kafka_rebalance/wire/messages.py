# SPDX-License-Identifier: Apache-2.0
"""All requests and responses, and the event at which deadlines run."""

from dataclasses import dataclass

from .broker_groups import (
    ConsumerGroupDescribe,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeat,
    ConsumerGroupHeartbeatResponse,
    ShareGroupDescribe,
    ShareGroupDescribeResponse,
    ShareGroupHeartbeat,
    ShareGroupHeartbeatResponse,
)
from .classic_groups import (
    DeleteGroups,
    DeleteGroupsResponse,
    DescribeGroups,
    DescribeGroupsResponse,
    FindCoordinator,
    FindCoordinatorResponse,
    Heartbeat,
    HeartbeatResponse,
    JoinGroup,
    JoinGroupResponse,
    LeaveGroup,
    LeaveGroupResponse,
    ListGroups,
    ListGroupsResponse,
    SyncGroup,
    SyncGroupResponse,
)
from .offsets import (
    EndTransaction,
    EndTransactionResponse,
    OffsetCommit,
    OffsetCommitResponse,
    OffsetDelete,
    OffsetDeleteResponse,
    OffsetFetch,
    OffsetFetchResponse,
    TxnOffsetCommit,
)
from .streams_groups import (
    StreamsGroupDescribe,
    StreamsGroupDescribeResponse,
    StreamsGroupHeartbeat,
    StreamsGroupHeartbeatResponse,
)

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


@dataclass(frozen=True, slots=True)
class Tick:
    """The clock has reached a deadline."""
