# SPDX-License-Identifier: Apache-2.0
"""The orders of names and of Java's hash maps, on which Kafka's answers depend.

Kafka's assignors iterate over `java.util.HashMap`s, so they often take members and topics in the
order of such a map (`java/hash_table.py`).

Source   java.lang.String, java.util.HashMap; TopicPartition.hashCode.
"""

from collections.abc import Collection, Iterable, Sequence

from .hash_table import DEFAULT_SLOTS, HashTable


def name_key(name: str) -> bytes:
    """Returns a sort key for the order of `String.compareTo`: by UTF-16 unit, then length.

    Unlike in Python's own order, characters beyond U+FFFF sort before U+E000..U+FFFF.

    >>> sorted(["\\ue000", "\\U00010000"], key=name_key) == ["\\U00010000", "\\ue000"]
    True
    """
    return name.encode("utf-16-be")


def by_name(names: Iterable[str]) -> list[str]:
    """Returns names in the order of `String.compareTo`."""
    return sorted(names, key=name_key)


def string_hash(name: str) -> int:
    """Returns `String.hashCode` as an unsigned 32-bit number.

    >>> string_hash("AaAa") == string_hash("BBBB") == 2031744
    True
    """
    units = name.encode("utf-16-be")
    h = 0
    for i in range(0, len(units), 2):
        h = (31 * h + (units[i] << 8 | units[i + 1])) & 0xFFFFFFFF
    return h


def partition_hash(topic: str, partition: int) -> int:
    """Returns `TopicPartition.hashCode` as an unsigned 32-bit number."""
    return (31 * (31 + partition) + string_hash(topic)) & 0xFFFFFFFF


def java_hash_order(names: Iterable[str], slots: int = DEFAULT_SLOTS) -> list[str]:
    """Returns names in the order of a default `HashMap` or `HashSet` with these keys.

    A repeated name keeps its place.

    >>> java_hash_order(["b", "a", "q"])  # "q" and "a" share slot 1 of 16, in order of insertion
    ['a', 'q', 'b']
    """
    table = HashTable[str](slots)
    for name in dict.fromkeys(names):
        table.put(name, string_hash(name), name_key(name))
    return table.keys()


def copied_slots(size: int) -> int:
    """Returns how many slots `new HashSet(collection)` has for `size` keys: at least 16.

    >>> [copied_slots(size) for size in (0, 11, 12, 24)]
    [16, 16, 32, 64]
    """
    capacity = max(int(size / 0.75) + 1, 16)
    return 1 << (capacity - 1).bit_length()


def java_set_order(names: Collection[str]) -> list[str]:
    """Returns names in the order of `new HashSet(collection)`."""
    return java_hash_order(names, copied_slots(len(names)))


def java_grouping_order(names: Sequence[str]) -> list[str]:
    """Returns names in the order of a default `HashMap`, each added by `computeIfAbsent`.

    A repeated name can change the order: a full table is doubled before the name is looked up, even
    if the name is present.

    >>> java_grouping_order(["b", "a", "q", "a"])  # in slot 1, a new name goes to the front
    ['q', 'a', 'b']
    """
    table = HashTable[str]()
    for name in names:
        table.compute_if_absent(name, string_hash(name), name_key(name))
    return table.keys()
