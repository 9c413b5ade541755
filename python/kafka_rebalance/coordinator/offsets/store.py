# SPDX-License-Identifier: Apache-2.0
"""Committed offsets: the durable offsets, and the changes of appends in flight.

    committed   (topic, partition) -> value and its position in the log; the later position wins
    pending     producer -> (topic, partition) -> value that waits for the transaction's marker
    staged      append -> its changes, not durable yet

A fetch reads durable offsets. Decisions about new records (deletes, expiry, stability) read the
latest offsets: the durable ones with all staged changes applied. `OffsetOrder` keeps the order of
the partitions in Kafka's hash maps. The maps change when records are appended, before they are
durable; a failed append reverts them.

Source   OffsetMetadataManager (replay, replayEndTransactionMarker, Offsets, OpenTransactions) of
         Kafka 4.4.0; docs/behaviour/coordinator.md#81-what-is-kept.
"""

from collections.abc import Sequence
from dataclasses import field
from itertools import count
from typing import NamedTuple

from kafka_rebalance.frozen import Mutable
from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.java.timeline_hash_map import SnapshotRegistry, TimelineHashMap

Partition = tuple[str, int]  # (topic, partition)


class CommittedOffset(NamedTuple):
    """A committed offset. Times are in ms; an absent time, epoch or id is None."""

    offset: int
    metadata: str
    commit_timestamp_ms: int
    leader_epoch: int | None = None
    expire_timestamp_ms: int | None = None
    topic_id: Uuid | None = None


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

# (producer, partition, value); the producer is None once the value is committed
OffsetValue = tuple[int | None, Partition, CommittedOffset]


class Stored(NamedTuple):
    """A value and its position in the log; the value is None after a tombstone."""

    value: CommittedOffset | None
    position: int


class GroupOffsets(Mutable):
    """The offsets of one group. `pending` holds the producers whose transactions are open."""

    committed: dict[Partition, Stored] = field(default_factory=dict)
    pending: dict[int, dict[Partition, Stored]] = field(default_factory=dict)

    def value(self, partition: Partition) -> CommittedOffset | None:
        stored = self.committed.get(partition)
        return None if stored is None else stored.value

    def values(self) -> list[tuple[Partition, CommittedOffset]]:
        """Returns all committed values, in the order in which their partitions were added."""
        return [
            (partition, stored.value)
            for partition, stored in self.committed.items()
            if stored.value is not None
        ]

    def is_pending(self, partition: Partition) -> bool:
        """Returns whether an open transaction has a value for the partition."""
        return any(partition in values for values in self.pending.values())

    def is_empty(self) -> bool:
        """Returns whether there are no values, no pending values and no tombstones."""
        return not (self.committed or self.pending)

    def contents(self) -> frozenset[OffsetValue]:
        """Returns all values: committed (producer None) and pending."""
        return frozenset(
            (producer, partition, stored.value)
            for producer, values in ((None, self.committed), *self.pending.items())
            for partition, stored in values.items()
            if stored.value is not None
        )

    def copy(self) -> "GroupOffsets":
        """Returns a copy that can be changed; both share the immutable values."""
        pending = {producer: dict(values) for producer, values in self.pending.items()}
        return GroupOffsets(dict(self.committed), pending)

    def apply(self, change: OffsetChange, position: int) -> None:
        """Applies one record; a value replaces a committed one only if its position is later."""
        match change:
            case Commit(_, partition, value, producer_id):
                stored = Stored(value, position)
                if producer_id is None:
                    self._install(partition, stored)
                else:
                    self.pending.setdefault(producer_id, {})[partition] = stored
            case Forget(_, partition):
                self._install(partition, Stored(None, position))
                for producer_id, values in list(self.pending.items()):
                    values.pop(partition, None)
                    if not values:
                        del self.pending[producer_id]
            case Marker(producer_id, committed):
                for partition, stored in self.pending.pop(producer_id, {}).items():
                    if committed:
                        self._install(partition, stored)

    def _install(self, partition: Partition, stored: Stored) -> None:
        known = self.committed.get(partition)
        if known is None or known.position < stored.position:
            self.committed[partition] = stored

    def purge(self) -> None:
        """Drops tombstones; they only matter while an older append is in flight."""
        there = {name: one for name, one in self.committed.items() if one.value is not None}
        self.committed = there


_NONE = GroupOffsets()

# The order of partitions --------------------------------------------------------------------------

_Partitions = TimelineHashMap[int, int]
_Topics = TimelineHashMap[str, _Partitions]


class _Table:
    """Hash maps: group id -> topic -> partition -> number of the partition's last record."""

    def __init__(self, registry: SnapshotRegistry) -> None:
        self._registry = registry
        self._groups = TimelineHashMap[str, _Topics](registry)

    def put(self, group_id: str, partition: Partition, number: int) -> None:
        topic, index = partition
        if group_id not in self._groups:
            self._groups.put(group_id, _Topics(self._registry))
        topics = self._groups[group_id]
        if topic not in topics:
            topics.put(topic, _Partitions(self._registry))
        topics[topic].put(index, number)

    def get(self, group_id: str, partition: Partition) -> int | None:
        topic, index = partition
        partitions = self._groups[group_id].get(topic) if group_id in self._groups else None
        return None if partitions is None else partitions.get(index)

    def remove(self, group_id: str, partition: Partition) -> None:
        topic, index = partition
        topics = self._groups.get(group_id)
        if topics is None or topic not in topics:
            return
        partitions = topics[topic]
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
        """Returns triples: group id, partition, number of the partition's last record."""
        return [
            (group_id, (topic, index), number)
            for group_id, topics in self._groups.items()
            for topic, partitions in topics.items()
            for index, number in partitions.items()
        ]


class OffsetOrder:
    """The partitions of all groups, in the order of Kafka's hash maps."""

    def __init__(self) -> None:
        self._registry = SnapshotRegistry()
        self._committed = _Table(self._registry)
        # This map hashes producer ids, which have 64 bits, differently than Java. That is harmless:
        # no answer depends on the order of this map.
        self._pending = TimelineHashMap[int, _Table](self._registry)
        self._open = _Table(self._registry)
        self._numbers = count()

    def partitions(self, group_id: str) -> list[Partition]:
        """Returns a group's partitions: those with a committed offset first; no repeats."""
        pending = self._open.partitions(group_id)
        return list(dict.fromkeys([*self._committed.partitions(group_id), *pending]))

    def snapshot(self, epoch: int) -> None:
        """Makes `revert` return to the present order; does nothing if the epoch is unchanged."""
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
        """Ends a transaction; a commit replaces a committed offset only if that offset is older."""
        ended = self._pending.remove(producer_id)
        for group_id, partition, number in () if ended is None else ended.entries():
            others = self._pending.values()
            if all(one.get(group_id, partition) is None for one in others):
                self._open.remove(group_id, partition)
            known = self._committed.get(group_id, partition)
            if is_commit and (known is None or known < number):
                self._committed.put(group_id, partition, number)


# All offsets --------------------------------------------------------------------------------------

# Changes of appends in flight get positions after all records of the log, in order of appends.
_AFTER_THE_LOG = 1 << 62


class Offsets:
    """The offsets of all groups, with the changes of appends in flight."""

    def __init__(self) -> None:
        self._groups: dict[str, GroupOffsets] = {}
        self._groups_of: dict[int, dict[str, None]] = {}  # producer -> groups with its values
        self._staged: dict[int, tuple[OffsetChange, ...]] = {}
        self._tombstones: dict[str, None] = {}  # groups whose tombstones are not dropped yet
        self._order = OffsetOrder()

    def durable(self, group_id: str) -> GroupOffsets:
        """Returns a group's durable offsets; the caller must not change them."""
        return self._groups.get(group_id, _NONE)

    def latest(self, group_id: str) -> GroupOffsets:
        """Returns durable offsets with staged changes applied; the caller must not change them."""
        every = (change for changes in self._staged.values() for change in changes)
        staged = [one for one in every if isinstance(one, Marker) or one.group_id == group_id]
        durable = self.durable(group_id)
        if not staged:
            return durable
        latest = durable.copy()
        for place, change in enumerate(staged):
            latest.apply(change, _AFTER_THE_LOG + place)
        latest.purge()
        return latest

    def partitions(self, group_id: str) -> list[Partition]:
        """Returns partitions with a committed offset, then partitions with only pending values.

        Both are in the order of Kafka's hash maps, as long as failed appends are undone as in
        Kafka, newest first.
        """
        latest = self.latest(group_id)
        pending = {one: None for values in latest.pending.values() for one in values}
        there = dict.fromkeys(partition for partition, _ in latest.values()) | pending
        place = {one: number for number, one in enumerate(self._order.partitions(group_id))}
        return sorted(there, key=lambda one: place.get(one, len(place)))

    def groups(self) -> list[str]:
        """Returns the ids of groups with offsets, durable or staged."""
        staged = {
            change.group_id: None
            for changes in self._staged.values()
            for change in changes
            if not isinstance(change, Marker)
        }
        return list(self._groups | staged)

    def stage(self, append_id: int, changes: Sequence[OffsetChange], log_epoch: int) -> None:
        """Stages the changes that an append will make when it is durable."""
        self._staged[append_id] = tuple(changes)
        self._order.snapshot(log_epoch)
        for change in changes:
            self._order.apply(change)

    def complete(self, append_id: int, position: int) -> None:
        """Applies the changes of an append that is durable; their positions start at `position`."""
        for place, change in enumerate(self._staged.pop(append_id)):
            self._apply(change, position + place)
        self._purge()

    def fail(self, append_id: int) -> None:
        if append_id == next(reversed(self._staged)):
            self._order.revert()
        del self._staged[append_id]
        self._purge()

    def load(self, change: OffsetChange, position: int) -> None:
        """Applies one record while the log is being loaded, in the log's order."""
        self._apply(change, position)
        self._order.apply(change)
        self._purge()

    def _apply(self, change: OffsetChange, position: int) -> None:
        if isinstance(change, Marker):
            for group_id in self._groups_of.pop(change.producer_id, {}):
                if group_id in self._groups:
                    self._groups[group_id].apply(change, position)
                    self._drop_if_empty(group_id)
            return
        if isinstance(change, Commit):
            if change.producer_id is not None:
                self._groups_of.setdefault(change.producer_id, {})[change.group_id] = None
        else:
            self._tombstones[change.group_id] = None
        self._groups.setdefault(change.group_id, GroupOffsets()).apply(change, position)

    def _purge(self) -> None:
        if self._staged:
            return
        for group_id in self._tombstones:
            if group_id in self._groups:
                self._groups[group_id].purge()
                self._drop_if_empty(group_id)
        self._tombstones.clear()

    def _drop_if_empty(self, group_id: str) -> None:
        if self._groups[group_id].is_empty():
            del self._groups[group_id]
