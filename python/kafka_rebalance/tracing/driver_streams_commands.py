# SPDX-License-Identifier: Apache-2.0
"""Reads the fields of a StreamsGroupHeartbeat from a command of the JSON driver."""

from collections.abc import Callable, Mapping
from typing import Any

from kafka_rebalance.protocol.streams_messages import SubtopologyTasks, TaskList
from kafka_rebalance.wire.streams_topology import (
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
            state_changelog_topics=_topics(one, "changelogs"),
            repartition_sink_topics=tuple(one.get("repartition_sinks", ())),
            repartition_source_topics=_topics(one, "repartition_sources"),
        )
        for subtopology_id, one in given["subtopologies"].items()
    )
    return StreamsTopology(given.get("epoch", 0), subtopologies)


def _topics(subtopology: _Command, key: str) -> tuple[InternalTopic, ...]:
    return tuple(InternalTopic(name) for name in subtopology.get(key, ()))


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
