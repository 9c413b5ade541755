# SPDX-License-Identifier: Apache-2.0
"""Reads broker-assigned groups (KIP-848, KIP-932, KIP-1071) as contract lines.

1. The coordinator describes the group.
2. `owned_partitions` is the member's target, which is the assignor's input; it includes topics of
   which the member has no partition. If the partitions that the member owns now differ from it,
   `assigned_partitions` lists them. A share group's description has no target: its members own
   their targets at once.
3. A pattern becomes the names of the topics that it matches. The broker resolves patterns only now
   and then, so a topic that has just been created may still be missing in the group.

A streams group has as many tasks of a subtopology as the largest of its source topics has
partitions; a subtopology with a changelog topic is stateful. `active_tasks` and `standby_tasks` are
the present ones, which are the assignor's input; if a target differs, the line contains it, too.
The number of standby replicas and the assignor's name are settings of the group.

Order    members as described: the broker walks its hash map of members in this order for the
         assignor, too. Topics and partitions as described: in the order of the present target.
Unknown  a topic's partitions that a share group has not initialised; which members named the
         assignor; the time of the last target.
Errors   GroupError.
Source   asDescribedGroup of ConsumerGroup, ShareGroup and StreamsGroup; TargetAssignmentBuilder;
         ConfiguredSubtopology; GroupConfig (Kafka 4.4.0).
"""

import importlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kafka_rebalance.errors import GroupError, WireError
from kafka_rebalance.group.model import in_runs, quoted
from kafka_rebalance.java.regular_expressions import InvalidPattern, compiled
from kafka_rebalance.wire import broker_groups as wire
from kafka_rebalance.wire import streams_groups as streams
from kafka_rebalance.wire.layout import layout_of

from .cluster import admin_client
from .raw_requests import ask_broker

AWAY = -2
"""The epoch of a static member that has left, and may come back until its session expires."""


class DescribeApi(NamedTuple):
    """A request that describes groups of one type."""

    api_key: int
    versions: tuple[int, int]
    """The oldest and the newest version whose response can be read here."""
    response: type[Any]

    def read(self, version: int, data: bytes) -> tuple["Described", ...]:
        """Reads the body of a response. Errors: WireError."""
        response = layout_of(self.response, version).read(data, "response")
        return tuple(response.groups)


# Version 1 of StreamsGroupDescribe adds a description of the topology, which is not needed here.
DESCRIBE_APIS = {
    "consumer": DescribeApi(69, (0, 1), wire.ConsumerGroupDescribeResponse),
    "share": DescribeApi(77, (1, 1), wire.ShareGroupDescribeResponse),
    "streams": DescribeApi(89, (0, 0), streams.StreamsGroupDescribeResponse),
}
"""Type of a group -> the request that describes it."""

Described = wire.BrokerGroup | streams.DescribedStreamsGroup


def described_groups(
    admin: Any, coordinator: int, group_type: str, group_ids: Sequence[str]
) -> dict[str, Described | GroupError]:
    """Returns group id -> its description, or an error if the broker is too old for the request, or
    its answer cannot be read.
    """
    # 1.
    incompatible = importlib.import_module("kafka.errors").IncompatibleBrokerVersion
    api = DESCRIBE_APIS[group_type]
    body = describe_request(*group_ids)
    try:
        answer = ask_broker(admin, coordinator, api.api_key, api.versions, body)
        return {group.group_id: group for group in api.read(*answer)}
    except incompatible:
        wrong = GroupError("group_type", f"{group_type}, and the broker is too old to describe it")
    except WireError as error:
        wrong = GroupError("group_id", str(error))
    return dict.fromkeys(group_ids, wrong)


def describe_request(*group_ids: str) -> bytes:
    """Returns the body of a describe request; its bytes are equal for all types of groups."""
    request = wire.ConsumerGroupDescribe(group_ids=group_ids)
    return layout_of(wire.ConsumerGroupDescribe).written(request)


def has_pattern(group: wire.BrokerGroup) -> bool:
    return any(member.topic_regex is not None for member in group.members)


def broker_line(group: wire.BrokerGroup, topics: Iterable[str]) -> dict[str, Any]:
    """Returns a contract line whose field `topics` is empty; patterns match the given topics."""
    named, members = sorted(topics), tuple[wire.BrokerMember, ...](group.members)
    patterns = {one.topic_regex for one in group.members}
    has_names = any(one.subscribed_topic_names for one in group.members)
    # To a broker, different patterns, or a pattern and names, are different subscriptions even if
    # their topics are equal. A plan compares only topic names: if these were equal, it would take
    # the algorithm for equal subscriptions.
    if has_pattern(group) and (len(patterns) > 1 or has_names):
        raise GroupError("members", "different patterns, or patterns and names: not predicted")
    return {
        "group_id": group.group_id,
        "generation_id": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "assignor": f"{group.group_type}/{group.assignor_name}",
        "topics": [],
        "members": [_member(one, named, f"members[{i}]") for i, one in enumerate(members)],
    }


def _member(member: wire.BrokerMember, topics: Sequence[str], at: str) -> dict[str, Any]:
    # 2.
    target = member.assigned if member.target is None else member.target
    line = _identity(member) | {
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


def _matched(member: wire.BrokerMember, topics: Sequence[str], at: str) -> list[str]:
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


STANDBY_REPLICAS = "streams.num.standby.replicas"
ASSIGNOR_NAME = "streams.assignor.name"
_NOT_READY = "NotReady"


class StreamsSettings(NamedTuple):
    """The name of a group's assignor, and the settings on which its answer depends."""

    standby_replicas: int
    assignor: str


def streams_settings(admin: Any, group_ids: Collection[str]) -> dict[str, StreamsSettings]:
    """Returns group id -> settings, without groups whose settings this user may not read."""
    read = _settings(admin, dict.fromkeys(group_ids, (STANDBY_REPLICAS, ASSIGNOR_NAME)))
    return {
        group_id: StreamsSettings(
            int(found[STANDBY_REPLICAS]), f"streams/{found.get(ASSIGNOR_NAME) or 'sticky'}"
        )
        for group_id, found in read.items()
        if STANDBY_REPLICAS in found
    }


def group_sessions(
    bootstrap_server: str, group_id: str | None = None, *, configs: Mapping[str, Any] | None = None
) -> dict[str, int]:
    """Returns group -> session timeout in ms, for all broker-assigned groups, or for one of them.

    Groups whose settings this user may not read are left out. Errors: ClusterError.
    """
    with admin_client(bootstrap_server, configs) as admin:
        names = {
            one["group_id"]: [f"{kind}.session.timeout.ms"]
            for one in admin.list_groups()
            if (kind := (one.get("group_type") or "").lower()) in DESCRIBE_APIS
            and group_id in (None, one["group_id"])
        }
        read = _settings(admin, names)
    return {
        one: int(found[name]) for one, found in read.items() for name in names[one] if name in found
    }


def _settings(admin: Any, names: Mapping[str, Collection[str]]) -> dict[str, dict[str, str]]:
    """Returns group -> name of a setting -> value, for the settings that `names` lists by group."""
    resource = importlib.import_module("kafka.admin").ConfigResource
    wanted = [resource("GROUP", group_id, [*of]) for group_id, of in names.items()]
    read = admin.describe_configs(wanted, config_filter="all") if wanted else {}
    return {
        group_id: {name: one["value"] for name, one in found.items()}
        for group_id, found in read.get("group", {}).items()
    }


def source_topics(group: streams.DescribedStreamsGroup) -> dict[str, None]:
    """Returns the topics whose partition counts decide how many tasks each subtopology has."""
    return dict.fromkeys(name for one in group.subtopologies for name in one.read_topics)


def streams_line(
    group: streams.DescribedStreamsGroup,
    partitions_of: Callable[[str], int],
    settings: StreamsSettings | None,
) -> dict[str, Any]:
    """Returns a contract line. Errors: GroupError if the broker has no valid topology.

    `partitions_of` returns the number of partitions of a topic, 0 if the topic does not exist;
    `settings` are None if this user may not read them, which is also a GroupError.
    """
    if group.group_state == _NOT_READY or not group.subtopologies:
        raise GroupError(
            "state",
            f"{group.group_state}, the broker has not validated the topology, for example because "
            "a source topic is missing: nobody has a task",
        )
    if settings is None:
        what = f"DescribeConfigs on Group {group.group_id}"
        raise GroupError("num_standby_replicas", f"no permission: this user needs {what}")
    return {
        "group_id": group.group_id,
        "generation_id": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "assignor": settings.assignor,
        "topics": [],
        "members": [_streams_member(one) for one in group.members],
        "subtopologies": [_subtopology(one, partitions_of) for one in group.subtopologies],
        "num_standby_replicas": settings.standby_replicas,
    }


def _subtopology(
    one: streams.DescribedSubtopology, partitions_of: Callable[[str], int]
) -> dict[str, Any]:
    return {
        "subtopology_id": one.subtopology_id,
        "tasks": max(map(partitions_of, one.read_topics), default=0),
        "stateful": bool(one.state_changelog_topics),
        "source_topics": list(one.read_topics),
    }


def _streams_member(member: streams.DescribedStreamsMember) -> dict[str, Any]:
    line = _identity(member) | {
        "topics": [],
        "generation_id": member.member_epoch,
        "rack_id": member.rack_id,
        "process_id": member.process_id,
        "active_tasks": in_runs(member.assigned.active, "subtopology_id"),
        "standby_tasks": in_runs(member.assigned.standby, "subtopology_id"),
        "task_offsets": [one._asdict() for one in member.task_offsets],
    }
    if member.is_reconciling:
        line["target_active_tasks"] = in_runs(member.target.active, "subtopology_id")
        line["target_standby_tasks"] = in_runs(member.target.standby, "subtopology_id")
    if member.client_tags:
        line["client_tags"] = dict(member.client_tags)
    return line


def _identity(member: wire.BrokerMember | streams.DescribedStreamsMember) -> dict[str, Any]:
    return {
        "member_id": member.member_id,
        "group_instance_id": member.instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
    }
