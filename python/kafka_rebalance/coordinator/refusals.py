# SPDX-License-Identifier: Apache-2.0
"""Responses that refuse a whole request; each kind of response has its error in another place."""

from kafka_rebalance.protocol.error_codes import ErrorCode
from kafka_rebalance.protocol.messages import (
    DeleteGroups,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribeGroups,
    DescribeGroupsResponse,
    EndTransaction,
    EndTransactionResponse,
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
    OffsetCommit,
    OffsetCommitResponse,
    OffsetDelete,
    OffsetDeleteResponse,
    OffsetFetch,
    OffsetFetchResponse,
    PartitionError,
    Request,
    Response,
    SyncGroup,
    SyncGroupResponse,
    TxnOffsetCommit,
)


def refuse(request: Request, error: ErrorCode) -> Response:
    """Returns the response to `request` that carries only `error`."""
    match request:
        case FindCoordinator():
            return FindCoordinatorResponse(error_code=error)
        case JoinGroup():
            return JoinGroupResponse(error_code=error)
        case SyncGroup():
            return SyncGroupResponse(error_code=error)
        case Heartbeat():
            return HeartbeatResponse(error_code=error)
        case LeaveGroup():
            return LeaveGroupResponse(error_code=error)
        case OffsetCommit() | TxnOffsetCommit():
            codes = (PartitionError(one.topic, one.partition, error) for one in request.offsets)
            return OffsetCommitResponse(partitions=tuple(codes))
        case EndTransaction():
            return EndTransactionResponse(error_code=error)
        case OffsetFetch():
            return OffsetFetchResponse(error_code=error)
        case OffsetDelete():
            return OffsetDeleteResponse(error_code=error)
        case DeleteGroups():
            return DeleteGroupsResponse(groups=tuple((one, error) for one in request.group_ids))
        case DescribeGroups():
            groups = (DescribedGroup(one, error, None) for one in request.group_ids)
            return DescribeGroupsResponse(groups=tuple(groups))
        case ListGroups():
            return ListGroupsResponse(error_code=error)
