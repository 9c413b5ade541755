# SPDX-License-Identifier: Apache-2.0
"""The iteration order of `TimelineHashMap`, in which a broker keeps groups, members and offsets.

    table        2 slots at first; a `put`, even of a known key, first doubles the table if one more
                 key would make more than 4/3 keys per slot; it never shrinks
    slot         its number is the highest bits of the 64-bit product of the signed hash and a
                 constant
    in a slot    keys are in order of insertion; a replaced value keeps its place; the iteration
                 walks each slot's keys backwards
    snapshot     has an epoch, and a table with the old values of the keys that have changed since
    revert       removes the keys that were put since the snapshot, then puts the snapshot's values
                 again, so these keys are at the end of their slots; the table of the snapshot stays

>>> table = TimelineHashMap[str, int]()
>>> for number, name in enumerate("abcd"):
...     table.put(name, number)
>>> list(table)
['c', 'b', 'd', 'a']
>>> table.snapshot(epoch=1)
>>> for number, name in enumerate("bxf"):
...     table.put(name, number)
>>> table.revert()
>>> table.items()
[('c', 2), ('b', 1), ('d', 3), ('a', 0)]

Source   org.apache.kafka.timeline.BaseHashTable, SnapshottableHashTable, Snapshot (Kafka 4.4.0).
"""

from collections.abc import Iterator
from typing import Any, TypeVar

from .hash_map import Values
from .order import string_hash

K = TypeVar("K", bound=str | int)
V = TypeVar("V")
_GOLDEN = 0x9E3779B97F4A7C15
_FEWEST_SLOTS = 2


class _HashTable(Values[K, V]):
    """A `BaseHashTable`; its keys are strings or 32-bit numbers."""

    def __init__(self) -> None:
        self._values: dict[K, V] = {}
        self._slots: list[list[K]] = [[] for _ in range(_FEWEST_SLOTS)]

    def put(self, key: K, value: V) -> None:
        if (len(self._values) + 1) * 0.75 > len(self._slots):
            self._double()
        if key not in self._values:
            self._slot(key).append(key)
        self._values[key] = value

    def remove(self, key: K) -> V | None:
        """Removes a key; returns its value, or None if the key was absent."""
        if key not in self._values:
            return None
        self._slot(key).remove(key)
        return self._values.pop(key)

    def forwards(self) -> list[tuple[K, V]]:
        """Returns the entries slot by slot, and within a slot in the order of insertion."""
        return [(key, self._values[key]) for slot in self._slots for key in slot]

    def _slot(self, key: K) -> list[K]:
        bits = len(self._slots).bit_length() - 1
        return self._slots[(_hash_code(key) * _GOLDEN & 0xFFFFFFFFFFFFFFFF) >> (64 - bits)]

    def _double(self) -> None:
        keys = [key for slot in self._slots for key in slot]
        self._slots = [[] for _ in range(2 * len(self._slots))]
        for key in keys:
            self._slot(key).append(key)


def _hash_code(key: str | int) -> int:
    """Returns `hashCode` of a `String` or an `Integer`, as a signed number."""
    if isinstance(key, int):
        return key
    hashed = string_hash(key)
    return hashed - (1 << 32) if hashed >> 31 else hashed


class SnapshotRegistry:
    """Takes snapshots of several maps together. `changed` contains the maps that have changed since
    the last snapshot.
    """

    def __init__(self) -> None:
        self.changed: dict[TimelineHashMap[Any, Any], None] = {}
        self._epoch = -1

    def snapshot(self, epoch: int) -> None:
        if epoch != self._epoch:
            for table in self.changed:
                table.snapshot(epoch)
            self.changed.clear()
        self._epoch = epoch

    def revert(self) -> None:
        for table in self.changed:
            table.revert()


class TimelineHashMap(_HashTable[K, V]):
    """A map with one snapshot. `copy` copies the entries and the slots, but no snapshot."""

    def __init__(self, registry: SnapshotRegistry | None = None) -> None:
        super().__init__()
        self._registry = registry
        self._epoch = -1
        self._put: set[K] = set()  # keys put since the snapshot or the last revert to it
        self._older: _HashTable[K, V] | None = None  # old values of changed keys

    def copy(self) -> "TimelineHashMap[K, V]":
        new = TimelineHashMap[K, V](self._registry)
        new._values = dict(self._values)
        new._slots = [list(slot) for slot in self._slots]
        return new

    def put(self, key: K, value: V) -> None:
        self._keep(key)
        self._put.add(key)
        super().put(key, value)

    def remove(self, key: K) -> V | None:
        self._keep(key)
        self._put.discard(key)
        return super().remove(key)

    def snapshot(self, epoch: int) -> None:
        """Makes `revert` return to the present state; does nothing if the epoch is unchanged."""
        if epoch != self._epoch:
            self._epoch, self._older = epoch, None
            self._put.clear()

    def revert(self) -> None:
        """Undoes all changes since the snapshot, which stays."""
        for key in self._put:
            super().remove(key)
        self._put.clear()
        for key, value in () if self._older is None else self._older.forwards():
            super().put(key, value)

    def take_places(self, reverted: "TimelineHashMap[K, V]") -> None:
        """Takes the order of the keys, and the snapshot, from a reverted map if its keys are equal.

        The values stay as they are.
        """
        if reverted._values.keys() == self._values.keys():
            self._slots, self._older = reverted._slots, reverted._older
            self._epoch, self._put = reverted._epoch, reverted._put

    def __iter__(self) -> Iterator[K]:
        return (key for slot in self._slots for key in reversed(slot))

    def values(self) -> list[V]:
        return [self._values[key] for key in self]

    def _keep(self, key: K) -> None:
        """Stores the snapshot's value of a key that is about to change."""
        if self._registry is not None:
            self._registry.changed[self] = None
        if key in self._values and key not in self._put:
            if self._older is None:
                self._older = _HashTable()
            self._older.put(key, self._values[key])
