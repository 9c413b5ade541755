# SPDX-License-Identifier: Apache-2.0
"""A member's assignments: the coordinator's, and the one that the member has applied.

A local epoch counts the assignments that differ from the last one. So the member acknowledges an
assignment even if the one that it applied last contains the same partitions.

Source   AbstractMembershipManager.LocalAssignment (Kafka 4.4.0).
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.wire.broker_groups import TopicPartitions

from ..interface import Partitions

_NO_EPOCH = -1


class LocalAssignment(NamedTuple):
    """Partitions by topic id, ascending; only the client knows `epoch`."""

    epoch: int
    partitions: Mapping[Uuid, tuple[int, ...]]

    @property
    def is_none(self) -> bool:
        """Returns whether this stands for no assignment, which differs from an empty one."""
        return self.epoch == _NO_EPOCH

    def updated(self, assigned: Iterable[TopicPartitions]) -> "LocalAssignment":
        """Returns the assignment that follows this one; itself if the partitions are equal."""
        partitions = {one.topic_id: tuple(sorted(one.partitions)) for one in assigned}
        if not self.is_none and partitions == self.partitions:
            return self
        return LocalAssignment(self.epoch + 1, partitions)

    def resolved(self, names: Mapping[Uuid, str]) -> "LocalAssignment":
        """Returns the part whose topic ids are in `names`."""
        known = {topic: numbers for topic, numbers in self.partitions.items() if topic in names}
        return LocalAssignment(self.epoch, known)

    def named(self, names: Mapping[Uuid, str]) -> Partitions:
        """Returns the partitions by name, sorted by topic and number."""
        there = self.partitions.items()
        pairs = ((names[topic], number) for topic, numbers in there for number in numbers)
        return tuple(TopicPartition(*pair) for pair in sorted(pairs))

    def sent(self) -> tuple[TopicPartitions, ...]:
        return tuple(TopicPartitions(*one) for one in self.partitions.items())


NO_ASSIGNMENT = LocalAssignment(_NO_EPOCH, {})
