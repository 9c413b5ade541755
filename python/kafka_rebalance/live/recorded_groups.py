# SPDX-License-Identifier: Apache-2.0
"""Reads broker-assigned groups from their records in `__consumer_offsets`.

1. A coordinator loads the last record of each key of one group, in the order of the log.
2. It describes the group, and `broker_groups.py` makes the contract line from the description.
3. Records show more than a description: the initialised partitions of a share group, the
   topology of a streams group, and the settings of its last epoch.

Order    members as in the hash map of a broker that loads these records now.
Unknown  the offsets that members of a streams group reported: no record contains them.
Errors   GroupError for records that a coordinator cannot load; the errors of `broker_groups.py`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from kafka_rebalance.coordinator.coordinator import Coordinator
from kafka_rebalance.coordinator.machine import events
from kafka_rebalance.coordinator.share_group.group import ShareGroup
from kafka_rebalance.coordinator.streams_group.group import StreamsGroup
from kafka_rebalance.coordinator.streams_group.target import NUM_STANDBY_REPLICAS
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.model import quoted, uuid_of
from kafka_rebalance.wire.broker_groups import ConsumerGroupDescribe, ShareGroupDescribe
from kafka_rebalance.wire.messages import common_fields
from kafka_rebalance.wire.streams_groups import (
    DescribedSubtopology,
    DescribedTopology,
    StreamsGroupDescribe,
)

from .broker_groups import StreamsSettings, broker_line, streams_line
from .described_topics import topics_of

_DESCRIBE: dict[str, type[Any]] = {
    "consumer": ConsumerGroupDescribe,
    "share": ShareGroupDescribe,
    "streams": StreamsGroupDescribe,
}


class RecordedGroups:
    """The groups of one cluster. `topics` are as in contract lines, with their `topic_id`."""

    def __init__(self, topics: Iterable[Mapping[str, Any]]) -> None:
        self._topics: dict[str, dict[str, Any]] = {}
        self._wrong: dict[str, GroupError] = {}
        self._coordinator = Coordinator()
        known = []
        for one in topics:
            name, topic_id, partitions = one["name"], one.get("topic_id"), one["partitions"]
            if topic_id and partitions is None:
                self._wrong[name] = GroupError("topics.partitions", f"{quoted(name)}: missing")
            elif topic_id:
                try:
                    known.append(events.ClusterTopic(name, uuid_of(topic_id), partitions))
                    self._topics[name] = dict(one)
                except ValueError as error:
                    problem = f"{quoted(name)}: {error}"
                    self._wrong[name] = GroupError("topics.topic_id", problem)
        self._coordinator.handle(events.TopicsChanged(tuple(known), 1), 0)

    def line(self, group_id: str, records: Iterable[tuple[bytes, bytes]]) -> dict[str, Any] | None:
        """Returns a group's line, with its `kind` and `state`; None if it is absent or classic.
        Errors: GroupError for unreadable records, or a topic with a wrong id or no partition count.

        `records` are (key, value), the last of each key; the line of a group without members has
        neither topics nor an assignor.
        """
        # 1.
        entries = (events.LogEntry(i, key, value) for i, (key, value) in enumerate(records))
        for effect in self._coordinator.handle(events.Loaded(tuple(entries)), 0):
            if isinstance(effect, events.Unreadable):
                raise GroupError("records", effect.problem)
        group: Any = self._coordinator.groups().get(group_id)
        if group is None or group.group_type not in _DESCRIBE:
            return None
        kind = {"kind": group.group_type, "state": str(group.state)}
        if group.is_empty:
            return {"group_id": group_id, "generation_id": group.epoch, **kind}
        line = self._described(group_id, group)
        for name in filter(self._wrong.__contains__, topics_of(line)):
            raise self._wrong[name]
        topics = [self._topics[name] for name in topics_of(line) if name in self._topics]
        if isinstance(group, ShareGroup) and group.share_state is not None:
            ready = {one.name: one.partitions for one in group.share_state.initialized.values()}
            topics = [one | {"initialized": sorted(ready.get(one["name"], ()))} for one in topics]
        return {**line, "topics": topics, **kind}

    def _described(self, group_id: str, group: Any) -> dict[str, Any]:
        # 2.
        ask = _DESCRIBE[group.group_type](group_ids=(group_id,))
        (answer,) = self._coordinator.handle(events.Received(1, ask), 0)
        assert isinstance(answer, events.Respond)
        response: Any = answer.response
        (described,) = response.groups
        if not isinstance(group, StreamsGroup):
            return broker_line(described, self._topics)
        # 3.
        parts = () if group.topology is None else group.topology.subtopologies
        known = (DescribedSubtopology(**common_fields(one, DescribedSubtopology)) for one in parts)
        standby = int(group.assignment_configs.get(NUM_STANDBY_REPLICAS, 0))
        return streams_line(
            replace(described, topology=DescribedTopology(epoch=0, subtopologies=tuple(known))),
            lambda name: self._topics.get(name, {"partitions": 0})["partitions"],
            StreamsSettings(standby, "streams/sticky"),
        )
