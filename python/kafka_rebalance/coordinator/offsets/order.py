# SPDX-License-Identifier: Apache-2.0
"""The changes of committed offsets, and their order in Kafka's tables.

    committed   group id -> topic -> partition -> number of its record
    pending     producer -> the same, while its transaction is open
    open        group id -> topic -> partition, if any producer has a pending value for it

Each level is a `TimelineHashMap`, from whose parent it is removed when it is empty. As in Kafka,
the tables change when records are appended, before these are durable; a failed append reverts them.
`Offsets` has the values.

Source   OffsetMetadataManager (replay, replayEndTransactionMarker, Offsets, OpenTransactions,
         deleteAllOffsets) of Kafka 4.4.0.
"""

from itertools import count
from typing import NamedTuple

from kafka_rebalance.java.timeline_hash_map import SnapshotRegistry, TimelineHashMap

Partition = tuple[str, int]  # (topic, partition)


class CommittedOffset(NamedTuple):
    """A committed offset. Times in ms; an absent time or epoch is None."""

    offset: int
    metadata: str
    commit_timestamp_ms: int
    leader_epoch: int | None = None
    expire_timestamp_ms: int | None = None


class Commit(NamedTuple):
    """A record with a value; it belongs to a transaction if `producer_id` is set."""

    group_id: str
    partition: Partition
    value: CommittedOffset
    producer_id: int | None = None


class Forget(NamedTuple):
    """A tombstone: it removes the committed value and all pending values of the partition."""

    group_id: str
    partition: Partition


class Marker(NamedTuple):
    """The end of a producer's transaction."""

    producer_id: int
    committed: bool


OffsetChange = Commit | Forget | Marker

_Partitions = TimelineHashMap[int, int]
_Topics = TimelineHashMap[str, _Partitions]


class _Table:
    """Groups, their topics, and the numbers of the topics' partitions."""

    def __init__(self, registry: SnapshotRegistry) -> None:
        self._registry = registry
        self._groups = TimelineHashMap[str, _Topics](registry)

    def put(self, group_id: str, partition: Partition, number: int) -> None:
        topic, index = partition
        topics = self._groups.get(group_id)
        if topics is None:
            topics = _Topics(self._registry)
            self._groups.put(group_id, topics)
        partitions = topics.get(topic)
        if partitions is None:
            partitions = _Partitions(self._registry)
            topics.put(topic, partitions)
        partitions.put(index, number)

    def get(self, group_id: str, partition: Partition) -> int | None:
        topic, index = partition
        topics = self._groups.get(group_id)
        partitions = None if topics is None else topics.get(topic)
        return None if partitions is None else partitions.get(index)

    def remove(self, group_id: str, partition: Partition) -> None:
        topic, index = partition
        topics = self._groups.get(group_id)
        partitions = None if topics is None else topics.get(topic)
        if topics is None or partitions is None:
            return
        partitions.remove(index)
        if not len(partitions):
            topics.remove(topic)
        if not len(topics):
            self._groups.remove(group_id)

    def partitions(self, group_id: str) -> list[Partition]:
        topics = self._groups.get(group_id)
        found = () if topics is None else topics.items()
        return [(topic, index) for topic, partitions in found for index in partitions]

    def entries(self) -> list[tuple[str, Partition, int]]:
        """Returns group ids with partitions and their numbers."""
        return [
            (group_id, (topic, index), number)
            for group_id, topics in self._groups.items()
            for topic, partitions in topics.items()
            for index, number in partitions.items()
        ]


class OffsetOrder:
    """The partitions of all groups, in the order of Kafka's tables."""

    def __init__(self) -> None:
        self._registry = SnapshotRegistry()
        self._committed = _Table(self._registry)
        # Producer ids have 64 bits, which this table hashes in another way than Java. That does
        # no harm: no answer depends on the order of this table.
        self._pending = TimelineHashMap[int, _Table](self._registry)
        self._open = _Table(self._registry)
        self._numbers = count()

    def partitions(self, group_id: str) -> list[Partition]:
        """Returns a group's partitions: those with a committed offset first; no repeats."""
        pending = self._open.partitions(group_id)
        return list(dict.fromkeys([*self._committed.partitions(group_id), *pending]))

    def snapshot(self, epoch: int) -> None:
        """Makes the present order the one that `revert` returns to, if the epoch is a new one."""
        self._registry.snapshot(epoch)

    def revert(self) -> None:
        self._registry.revert()

    def apply(self, change: OffsetChange) -> None:
        match change:
            case Commit(group_id, partition, _, None):
                self._committed.put(group_id, partition, next(self._numbers))
            case Commit(group_id, partition, _, int(producer_id)):
                if producer_id not in self._pending:
                    self._pending.put(producer_id, _Table(self._registry))
                number = next(self._numbers)
                self._pending[producer_id].put(group_id, partition, number)
                if self._open.get(group_id, partition) is None:
                    self._open.put(group_id, partition, number)
            case Forget(group_id, partition):
                self._committed.remove(group_id, partition)
                for table in self._pending.values():
                    table.remove(group_id, partition)
                self._open.remove(group_id, partition)
            case Marker(producer_id, is_commit):
                self._end(producer_id, is_commit)

    def _end(self, producer_id: int, is_commit: bool) -> None:
        """Ends a producer's transaction; of two values, the later record's is the committed one."""
        ended = self._pending.remove(producer_id)
        for group_id, partition, number in () if ended is None else ended.entries():
            others = self._pending.values()
            if all(one.get(group_id, partition) is None for one in others):
                self._open.remove(group_id, partition)
            known = self._committed.get(group_id, partition)
            if is_commit and (known is None or known < number):
                self._committed.put(group_id, partition, number)
