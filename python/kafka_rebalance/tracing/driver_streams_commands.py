# SPDX-License-Identifier: Apache-2.0
"""Reads the fields of a StreamsGroupHeartbeat from a command of the JSON driver."""

from collections.abc import Callable, Mapping
from typing import Any

from kafka_rebalance.protocol.streams_messages import SubtopologyTasks, TaskList
from kafka_rebalance.wire.streams_topology import (
    CopartitionGroup,
    InternalTopic,
    StreamsSubtopology,
    StreamsTopology,
)

_Command = Mapping[str, Any]


def _topology(command: _Command) -> StreamsTopology | None:
    given = command.get("topology")
    if given is None:
        return None
    subtopologies = tuple(
        StreamsSubtopology(
            subtopology_id,
            source_topics=tuple(one.get("sources", ())),
            source_topic_regex=tuple(one.get("regexes", ())),
            state_changelog_topics=_topics(one, "changelogs"),
            repartition_sink_topics=tuple(one.get("repartition_sinks", ())),
            repartition_source_topics=_topics(one, "repartition_sources"),
            copartition_groups=tuple(map(_places, one.get("copartition_groups", ()))),
        )
        for subtopology_id, one in given["subtopologies"].items()
    )
    return StreamsTopology(given.get("epoch", 0), subtopologies)


def _topics(subtopology: _Command, key: str) -> tuple[InternalTopic, ...]:
    """Returns internal topics; each is a name, or an object with `name` and `partitions`."""
    return tuple(
        InternalTopic(one)
        if isinstance(one, str)
        else InternalTopic(one["name"], one.get("partitions", 0))
        for one in subtopology.get(key, ())
    )


def _places(group: _Command) -> CopartitionGroup:
    """Returns a co-partition group: places in the subtopology's lists of the same names."""
    return CopartitionGroup(
        *(tuple(group.get(key, ())) for key in ("sources", "regexes", "repartition_sources"))
    )


def _tasks(command: _Command, key: str) -> TaskList | None:
    given = command.get(key)
    if given is None:
        return None
    return tuple(SubtopologyTasks(name, tuple(numbers)) for name, numbers in given.items())


# Maps a request's field to the function that builds its value from a command.
STREAMS_FIELDS: dict[str, Callable[[_Command], Any]] = {
    "topology": _topology,
    "active_tasks": lambda command: _tasks(command, "active"),
    "standby_tasks": lambda command: _tasks(command, "standby"),
    "warmup_tasks": lambda command: _tasks(command, "warmup"),
}
