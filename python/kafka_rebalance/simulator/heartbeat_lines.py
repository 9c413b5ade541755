# SPDX-License-Identifier: Apache-2.0
"""Writes the heartbeats of consumer groups as lines of a run's text, with the topics' names."""

from kafka_rebalance.coordinator import TopicsChanged
from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.playback.member_lines import listed
from kafka_rebalance.wire.broker_groups import (
    ConsumerGroupHeartbeat,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kafka_rebalance.wire.error_codes import ErrorCode

_Partitions = tuple[TopicPartitions, ...]


class HeartbeatLines:
    """Writes requests and responses; heartbeats without news have no line."""

    def __init__(self) -> None:
        self._names: dict[Uuid, str] = {}

    def learn(self, event: TopicsChanged) -> None:
        self._names |= {one.topic_id: one.name for one in event.topics}

    def request(self, request: ConsumerGroupHeartbeat) -> str | None:
        names, pattern = request.subscribed_topic_names, request.subscribed_topic_regex
        owned = request.topic_partitions
        if request.member_epoch > 0 and (names, pattern, owned) == (None, None, None):
            return None
        parts = [f"ConsumerGroupHeartbeat epoch={request.member_epoch}"]
        if request.instance_id is not None:
            parts.append(f"instance={request.instance_id}")
        if names:
            parts.append(f"topics={listed(names)}")
        if pattern:
            parts.append(f"pattern={pattern}")
        if request.server_assignor is not None:
            parts.append(f"assignor={request.server_assignor}")
        if owned is not None and request.member_epoch >= 0:
            parts.append(f"owned={self._listed(owned)}")
        return " ".join(parts)

    def response(self, response: ConsumerGroupHeartbeatResponse) -> str | None:
        error, assignment = response.error_code, response.assignment
        if error is not ErrorCode.NONE:
            return f"ConsumerGroupHeartbeat {error}"
        if assignment is None and response.member_epoch >= 0:
            return None
        parts = [f"ConsumerGroupHeartbeat NONE epoch={response.member_epoch}"]
        if assignment is not None:
            parts.append(f"assignment={self._listed(assignment)}")
        return " ".join(parts)

    def _listed(self, partitions: _Partitions) -> str:
        names = sorted(
            (self._names.get(one.topic_id, "?"), number)
            for one in partitions
            for number in one.partitions
        )
        return listed(f"{name}-{number}" for name, number in names)
