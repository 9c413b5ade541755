# SPDX-License-Identifier: Apache-2.0
"""Reads topics in the form of contract lines: partitions, the racks of their replicas, leaders."""

import importlib
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from kafka_rebalance.assignors.registry import SERVER_SIDE
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.model import id_text

from .committed_offsets import NO_LEADER
from .raw_requests import asked

_Line = dict[str, Any]
_ABSENT_TOPIC = (3, 17)  # the error codes UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION


class DescribedTopics:
    """The topics of one cluster, each read once; the caller sets `racks`: broker id -> rack."""

    def __init__(self, admin: Any) -> None:
        self.racks: dict[int, str | None] = {}
        self._admin = admin
        self._known: dict[str, _Line | GroupError | None] = {}
        self.replicas: dict[str, list[list[int]]] = {}
        """Topic that `learn` has read -> the broker ids of each partition's replicas."""
        self._every_name: tuple[str, ...] | None = None

    def learn(self, names: Iterable[str]) -> None:
        """Reads those of the named topics that have not been read yet."""
        missing = list(dict.fromkeys(name for name in names if name not in self._known))
        if missing:
            for metadata in asked(self._admin.describe_topics, missing):
                try:
                    self._known[metadata["name"]] = self.topic(metadata)
                except GroupError as error:
                    self._known[metadata["name"]] = error

    def complete(self, line: Mapping[str, Any]) -> _Line | GroupError:
        """Returns the line with its topics, or a topic's error; `learn` must have read them."""
        topics = [self.known(name) for name in topics_of(line)]
        if errors := [topic for topic in topics if isinstance(topic, GroupError)]:
            return errors[0]
        return {**line, "topics": [topic for topic in topics if topic]}

    def known(self, topic: str) -> _Line | GroupError | None:
        """Returns a topic that `learn` has read, or its error; None if it does not exist."""
        return self._known[topic]

    def partitions(self, topic: str) -> int:
        """Returns the number of partitions of a topic that `learn` has read; 0 if it is absent."""
        found = self.known(topic)
        if isinstance(found, GroupError):
            raise found
        return 0 if found is None else int(found["partitions"])

    def every_name(self) -> tuple[str, ...]:
        """Returns the names of all topics that this user may describe."""
        if self._every_name is None:
            self._every_name = tuple(one["name"] for one in asked(self._admin.describe_topics))
        return self._every_name

    def topic(self, metadata: Mapping[str, Any]) -> _Line | None:
        """Returns a topic as in a contract line; None if it does not exist. Errors: GroupError."""
        if metadata["error_code"] in _ABSENT_TOPIC:
            return None
        if metadata["error_code"]:
            what = f"Topic {metadata['name']}"
            raise GroupError("topics", _not_described(metadata["error_code"], what))
        partitions = sorted(metadata["partitions"], key=lambda one: int(one["partition_index"]))
        topic: _Line = {"name": metadata["name"], "partitions": len(partitions)}
        replicas = [list(one["replica_nodes"]) for one in partitions]
        self.replicas[metadata["name"]] = replicas
        if topic_id := _topic_id(metadata):
            topic["topic_id"] = topic_id
        if any(self.racks.values()):
            topic["racks"] = [[self.racks.get(node) for node in nodes] for nodes in replicas]
        if leaderless := [n for n, one in enumerate(partitions) if one["leader_id"] == NO_LEADER]:
            topic["leaderless"] = leaderless
        return topic


def require_described(group: Any) -> None:
    """Raises GroupError if the coordinator did not describe the group."""
    if group.error_code:
        problem = _not_described(group.error_code, f"Group {group.group_id}")
        raise GroupError("group_id", problem)


def require_stable(group: Any) -> None:
    """Raises GroupError if the group, which has members, is rebalancing."""
    if group.group_state != "Stable":
        problem = f"{group.group_state}, it is rebalancing: ask again when it is Stable"
        raise GroupError("state", problem)


def _not_described(code: int, what: str) -> str:
    """Returns the text of an error: why a group or topic with this code is not described."""
    errors = importlib.import_module("kafka.errors")
    error = errors.for_code(code)
    if issubclass(error, errors.AuthorizationError):
        return f"no permission: this user needs Describe on {what}"
    return f"{what} is not described: {error.__name__}"


def topics_of(line: Mapping[str, Any]) -> dict[str, None]:
    """Returns a line's topics: the subscribed ones, and those in targets of a broker."""
    names = dict.fromkeys(name for member in line["members"] for name in member["topics"])
    if line["assignor"] in SERVER_SIDE and "subtopologies" not in line:
        owned = (run for member in line["members"] for run in member["owned_partitions"])
        names |= dict.fromkeys(run["topic"] for run in owned)
    return names


def _topic_id(metadata: Mapping[str, Any]) -> str | None:
    """Returns the id as Kafka writes it; None from a broker without topic ids (before 2.8)."""
    topic_id = uuid.UUID(str(metadata.get("topic_id") or uuid.UUID(int=0)))
    return id_text(topic_id.bytes) if topic_id.int else None
