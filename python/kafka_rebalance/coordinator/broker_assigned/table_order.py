# SPDX-License-Identifier: Apache-2.0
"""The orders in which Kafka's hash maps and sets ("tables") list partitions, names and topic ids.

The records of a member list its partitions in such an order.

>>> in_table([1, 33, 16], slots=16)
[16, 1, 33]
"""

from collections.abc import Collection, Mapping
from typing import TypeVar

from kafka_rebalance.java.hash_map import HashMap, HashSet, Uuid, integer_hash, slots_for, uuid_hash
from kafka_rebalance.java.hash_table import DEFAULT_SLOTS
from kafka_rebalance.java.order import copied_slots, string_hash
from kafka_rebalance.java.timeline_hash_map import TimelineHashMap

_LOAD = 0.75
_Value = TypeVar("_Value")


def in_table(numbers: Collection[int], slots: int) -> list[int]:
    """Returns numbers in the order of a Java hash map or set created with `slots` slots."""
    full = slots
    while len(numbers) > _LOAD * full:
        full *= 2
    if not numbers or 0 <= min(numbers) <= max(numbers) < full:
        return sorted(numbers)  # each number has a slot of its own
    table = HashMap[int, None](integer_hash, slots)
    for number in numbers:
        table.put(number, None)
    return list(table)


def in_new_map(numbers: Collection[int]) -> list[int]:
    """Returns numbers in the order of a default `HashMap`."""
    return in_table(numbers, DEFAULT_SLOTS)


def in_copied_set(numbers: Collection[int]) -> list[int]:
    """Returns numbers in the order of `new HashSet(collection)`; `numbers` may contain repeats."""
    return in_table(dict.fromkeys(numbers), copied_slots(len(numbers)))


def copied_map_slots(size: int) -> int:
    """Returns the number of slots of `new HashMap(map)` in Java 17; it can be less than 16."""
    return slots_for(int(size / _LOAD + 1)) if size else DEFAULT_SLOTS


def name_set(names: Collection[str]) -> dict[str, None]:
    """Returns names in the order of `new HashSet(list)`; the list may repeat names."""
    return dict.fromkeys(HashSet.copied(string_hash, names))


def topic_table(topics: Mapping[Uuid, _Value], slots: int = DEFAULT_SLOTS) -> HashMap[Uuid, _Value]:
    """Returns a `HashMap` of topic ids that is filled in the order of `topics`."""
    table = HashMap[Uuid, _Value](uuid_hash, slots)
    for topic, value in topics.items():
        table.put(topic, value)
    return table


def by_topic_id(topics: Mapping[Uuid, _Value], slots: int = DEFAULT_SLOTS) -> dict[Uuid, _Value]:
    """Returns topics in the order of their `topic_table`."""
    return dict(topic_table(topics, slots).items())


def copied_counts(counts: TimelineHashMap[str, int]) -> HashMap[str, int]:
    """Returns `new HashMap(counts)`."""
    copied = HashMap[str, int](string_hash, copied_map_slots(len(counts)))
    for name, number in counts.items():
        copied.put(name, number)
    return copied


def recount(counts: HashMap[str, int], old: str | None, new: str | None) -> None:
    """Subtracts 1 from the count of `old`, adds 1 to that of `new`, each with `HashMap.compute`."""
    if old is not None and old in counts:
        number = counts.compute_if_absent(old, int)
        if number == 1:
            counts.remove(old)
        else:
            counts.put(old, number - 1)
    if new is not None:
        counts.put(new, counts.compute_if_absent(new, int) + 1)


def step_count(counts: TimelineHashMap[str, int], name: str | None, step: int) -> None:
    if name is None:
        return
    number = (counts.get(name) or 0) + step
    if number:
        counts.put(name, number)
    else:
        counts.remove(name)
