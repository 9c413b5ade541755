# SPDX-License-Identifier: Apache-2.0
"""Answers about the cluster: one broker, the topics, and partitions without records."""

import uuid
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kafka_rebalance.protocol.error_codes import ErrorCode

from .apis import APIS, KEYS
from .frames import Asked

NODE = 1
CLUSTER = "kafka-rebalance-serve"
_UNKNOWN_TOPIC = 3
_UNKNOWN_TOPIC_ID = 100
_UNSUPPORTED_VERSION = 35


class ServedTopic(NamedTuple):
    """A topic with its number of partitions; no partition has records."""

    name: str
    partitions: int

    @property
    def topic_id(self) -> uuid.UUID:
        """Returns an id that follows from the name, so that runs can repeat."""
        return uuid.uuid5(uuid.NAMESPACE_OID, self.name)


class Cluster:
    """The broker's address and the topics."""

    def __init__(self, topics: Iterable[ServedTopic]) -> None:
        self.topics = {topic.name: topic for topic in topics}
        self.host, self.port = "127.0.0.1", 0

    def node(self) -> dict[str, Any]:
        return {"node_id": NODE, "broker_id": NODE, "host": self.host, "port": self.port}

    def answer(self, asked: Asked) -> Mapping[str, Any] | None:
        """Returns the fields of the response; None for a request of a group."""
        answers = {
            "api_versions": self._api_versions,
            "metadata": self._metadata,
            "describe_cluster": self._describe_cluster,
            "find_coordinator": self._find_coordinator,
            "list_offsets": self._list_offsets,
            "fetch": self._fetch,
        }
        made = answers.get(asked.api)
        return None if made is None else made(asked)

    def _api_versions(self, asked: Asked) -> dict[str, Any]:
        keys = [
            {"api_key": KEYS[name], "min_version": least, "max_version": most}
            for name, (least, most) in APIS.items()
        ]
        # A client with a newer version gets version 0, and asks again with one from the list.
        error = _UNSUPPORTED_VERSION if asked.body is None else 0
        return {"error_code": error, "api_keys": keys}

    def _metadata(self, asked: Asked) -> dict[str, Any]:
        wanted = asked.body.topics
        # Up to version 0, an empty list means all topics; from version 1 on, null does.
        if wanted is None or (asked.version == 0 and not wanted):
            topics = [self._described(topic) for topic in self.topics.values()]
        else:
            topics = [self._wanted(one) for one in wanted]
        return {
            "brokers": [self.node()],
            "cluster_id": CLUSTER,
            "controller_id": NODE,
            "topics": topics,
            "error_code": 0,
        }

    def _wanted(self, one: Any) -> dict[str, Any]:
        topic = self._topic(one)
        if topic is not None:
            return self._described(topic)
        by_name = one.name is not None
        error = _UNKNOWN_TOPIC if by_name else _UNKNOWN_TOPIC_ID
        name = one.name if by_name else None
        topic_id = getattr(one, "topic_id", None)
        return {"error_code": error, "name": name, "topic_id": topic_id, "partitions": []}

    def _topic(self, one: Any) -> ServedTopic | None:
        """Finds a topic that a request names by `name`, `topic` or `topic_id`."""
        name = getattr(one, "name", None) or getattr(one, "topic", None)
        if name is not None:
            return self.topics.get(name)
        found = (each for each in self.topics.values() if each.topic_id == one.topic_id)
        return next(found, None)

    @staticmethod
    def _described(topic: ServedTopic) -> dict[str, Any]:
        partitions = [
            {
                "error_code": 0,
                "partition_index": partition,
                "leader_id": NODE,
                "leader_epoch": 0,
                "replica_nodes": [NODE],
                "isr_nodes": [NODE],
            }
            for partition in range(topic.partitions)
        ]
        return {
            "error_code": 0,
            "name": topic.name,
            "topic_id": topic.topic_id,
            "is_internal": False,
            "partitions": partitions,
        }

    def _describe_cluster(self, _: Asked) -> dict[str, Any]:
        broker = {**self.node(), "is_fenced": False}
        return {"error_code": 0, "cluster_id": CLUSTER, "controller_id": NODE, "brokers": [broker]}

    def _find_coordinator(self, asked: Asked) -> dict[str, Any]:
        found = {**self.node(), "error_code": 0, "error_message": None}
        keys = getattr(asked.body, "coordinator_keys", ())
        return {**found, "coordinators": [{**found, "key": key} for key in keys]}

    def _list_offsets(self, asked: Asked) -> dict[str, Any]:
        """Returns 0 as the first and as the last offset of every partition."""
        return {
            "topics": [
                {
                    "name": topic.name,
                    "partitions": [
                        {
                            "partition_index": one.partition_index,
                            "error_code": self._error(topic, one.partition_index),
                            "timestamp": -1,
                            "offset": 0,
                            "leader_epoch": 0,
                        }
                        for one in topic.partitions
                    ],
                }
                for topic in asked.body.topics
            ]
        }

    def _fetch(self, asked: Asked) -> dict[str, Any]:
        """Returns no records. The end of each partition is wherever the client reads."""
        return {
            "error_code": 0,
            "session_id": 0,
            "responses": [
                {
                    "topic": getattr(topic, "topic", None),
                    "topic_id": getattr(topic, "topic_id", None),
                    "partitions": [
                        {
                            "partition_index": one.partition,
                            "error_code": self._error(topic, one.partition),
                            "high_watermark": one.fetch_offset,
                            "last_stable_offset": one.fetch_offset,
                            "log_start_offset": 0,
                            "aborted_transactions": None,
                            "records": b"",
                        }
                        for one in topic.partitions
                    ],
                }
                for topic in asked.body.topics
            ],
        }

    def _error(self, one: Any, partition: int) -> int:
        topic = self._topic(one)
        if topic is None or partition >= topic.partitions:
            return _UNKNOWN_TOPIC
        return int(ErrorCode.NONE)
