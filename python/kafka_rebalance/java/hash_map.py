# SPDX-License-Identifier: Apache-2.0
"""Maps and sets in the order of `java.util.HashMap`; keys are numbers, ids or partitions.

`hash_table.py` computes the order of the keys; a tree compares keys whose hashes are equal. As in
Java, `put` and `compute_if_absent` can put the same new key in different places in the order.

>>> numbers = HashSet.copied(integer_hash, [33, 1, 16])
>>> numbers.add(17)
>>> list(numbers)  # slots 0, 1, 1, 1 of 16
[16, 33, 1, 17]

Source   java.util.HashMap, HashSet, Integer, org.apache.kafka.common.Uuid (Kafka 4.4.0, JDK 17).
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from .hash_table import DEFAULT_SLOTS, HashTable
from .order import copied_slots

K = TypeVar("K")
V = TypeVar("V")
Uuid = tuple[int, int]
"""An id: its upper and its lower 64 bits, both signed, as `Uuid.compareTo` compares them."""


def integer_hash(number: int) -> int:
    return number


def uuid_hash(uuid: Uuid) -> int:
    """Returns `Uuid.hashCode` as an unsigned 32-bit number."""
    bits = (uuid[0] ^ uuid[1]) & 0xFFFFFFFFFFFFFFFF
    return (bits >> 32 ^ bits) & 0xFFFFFFFF


def id_partition_hash(tp: tuple[Uuid, int]) -> int:
    """Returns `TopicIdPartition.hashCode`, the hash of a Java record, as an unsigned number."""
    return (31 * uuid_hash(tp[0]) + tp[1]) & 0xFFFFFFFF


def slots_for(capacity: int) -> int:
    """Returns how many slots `new HashMap(capacity)` has: `capacity` rounded up to a power of two.

    >>> [slots_for(capacity) for capacity in (0, 1, 3, 16, 17)]
    [1, 1, 4, 16, 32]
    """
    return 1 << max(capacity - 1, 0).bit_length()


class Values(Generic[K, V]):
    """The methods that all maps here share. A subclass's `__iter__` defines the order of keys."""

    _values: dict[K, V]

    def __getitem__(self, key: K) -> V:
        return self._values[key]

    def get(self, key: K) -> V | None:
        return self._values.get(key)

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[K]:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self._values)

    def items(self) -> list[tuple[K, V]]:
        return [(key, self._values[key]) for key in self]


class HashMap(Values[K, V]):
    """The order and the values of a Java `HashMap`. `slots` is its initial number of slots."""

    def __init__(self, hash_of: Callable[[K], int], slots: int = DEFAULT_SLOTS) -> None:
        self._hash_of = hash_of
        self._order = HashTable[K](slots)
        self._values: dict[K, V] = {}

    def put(self, key: K, value: V) -> None:
        self._order.put(key, self._hash_of(key), key)
        self._values[key] = value

    def compute_if_absent(self, key: K, make: Callable[[], V]) -> V:
        """Returns the value of a key; a new key gets the value that `make` returns."""
        self._order.compute_if_absent(key, self._hash_of(key), key)
        if key not in self._values:
            self._values[key] = make()
        return self._values[key]

    def remove(self, key: K) -> None:
        if key in self._values:
            self._order.remove(key)
            del self._values[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._order)


class HashSet(HashMap[K, Any]):
    """A `HashSet`; as in Java, it consists of the keys of a `HashMap`."""

    @classmethod
    def copied(cls, hash_of: Callable[[K], int], keys: Iterable[K], size: int | None = None) -> Any:
        """Returns `new HashSet(collection)`; `size` is the size that the collection reports."""
        listed = list(keys)
        new = cls(hash_of, copied_slots(len(listed) if size is None else size))
        for key in listed:
            new.add(key)
        return new

    def add(self, key: K) -> None:
        self.put(key, None)
