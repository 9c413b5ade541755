# SPDX-License-Identifier: Apache-2.0
"""Builds responses that refuse a whole request; the field of the error depends on the request."""

from collections.abc import Callable
from typing import Any

from kafka_rebalance.protocol import messages, modern_messages, streams_messages
from kafka_rebalance.protocol.error_codes import ErrorCode

# The requests whose response has one error code for the whole request.
_RESPONSES: dict[type[messages.Request], Callable[..., messages.Response]] = {
    messages.FindCoordinator: messages.FindCoordinatorResponse,
    messages.JoinGroup: messages.JoinGroupResponse,
    messages.SyncGroup: messages.SyncGroupResponse,
    messages.Heartbeat: messages.HeartbeatResponse,
    messages.LeaveGroup: messages.LeaveGroupResponse,
    messages.EndTransaction: messages.EndTransactionResponse,
    messages.OffsetFetch: messages.OffsetFetchResponse,
    messages.OffsetDelete: messages.OffsetDeleteResponse,
    messages.ListGroups: messages.ListGroupsResponse,
    modern_messages.ConsumerGroupHeartbeat: modern_messages.ConsumerGroupHeartbeatResponse,
    modern_messages.ShareGroupHeartbeat: modern_messages.ShareGroupHeartbeatResponse,
    streams_messages.StreamsGroupHeartbeat: streams_messages.StreamsGroupHeartbeatResponse,
}

# Each request that describes groups, with a group of its response and the response.
_DESCRIBED: dict[type[messages.Request], tuple[Callable[..., Any], Callable[..., Any]]] = {
    modern_messages.ConsumerGroupDescribe: (
        modern_messages.DescribedConsumerGroup,
        modern_messages.ConsumerGroupDescribeResponse,
    ),
    modern_messages.ShareGroupDescribe: (
        modern_messages.DescribedShareGroup,
        modern_messages.ShareGroupDescribeResponse,
    ),
    streams_messages.StreamsGroupDescribe: (
        streams_messages.DescribedStreamsGroup,
        streams_messages.StreamsGroupDescribeResponse,
    ),
}


def refuse(request: messages.Request, error: ErrorCode) -> messages.Response:
    """Returns the response to `request` that contains only `error`."""
    match request:
        case messages.OffsetCommit(offsets=offsets) | messages.TxnOffsetCommit(offsets=offsets):
            codes = (messages.PartitionError(one.topic, one.partition, error) for one in offsets)
            return messages.OffsetCommitResponse(partitions=tuple(codes))
        case messages.DeleteGroups(group_ids=ids):
            return messages.DeleteGroupsResponse(groups=tuple((one, error) for one in ids))
        case messages.DescribeGroups(group_ids=ids):
            groups = tuple(messages.DescribedGroup(one, error, None) for one in ids)
            return messages.DescribeGroupsResponse(groups=groups)
        case (
            modern_messages.ConsumerGroupDescribe(group_ids=ids)
            | modern_messages.ShareGroupDescribe(group_ids=ids)
            | streams_messages.StreamsGroupDescribe(group_ids=ids)
        ):
            described, response = _DESCRIBED[type(request)]
            refused: messages.Response = response(
                groups=tuple(described(error_code=error, group_id=one) for one in ids)
            )
            return refused
    return _RESPONSES[type(request)](error_code=error)
