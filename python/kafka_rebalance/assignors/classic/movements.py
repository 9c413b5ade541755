# SPDX-License-Identifier: Apache-2.0
"""Records the moves of the general sticky algorithm, to keep partitions from moving in circles.

Suppose that a partition is to move to member d, and that c is its first owner in this run of the
assignor (its present owner, if it has not moved yet). If another partition of its topic moved from
d to c in this run, that partition moves back to d instead. If c is still the present owner, the
numbers of partitions of c and d change as intended; if not, c loses a partition instead of the
present owner.

If several such partitions exist, the first one in a Java HashSet moves back. The order of this set
depends on all its insertions and removals.

Source   AbstractStickyAssignor.PartitionMovements (Kafka 4.4.0).
"""

from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.java.hash_table import HashTable
from kafka_rebalance.java.order import partition_hash


class Movements:
    """All moves of one run, by partition and by pair of members."""

    def __init__(self) -> None:
        # partition -> its first owner, its present owner
        self._moved: dict[TopicPartition, tuple[str, str]] = {}
        # topic, first owner, present owner -> partitions
        self._by_pair: dict[tuple[str, str, str], HashTable[int]] = {}

    def actual(self, tp: TopicPartition, source: str, destination: str) -> TopicPartition:
        """Returns the partition that Kafka moves instead of `tp`; `tp` itself if there is none."""
        if tp in self._moved:
            source, _ = self._moved[tp]
        moved_back = self._by_pair.get((tp.topic, destination, source))
        return tp if moved_back is None else TopicPartition(tp.topic, next(iter(moved_back)))

    def record(self, tp: TopicPartition, source: str, destination: str) -> None:
        """Records a move; a partition that returns to its first owner loses its record."""
        if tp in self._moved:
            source = self._forget(tp)
            if source == destination:
                return
        self._moved[tp] = source, destination
        table = self._by_pair.setdefault((tp.topic, source, destination), HashTable())
        table.put(tp.partition, partition_hash(*tp), tp.partition)

    def state(self) -> tuple[object, object]:
        """Returns a value that is equal for two states from which the same moves follow."""
        return dict(self._moved), {pair: table.state() for pair, table in self._by_pair.items()}

    def _forget(self, tp: TopicPartition) -> str:
        source, destination = self._moved.pop(tp)
        table = self._by_pair[tp.topic, source, destination]
        table.remove(tp.partition)
        if not table:
            del self._by_pair[tp.topic, source, destination]
        return source
