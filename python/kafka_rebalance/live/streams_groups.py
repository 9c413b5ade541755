# SPDX-License-Identifier: Apache-2.0
"""Reads streams groups (KIP-1071) as contract lines.

1. The coordinator describes the group: its topology, and the members' tasks.
2. A subtopology has as many tasks as the largest of its source topics has partitions. It is
   stateful if it has a changelog topic.
3. `active_tasks` and `standby_tasks` are those that the member has at present, which are the
   assignor's input. If the member's target differs, the line contains the target, too.
4. The number of standby replicas and the name of the assignor are settings of the group.

Order    members as described: the broker walks its table of members in this order for the assignor,
         too. Subtopologies and tasks as described.
Unknown  the time of the last target.
Errors   GroupError.
Source   StreamsGroup.asDescribedGroup, ConfiguredSubtopology, TargetAssignmentBuilder (streams);
         GroupConfig: streams.num.standby.replicas, streams.assignor.name (Kafka 4.4.0).
"""

import importlib
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from kafka_rebalance.assignors import streams
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.model import in_runs
from kafka_rebalance.wire.streams_groups import (
    DescribedStreamsGroup,
    DescribedStreamsMember,
    DescribedSubtopology,
)

STANDBY_REPLICAS = "streams.num.standby.replicas"
ASSIGNOR_NAME = "streams.assignor.name"
_NOT_READY = "NotReady"


class StreamsSettings(NamedTuple):
    """The settings of a group that its assignor depends on, and the assignor's name."""

    standby_replicas: int
    assignor: str


def streams_settings(admin: Any, group_ids: Collection[str]) -> dict[str, StreamsSettings]:
    """Returns each group's settings; a group that hides them from this user is absent.

    Brokers before Kafka 4.4 have one assignor, which needs no name.
    """
    # 4.
    resource = importlib.import_module("kafka.admin").ConfigResource
    wanted = [resource("GROUP", one, [STANDBY_REPLICAS, ASSIGNOR_NAME]) for one in group_ids]
    settings: Mapping[str, Any] = admin.describe_configs(wanted, config_filter="all")
    return {
        group_id: StreamsSettings(
            int(found[STANDBY_REPLICAS]["value"]),
            f"streams/{name}" if (name := _value(found, ASSIGNOR_NAME)) else streams.sticky.NAME,
        )
        for group_id, found in settings.get("group", {}).items()
        if STANDBY_REPLICAS in found
    }


def _value(found: Mapping[str, Any], name: str) -> str | None:
    value: str | None = found[name]["value"] if name in found else None
    return value


def source_topics(group: DescribedStreamsGroup) -> dict[str, None]:
    """Returns the topics whose numbers of partitions decide the numbers of tasks."""
    return dict.fromkeys(name for one in group.subtopologies for name in one.read_topics)


def streams_line(
    group: DescribedStreamsGroup,
    partitions_of: Callable[[str], int],
    settings: StreamsSettings | None,
) -> dict[str, Any]:
    """Returns a contract line.

    `partitions_of` returns the number of partitions of a topic, 0 if the topic does not exist;
    `settings` are None if they are hidden.
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
        "members": [_member(one) for one in group.members],
        "subtopologies": [_subtopology(one, partitions_of) for one in group.subtopologies],
        "num_standby_replicas": settings.standby_replicas,
    }


def _subtopology(one: DescribedSubtopology, partitions_of: Callable[[str], int]) -> dict[str, Any]:
    # 2.
    return {
        "subtopology_id": one.subtopology_id,
        "tasks": max(map(partitions_of, one.read_topics), default=0),
        "stateful": bool(one.state_changelog_topics),
        "source_topics": list(one.read_topics),
    }


def _member(member: DescribedStreamsMember) -> dict[str, Any]:
    # 3.
    line: dict[str, Any] = {
        "member_id": member.member_id,
        "group_instance_id": member.instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
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
