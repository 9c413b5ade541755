# SPDX-License-Identifier: Apache-2.0
"""Builds responses that refuse a whole request; the field of the error depends on the request."""

from collections.abc import Callable
from typing import Any

from kafka_rebalance.wire.broker_groups import (
    ConsumerGroupDescribe,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeat,
    ConsumerGroupHeartbeatResponse,
    DescribedConsumerGroup,
    DescribedShareGroup,
    ShareGroupDescribe,
    ShareGroupDescribeResponse,
    ShareGroupHeartbeat,
    ShareGroupHeartbeatResponse,
)
from kafka_rebalance.wire.classic_groups import (
    DeleteGroups,
    DeleteGroupsResponse,
    DescribedGroup,
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
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import Request, Response
from kafka_rebalance.wire.offsets import (
    EndTransaction,
    EndTransactionResponse,
    OffsetCommit,
    OffsetCommitResponse,
    OffsetDelete,
    OffsetDeleteResponse,
    OffsetFetch,
    OffsetFetchResponse,
    PartitionError,
    TxnOffsetCommit,
)
from kafka_rebalance.wire.streams_groups import (
    DescribedStreamsGroup,
    StreamsGroupDescribe,
    StreamsGroupDescribeResponse,
    StreamsGroupHeartbeat,
    StreamsGroupHeartbeatResponse,
)

# The requests whose response has one error code for the whole request.
_RESPONSES: dict[type[Request], Callable[..., Response]] = {
    FindCoordinator: FindCoordinatorResponse,
    JoinGroup: JoinGroupResponse,
    SyncGroup: SyncGroupResponse,
    Heartbeat: HeartbeatResponse,
    LeaveGroup: LeaveGroupResponse,
    EndTransaction: EndTransactionResponse,
    OffsetFetch: OffsetFetchResponse,
    OffsetDelete: OffsetDeleteResponse,
    ListGroups: ListGroupsResponse,
    ConsumerGroupHeartbeat: ConsumerGroupHeartbeatResponse,
    ShareGroupHeartbeat: ShareGroupHeartbeatResponse,
    StreamsGroupHeartbeat: StreamsGroupHeartbeatResponse,
}

# Each request that describes groups, with a group of its response and the response.
_DESCRIBED: dict[type[Request], tuple[Callable[..., Any], Callable[..., Any]]] = {
    ConsumerGroupDescribe: (
        DescribedConsumerGroup,
        ConsumerGroupDescribeResponse,
    ),
    ShareGroupDescribe: (
        DescribedShareGroup,
        ShareGroupDescribeResponse,
    ),
    StreamsGroupDescribe: (
        DescribedStreamsGroup,
        StreamsGroupDescribeResponse,
    ),
}


def refuse(request: Request, error: ErrorCode) -> Response:
    """Returns the response to `request` that contains only `error`."""
    match request:
        case OffsetCommit(offsets=offsets) | TxnOffsetCommit(offsets=offsets):
            codes = (PartitionError(one.topic, one.partition, error) for one in offsets)
            return OffsetCommitResponse(partitions=tuple(codes))
        case DeleteGroups(group_ids=ids):
            return DeleteGroupsResponse(groups=tuple((one, error) for one in ids))
        case DescribeGroups(group_ids=ids):
            groups = tuple(DescribedGroup(one, error, None) for one in ids)
            return DescribeGroupsResponse(groups=groups)
        case (
            ConsumerGroupDescribe(group_ids=ids)
            | ShareGroupDescribe(group_ids=ids)
            | StreamsGroupDescribe(group_ids=ids)
        ):
            described, response = _DESCRIBED[type(request)]
            refused: Response = response(
                groups=tuple(described(error_code=error, group_id=one) for one in ids)
            )
            return refused
    return _RESPONSES[type(request)](error_code=error)
