# SPDX-License-Identifier: Apache-2.0
"""Answers requests about the cluster: its topics and its brokers.

One process stands for all brokers: each has a node id and perhaps a rack, and all have the same
address. Broker 1 coordinates all groups, until `move_coordinator` makes a new broker, with another
port, the coordinator. A topic without racks has its replicas on broker 1.
"""

import json
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import Any, NamedTuple

from kafka_rebalance.coordinator.machine.events import ClusterTopic, TopicsChanged
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.model import id_text, uuid_of
from kafka_rebalance.java.hash_map import Uuid

from .frames import APIS, Api, Asked, KafkaError

MOST_PARTITIONS = 100_000
"""The largest number of partitions that all topics together may have."""
TOO_MANY = f"all topics together may have {MOST_PARTITIONS} partitions"

_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def is_legal(name: str) -> bool:
    """Returns whether Kafka allows this topic name."""
    return _NAME.fullmatch(name) is not None and name not in (".", "..")


def check(name: str, partitions: int, elsewhere: int, path: str | None = None) -> None:
    """Raises a GroupError, at `path` if it is given, for a name or number that is not allowed.

    `elsewhere` is the number of partitions of all other topics.
    """
    shown, field = json.dumps(name, ensure_ascii=False), "partitions"
    if not is_legal(name):
        legal, field = "give 1 to 249 of a-z, A-Z, 0-9, ., _ and -", "name"
        problem = f"{shown} is not a name of a topic; {legal}"
    elif not isinstance(partitions, int) or partitions < 1:
        problem = f"{shown} cannot have {partitions} partitions; give a whole number from 1"
    elif elsewhere + partitions > MOST_PARTITIONS:
        problem = f"{shown} would have {partitions}, other topics have {elsewhere}; {TOO_MANY}"
    else:
        return
    raise GroupError(path or field, problem)


NODE = 1
CLUSTER = "kafka-rebalance-serve"

_NAMED_BY_ID = 12
"""The first version of Metadata that can ask for topics by id; in 10 and 11, an id is refused."""


class ServedTopic(NamedTuple):
    """A topic of the cluster. `racks` lists, for each partition, the racks of its replicas, if any.

    `settings` are those that were set: see `topic_configs.py`.
    """

    name: str
    partitions: int
    racks: tuple[tuple[str | None, ...], ...] | None = None
    settings: Mapping[str, Any] = {}


class Cluster:
    """The brokers' address and the topics."""

    def __init__(self, topics: Iterable[ServedTopic], auto_create: int = 0) -> None:
        self.host, self.port = "", 0
        self.apis: Mapping[str, Api] = APIS
        self.auto_create = auto_create
        """The number of partitions of a topic that a request creates; 0 if requests create none."""
        self.coordinator = NODE
        self._ports: dict[int, int] = {}
        self.version = 0
        """A number that increases with each change of the topics."""
        self._made = count()
        self.any_name = False
        """Whether an unknown topic with an illegal name gets the error for an unknown topic."""
        self.answers: Mapping[str, Callable[[Asked], Mapping[str, Any]]] = {
            "api_versions": self._api_versions,
            "metadata": self._metadata,
            "describe_cluster": self._describe_cluster,
            "find_coordinator": self._find_coordinator,
        }
        self.replace(())
        for topic in topics:
            self.add(topic, "topics")

    def replace(self, topics: Iterable[ServedTopic]) -> None:
        """Replaces all topics with these, even if a real cluster would not allow some of them."""
        self.topics: dict[str, ServedTopic] = {}
        self.partitions = 0
        self._ids: dict[str, uuid.UUID] = {}
        self._names: dict[uuid.UUID, str] = {}
        self._nodes: dict[tuple[str | None, int], int] = {(None, 0): NODE}
        for topic in topics:
            self.put(topic)

    def add(self, topic: ServedTopic, path: str | None = None) -> None:
        """Serves a new topic. Errors: GroupError, at `path`, if it exists or is not allowed."""
        check(topic.name, topic.partitions, self.partitions, path)
        if topic.name in self.topics:
            problem = f"{topic.name} is served already; grow it, or remove it"
            raise GroupError(path or "name", problem)
        self.put(topic)

    def grow(self, name: str, partitions: int) -> None:
        """Increases the number of a topic's partitions; new ones have one replica, without a rack.

        Errors: GroupError for an unknown topic, or for a number that is out of bounds, or not
        larger than the present one.
        """
        topic = self.topics.get(name)
        if topic is None:
            problem = f"{json.dumps(name)} is not a topic of this cluster; add it first"
            raise GroupError("name", problem)
        check(name, partitions, self.partitions - topic.partitions)
        if partitions <= topic.partitions:
            problem = f"{name} has {topic.partitions}, {partitions} are not more"
            raise GroupError("partitions", f"{problem}; a topic only grows")
        more: tuple[tuple[str | None, ...], ...] = ((None,),) * (partitions - topic.partitions)
        racks = None if topic.racks is None else topic.racks + more
        self.put(topic._replace(partitions=partitions, racks=racks))

    def put(self, topic: ServedTopic) -> None:
        """Serves the topic without checks; replaces a topic with this name, but keeps its id."""
        known = self.topics.get(topic.name)
        self.partitions += topic.partitions - (0 if known is None else known.partitions)
        if topic.name not in self._ids:
            topic_id = uuid.uuid5(uuid.NAMESPACE_OID, f"{next(self._made)} {topic.name}")
            self._ids[topic.name], self._names[topic_id] = topic_id, topic.name
        self.topics[topic.name] = topic
        self.version += 1
        for partition in topic.racks or ():
            for replica in _numbered(partition):
                self._nodes.setdefault(replica, NODE + len(self._nodes))

    def _absent(self, one: Any) -> dict[str, Any]:
        error = KafkaError.unknown_topic_or_partition
        if one.name is None:
            error = KafkaError.unknown_topic_id
        elif not (self.any_name or is_legal(one.name)):
            error = KafkaError.invalid_topic_exception
        topic_id = getattr(one, "topic_id", None)
        return {"error_code": error, "name": one.name, "topic_id": topic_id}

    def remove(self, name: str) -> ClusterTopic:
        """Removes a topic; returns it as the coordinator knew it."""
        removed = self._reported(self.topics.pop(name))
        del self._names[self._ids.pop(name)]
        self.version += 1
        self.partitions -= removed.partitions
        return removed

    def has(self, topic: str, partition: int) -> bool:
        return topic in self.topics and 0 <= partition < self.topics[topic].partitions

    def find(self, one: Any) -> ServedTopic | None:
        """Returns the topic with the `name`, `topic` or `topic_id` of a request's entry, if any."""
        name = getattr(one, "name", None) or getattr(one, "topic", None)
        if name is None:
            name = self._names.get(getattr(one, "topic_id", None) or uuid.UUID(int=0), "")
        return self.topics.get(name)

    def named(self, one: Any) -> str:
        """Returns the name of the topic of a request's entry; "" if there is none."""
        topic = self.find(one)
        return "" if topic is None else topic.name

    def topic_id(self, name: str) -> uuid.UUID | None:
        return self._ids.get(name)

    def name_of(self, topic_id: Uuid) -> str:
        """Returns the name of a topic of this cluster; "" if there is none with this id."""
        number = sum(part % 2**64 << shift for part, shift in zip(topic_id, (64, 0), strict=True))
        return self._names.get(uuid.UUID(int=number), "")

    def topics_changed(self) -> TopicsChanged:
        return TopicsChanged(tuple(map(self._reported, self.topics.values())), self.version)

    def _reported(self, topic: ServedTopic) -> ClusterTopic:
        return ClusterTopic(
            topic.name,
            uuid_of(id_text(self._ids[topic.name].bytes)),
            topic.partitions,
            tuple(tuple(filter(None, racks)) for racks in topic.racks or ()),
        )

    def _api_versions(self, asked: Asked) -> dict[str, Any]:
        keys = [
            {"api_key": api.key, "min_version": api.least, "max_version": api.most}
            for api in self.apis.values()
        ]
        # If the request's version is too new, the response is in version 0: a list of versions from
        # which the client then chooses.
        error = KafkaError.unsupported_version if asked.body is None else asked.error
        return {"error_code": error, "api_keys": keys}

    def move_coordinator(self, port: int) -> None:
        """Makes a new broker the coordinator of all groups; it listens on a port of its own."""
        self.coordinator = NODE + len(self._nodes)
        self._ports[self.coordinator] = port
        self._nodes[None, -len(self._ports)] = self.coordinator

    def is_coordinator(self, port: int) -> bool:
        return port == self._ports.get(self.coordinator, self.port)

    def _node(self, node: int) -> dict[str, Any]:
        return {"node_id": node, "host": self.host, "port": self._ports.get(node, self.port)}

    def _brokers(self) -> list[dict[str, Any]]:
        return [
            {**self._node(node), "broker_id": node, "rack": rack}
            for (rack, _), node in self._nodes.items()
        ]

    def _metadata(self, asked: Asked) -> dict[str, Any]:
        wanted = asked.body.topics
        # In version 0, an empty list means all topics; from version 1 on, null does.
        if wanted is None or (asked.version == 0 and not wanted):
            topics = [self._described(topic, asked) for topic in self.topics.values()]
        elif asked.version < _NAMED_BY_ID and any(
            one.name is None or getattr(one, "topic_id", None) is not None for one in wanted
        ):
            refused = {"error_code": KafkaError.invalid_request}
            named = [{**self._absent(one), "name": one.name or "", **refused} for one in wanted]
            return {"topics": named}
        else:
            if getattr(asked.body, "allow_auto_topic_creation", True):
                self._make(one.name for one in wanted if self.find(one) is None)
            found = {topic.name for one in wanted if (topic := self.find(one)) is not None}
            every = self.topics.values()
            topics = [self._described(one, asked) for one in every if one.name in found]
            topics += [self._absent(one) for one in wanted if self.find(one) is None]
        return {
            "brokers": self._brokers(),
            "cluster_id": CLUSTER,
            "controller_id": NODE,
            "topics": topics,
        }

    def _make(self, names: Iterable[str | None]) -> None:
        """Creates topics that producers and consumers ask for, where that is allowed."""
        for name in dict.fromkeys(names):
            room = MOST_PARTITIONS - self.partitions
            if 0 < self.auto_create <= room and is_legal(name or ""):
                self.add(ServedTopic(name or "", self.auto_create))

    def _described(self, topic: ServedTopic, asked: Asked) -> dict[str, Any]:
        partitions = []
        for partition in range(topic.partitions):
            replicas = [NODE]
            if topic.racks is not None:
                replicas = [self._nodes[one] for one in _numbered(topic.racks[partition])]
            leader = {"leader_id": next(iter(replicas), NODE), "leader_epoch": 0}
            nodes = {"replica_nodes": replicas, "isr_nodes": replicas}
            partitions.append({"partition_index": partition, **leader, **nodes})
        return {
            "error_code": asked.error,
            "name": topic.name,
            "topic_id": self.topic_id(topic.name),
            "partitions": partitions,
        }

    def _describe_cluster(self, asked: Asked) -> dict[str, Any]:
        return {
            "error_code": asked.error,
            "cluster_id": CLUSTER,
            "controller_id": NODE,
            "brokers": self._brokers(),
        }

    def _find_coordinator(self, asked: Asked) -> dict[str, Any]:
        found = {**self._node(self.coordinator), "error_code": asked.error}
        keys = getattr(asked.body, "coordinator_keys", ())
        return {**found, "coordinators": [{**found, "key": key} for key in keys]}

    def error(self, asked: Asked, one: Any, partition: int) -> KafkaError:
        """Returns the error for a partition of a request's entry, or `none`."""
        topic = self.find(one)
        if asked.error:
            return asked.error
        if topic is not None and 0 <= partition < topic.partitions:
            return KafkaError.none
        by_id = topic is None and hasattr(one, "topic_id")
        return KafkaError.unknown_topic_id if by_id else KafkaError.unknown_topic_or_partition


def _numbered(racks: Iterable[str | None]) -> list[tuple[str | None, int]]:
    """Returns (rack, number within the rack) for each replica; each pair is one broker."""
    seen: Counter[str | None] = Counter()
    replicas = []
    for rack in racks:
        replicas.append((rack, seen[rack]))
        seen[rack] += 1
    return replicas
