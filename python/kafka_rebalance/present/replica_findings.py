# SPDX-License-Identifier: Apache-2.0
"""Findings on replicas: no leader answers, or no replica is in the rack of the reader."""

from collections.abc import Iterable, Iterator

from kafka_rebalance.group.model import Topic, TopicPartition
from kafka_rebalance.notes.note import Note
from kafka_rebalance.plans.figures import Reader


def leaderless_finding(partitions: Iterable[TopicPartition]) -> Iterator[Note]:
    """Yields a finding if there are `partitions` for which no leader answers."""
    if named := tuple(partitions):
        text = "no leader answers, so no member can read here, and the lag is unknown"
        yield Note("leaderless", text, partitions=named)


def far_finding(
    topics: Iterable[Topic], readers: Iterable[Reader], ask: str | None = None
) -> Iterator[Note]:
    """Yields a finding on partitions without a replica in the rack of their reader, if known."""
    racks = {topic.name: topic.racks or () for topic in topics}
    far: list[tuple[str, TopicPartition]] = []
    for member_id, rack, partitions in readers:
        for tp in partitions if rack is not None else ():
            replicas = racks.get(tp.topic, ())[tp.partition : tp.partition + 1]
            known = {one for replica in replicas for one in replica if one is not None}
            if known and rack not in known:
                far.append((member_id, tp))
    if far:
        ids = tuple(dict.fromkeys(member_id for member_id, _ in far))
        text = "no replica is in the rack of the member that reads here"
        yield Note("across racks", text, ids, tuple(tp for _, tp in far), ask)
