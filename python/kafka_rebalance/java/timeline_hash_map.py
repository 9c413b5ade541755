# SPDX-License-Identifier: Apache-2.0
"""The iteration order of `TimelineHashMap`, in which a broker keeps its groups and their members.

    table        2 slots at first; before every `put`, also of a present key, it doubles if it would
                 then have more than 4/3 keys per slot; it never shrinks
    slot         the highest bits of the 64-bit product of the signed hash and a constant
    in a slot    keys are in order of insertion; a replaced value keeps its place; the iteration
                 walks each slot's keys backwards

>>> table = TimelineHashMap[int]()
>>> for number, name in enumerate("abcd"):
...     table.put(name, number)
>>> list(table)
['c', 'b', 'd', 'a']

Differs  a failed append restores the keys of a real table with other places inside a slot.
Source   org.apache.kafka.timeline.BaseHashTable, SnapshottableHashTable (Kafka 4.4.0).
"""

from collections.abc import Iterator
from typing import Generic, TypeVar

from .order import string_hash

V = TypeVar("V")
_GOLDEN = 0x9E3779B97F4A7C15
_FEWEST_SLOTS = 2


class TimelineHashMap(Generic[V]):
    """A map with text keys; `copy` is as cheap as that of a dict and of its slots."""

    def __init__(self) -> None:
        self._values: dict[str, V] = {}
        self._slots: list[list[str]] = [[] for _ in range(_FEWEST_SLOTS)]

    def copy(self) -> "TimelineHashMap[V]":
        new = TimelineHashMap[V]()
        new._values = dict(self._values)
        new._slots = [list(slot) for slot in self._slots]
        return new

    def put(self, key: str, value: V) -> None:
        if (len(self._values) + 1) * 0.75 > len(self._slots):
            self._double()
        if key not in self._values:
            self._slot(key).append(key)
        self._values[key] = value

    def remove(self, key: str) -> V | None:
        """Removes a key; returns its value, None if it is absent."""
        if key not in self._values:
            return None
        self._slot(key).remove(key)
        return self._values.pop(key)

    def get(self, key: str) -> V | None:
        return self._values.get(key)

    def __getitem__(self, key: str) -> V:
        return self._values[key]

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[str]:
        return (key for slot in self._slots for key in reversed(slot))

    def values(self) -> list[V]:
        return [self._values[key] for key in self]

    def items(self) -> list[tuple[str, V]]:
        return [(key, self._values[key]) for key in self]

    def _slot(self, key: str) -> list[str]:
        hashed = string_hash(key)
        signed = hashed - (1 << 32) if hashed >> 31 else hashed
        bits = len(self._slots).bit_length() - 1
        return self._slots[(signed * _GOLDEN & 0xFFFFFFFFFFFFFFFF) >> (64 - bits)]

    def _double(self) -> None:
        keys = [key for slot in self._slots for key in slot]
        self._slots = [[] for _ in range(2 * len(self._slots))]
        for key in keys:
            self._slot(key).append(key)
