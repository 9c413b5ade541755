# SPDX-License-Identifier: Apache-2.0
"""Makes a contract line of a classic group that a broker has described.

The description contains the bytes that members wrote as subscriptions and leaders as assignments.
`kafka_rebalance.wire` decodes them, not the client library.

Source   Kafka's DescribeGroups and ConsumerProtocol messages.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import kafka_rebalance.wire as wire
from kafka_rebalance.errors import GroupError, WireError
from kafka_rebalance.group.model import NEWEST_SUBSCRIPTION, Member, TopicPartition

from .subscribed_protocol import subscribed_protocol

_Line = dict[str, Any]
_T = TypeVar("_T")


def described_line(group: Any, generation_id: int | None = None) -> _Line:
    """Returns a described group as a contract line without its topics.

    Without `generation_id`, the generation is one more than the newest that a member sent.
    """
    assignor = group.protocol_data
    sent = sent_members(group)
    given = [_given(one, f"members[{i}]") for i, one in enumerate(group.members)]
    if generation_id is None:
        generations = [g for one in sent for g in (one.generation_id, one.user_data_generation_id)]
        known = [generation for generation in generations if generation is not None]
        generation_id = 1 + max(known) if known else None
    assigned = sum(len(one.partitions) for one in given if one is not None)
    protocol = subscribed_protocol(group.group_id, assignor, sent, assigned)
    return {
        "group_id": group.group_id,
        "generation_id": generation_id,
        "assignor": assignor,
        "leader_library": wire.leader_library(given, [one.subscription_version for one in sent]),
        **({} if protocol is None else {"rebalance_protocol": protocol}),
        "topics": [],
        "members": [
            _member(one, assignment.partitions if assignment else (), generation_id)
            for one, assignment in zip(sent, given, strict=True)
        ],
    }


def sent_members(group: Any) -> tuple[Member, ...]:
    """Returns a described group's members with what they sent in their last JoinGroup."""
    return tuple(
        _sent(one, group.protocol_data, f"members[{i}]") for i, one in enumerate(group.members)
    )


def _sent(described: Any, assignor: str, at: str) -> Member:
    """Returns the member with the data of its last JoinGroup."""
    data = described.member_metadata
    return wire.sent_member(
        described.member_id,
        _read(wire.decode_subscription, data, f"{at}.subscription"),
        assignor,
        group_instance_id=described.group_instance_id,
        client_id=described.client_id,
        client_host=described.client_host,
    )


def _given(described: Any, at: str) -> wire.AssignmentData | None:
    """Returns the assignment that the leader sent; None if the coordinator holds no bytes."""
    data = described.member_assignment
    return _read(wire.decode_assignment, data, f"{at}.assignment") if data else None


def _member(sent: Member, held: Iterable[TopicPartition], generation_id: int | None) -> _Line:
    """Returns a contract line's member: its partitions, and the form of its next subscription."""
    member = {
        "member_id": sent.member_id,
        "group_instance_id": sent.group_instance_id,
        "client_id": sent.client_id,
        "client_host": sent.client_host,
        "topics": list(sent.topics),
        "owned_partitions": [
            {"topic": topic, "partitions": numbers}
            for topic, numbers in wire.by_topic(held).items()
        ],
        "generation_id": generation_id,
        "rack_id": sent.rack_id,
        "client_library": sent.client_library,
    }
    # Without these two fields, the member's subscription is that of Kafka's newest Java client.
    if sent.version < NEWEST_SUBSCRIPTION or sent.user_data is not None:
        member["subscription_version"] = sent.version
        member["user_data"] = sent.user_data
    return member


def _read(decode: Callable[[bytes], _T], data: bytes, at: str) -> _T:
    try:
        return decode(data)
    except WireError as error:
        raise GroupError(at, str(error)) from error
