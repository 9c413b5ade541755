# SPDX-License-Identifier: Apache-2.0
"""Reads groups that the broker assigns (KIP-848, KIP-932) as contract lines.

The descriptions of streams groups (KIP-1071) are read here, too; `streams_groups.py` makes their
lines.

1. The coordinator describes the group.
2. `owned_partitions` is the member's target, which is the assignor's input, with its topics without
   partitions. If the member owns other partitions at present, `assigned_partitions` lists those. A
   share group's description has no target: its members own their targets at once.
3. A pattern becomes the names of the topics that it matches. The broker resolves patterns at times,
   so a topic that has just been created may still be missing in the group.

Order    members as described: the broker walks its table of members in this order for the assignor,
         too. Topics and partitions as described, which is the order of the present target.
Unknown  a topic's partitions that a share group has not initialised; which members named the
         assignor; the time of the last target.
Errors   GroupError.
Source   ConsumerGroup.asDescribedGroup, ShareGroup.asDescribedGroup, TargetAssignmentBuilder.
"""

import importlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from kafka_rebalance.assignors import consumer, share
from kafka_rebalance.errors import GroupError, WireError
from kafka_rebalance.group.model import in_runs, quoted
from kafka_rebalance.java.regular_expressions import InvalidPattern, compiled
from kafka_rebalance.wire.broker_groups import (
    BrokerGroup,
    BrokerMember,
    ConsumerGroupDescribe,
    ConsumerGroupDescribeResponse,
    ShareGroupDescribeResponse,
)
from kafka_rebalance.wire.layout import layout_of
from kafka_rebalance.wire.streams_groups import DescribedStreamsGroup, StreamsGroupDescribeResponse

from .raw_requests import ask_broker


class DescribeApi(NamedTuple):
    """A request that describes groups of one type."""

    api_key: int
    versions: tuple[int, int]
    """The oldest and the newest version that is read."""
    response: type[Any]

    def read(self, version: int, data: bytes) -> tuple["Described", ...]:
        """Reads the body of a response. Errors: WireError."""
        response = layout_of(self.response, version).read(data, "response")
        return tuple(response.groups)


# Version 1 of StreamsGroupDescribe adds a description of the topology for people.
DESCRIBE_APIS = {
    "consumer": DescribeApi(69, (0, 1), ConsumerGroupDescribeResponse),
    "share": DescribeApi(77, (1, 1), ShareGroupDescribeResponse),
    "streams": DescribeApi(89, (0, 0), StreamsGroupDescribeResponse),
}
"""Type of a group -> the request that describes it."""

Described = BrokerGroup | DescribedStreamsGroup

_ASSIGNORS = {
    ("consumer", "uniform"): consumer.uniform.NAME,
    ("consumer", "range"): consumer.range.NAME,
    ("share", "simple"): share.simple.NAME,
}


def described_groups(
    admin: Any, coordinator: int, group_type: str, group_ids: Sequence[str]
) -> dict[str, Described | GroupError]:
    """Returns the descriptions by id; an error if the broker is too old to describe the group."""
    # 1.
    incompatible = importlib.import_module("kafka.errors").IncompatibleBrokerVersion
    api = DESCRIBE_APIS[group_type]
    found: dict[str, Described | GroupError]
    try:
        answer = ask_broker(
            admin, coordinator, api.api_key, api.versions, describe_request(*group_ids)
        )
        found = {group.group_id: group for group in api.read(*answer)}
    except incompatible:
        problem = f"{group_type}, and the broker is too old to describe it"
        found = {group_id: GroupError("group_type", problem) for group_id in group_ids}
    except WireError as error:
        found = {group_id: GroupError("group_id", str(error)) for group_id in group_ids}
    return found


def describe_request(*group_ids: str) -> bytes:
    """Returns the body of the request, which is equal for all types of groups."""
    return layout_of(ConsumerGroupDescribe).written(ConsumerGroupDescribe(group_ids=group_ids))


def has_pattern(group: BrokerGroup) -> bool:
    return any(member.topic_regex is not None for member in group.members)


def broker_line(group: BrokerGroup, topics: Iterable[str]) -> dict[str, Any]:
    """Returns a contract line without its topics; `topics` are those of the cluster."""
    named, members = sorted(topics), tuple[BrokerMember, ...](group.members)
    patterns = {one.topic_regex for one in group.members}
    has_names = any(one.subscribed_topic_names for one in group.members)
    # A broker treats such subscriptions as different, even if they are equal. A line lists only
    # topic names, so equal names would start the algorithm for equal subscriptions.
    if has_pattern(group) and (len(patterns) > 1 or has_names):
        raise GroupError("members", "different patterns, or patterns and names: not predicted")
    return {
        "group_id": group.group_id,
        "generation_id": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "assignor": _ASSIGNORS.get(
            (group.group_type, group.assignor_name), f"{group.group_type}/{group.assignor_name}"
        ),
        "topics": [],
        "members": [_member(one, named, f"members[{i}]") for i, one in enumerate(members)],
    }


def _member(member: BrokerMember, topics: Sequence[str], at: str) -> dict[str, Any]:
    # 2.
    target = member.assigned if member.target is None else member.target
    line: dict[str, Any] = {
        "member_id": member.member_id,
        "group_instance_id": member.instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "topics": [*member.subscribed_topic_names, *_matched(member, topics, at)],
        "owned_partitions": in_runs(target, topics=member.owned_topics),
        "generation_id": member.member_epoch,
        "rack_id": member.rack_id,
    }
    if set(target) != set(member.assigned):
        line["assigned_partitions"] = in_runs(member.assigned)
    if member.topic_regex is not None:
        line["topic_regex"] = member.topic_regex
    if member.is_classic:
        line["is_classic"] = True
    return line


def _matched(member: BrokerMember, topics: Sequence[str], at: str) -> list[str]:
    # 3.
    if member.topic_regex is None:
        return []
    try:
        pattern = compiled(member.topic_regex)
    except InvalidPattern as error:
        problem = f"{quoted(member.topic_regex)} cannot be resolved here: {error}"
        raise GroupError(f"{at}.topic_regex", problem) from None
    named = member.subscribed_topic_names
    return [name for name in topics if name not in named and pattern.matches(name)]
