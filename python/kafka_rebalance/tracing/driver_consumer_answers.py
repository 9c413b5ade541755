# SPDX-License-Identifier: Apache-2.0
"""Writes responses about groups whose brokers assign as JSON, for `driver.py`'s answers."""

from collections.abc import Callable

from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.protocol import messages, modern_messages, streams_messages
from kafka_rebalance.protocol.error_codes import ErrorCode

from .driver_commands import Json

NameOf = Callable[[Uuid], str]
"""Returns the name of a topic with this id."""


def answer_of_modern(response: messages.Response, name_of: NameOf) -> Json | None:
    """Returns the keys of a response about such groups, None for any other response."""
    match response:
        case (
            modern_messages.ConsumerGroupHeartbeatResponse(error_code=ErrorCode.NONE)
            | modern_messages.ShareGroupHeartbeatResponse(error_code=ErrorCode.NONE)
        ):
            return {
                "err": str(ErrorCode.NONE),
                "member": response.member_id,
                "epoch": response.member_epoch,
                "interval": response.heartbeat_interval_ms,
                "asg": _partitions(response.assignment, name_of),
            }
        case (
            modern_messages.ConsumerGroupHeartbeatResponse(error_code=error)
            | modern_messages.ShareGroupHeartbeatResponse(error_code=error)
        ):
            return {"err": str(error)}
        case modern_messages.ConsumerGroupDescribeResponse(groups=(group,)):
            members = {one.member_id: _consumer(one) for one in group.members}
            return described(group, members, assignor=group.assignor_name)
        case modern_messages.ShareGroupDescribeResponse(groups=(shared,)):
            members = {one.member_id: _share_member(one) for one in shared.members}
            return described(shared, members, assignor=shared.assignor_name)
        case _:
            return None


def _partitions(
    assignment: tuple[modern_messages.TopicPartitions, ...] | None, name_of: NameOf
) -> Json | None:
    if assignment is None:
        return None
    return {name_of(topic_id): sorted(numbers) for topic_id, numbers in assignment}


def _consumer(one: modern_messages.DescribedConsumerMember) -> Json:
    return {
        "epoch": one.member_epoch,
        "inst": one.instance_id,
        "rack": one.rack_id,
        "regex": one.subscribed_topic_regex,
        "type": one.member_type,
        "topics": sorted(one.subscribed_topic_names),
        "asg": {each.topic_name: sorted(each.partitions) for each in one.assignment},
        "target": {each.topic_name: sorted(each.partitions) for each in one.target_assignment},
    }


def _share_member(one: modern_messages.DescribedShareMember) -> Json:
    return {
        "epoch": one.member_epoch,
        "rack": one.rack_id,
        "topics": sorted(one.subscribed_topic_names),
        "asg": {each.topic_name: sorted(each.partitions) for each in one.assignment},
    }


def described(
    group: modern_messages.DescribedConsumerGroup
    | modern_messages.DescribedShareGroup
    | streams_messages.DescribedStreamsGroup,
    members: Json,
    **more: str,
) -> Json:
    """Returns the keys of a described group of any type; `more` are those of its own type."""
    if group.error_code:
        return {"err": str(group.error_code)}
    return {
        "err": str(ErrorCode.NONE),
        "state": group.group_state,
        "epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        **more,
        "members": members,
    }
