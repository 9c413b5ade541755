# SPDX-License-Identifier: Apache-2.0
"""What a group coordinator knows about the share state of a group's partitions.

A partition can be assigned only after the share coordinator has initialised its share state, which
has the offsets of the records that are in flight or acknowledged.

    initializing   the share coordinator was asked, but has not answered
    initialized    these partitions can be assigned
    deleting       topics whose share state is being deleted with the group

Dicts and sets have the order of Kafka's hash tables.

Source   ShareGroup.ShareGroupStatePartitionMetadataInfo, InitMapValue,
         GroupMetadataManager.combineInitMaps (Kafka 4.4.0).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kafka_rebalance.java.hash_map import HashMap, HashSet, Uuid, integer_hash, uuid_hash


class NamedPartitions(NamedTuple):
    """The name of a topic, and some of its partitions."""

    name: str
    partitions: tuple[int, ...]


StateTopics = Mapping[Uuid, NamedPartitions]


@dataclass(frozen=True, slots=True)
class ShareState:
    """The share state; `since_ms` is the time of the record from which this was read."""

    initializing: StateTopics
    initialized: StateTopics
    deleting: tuple[Uuid, ...]
    since_ms: int


def combined(first: StateTopics, second: StateTopics) -> StateTopics:
    """Returns the partitions of both."""
    every = HashSet.copied(uuid_hash, first)
    for topic in second:
        every.add(topic)
    table = HashMap[Uuid, NamedPartitions](uuid_hash)
    for topic in every:
        name, numbers = "", HashSet[int](integer_hash)
        if topic in first:
            name = first[topic].name
            numbers = HashSet.copied(integer_hash, first[topic].partitions)
        if topic in second:
            name = second[topic].name
            for number in second[topic].partitions:
                numbers.add(number)
        table.put(topic, NamedPartitions(name, tuple(numbers)))
    return dict(table.items())


def without_partitions(topics: StateTopics, gone: Mapping[Uuid, Iterable[int]]) -> StateTopics:
    """Returns the topics without these partitions, and without topics that have none left."""
    table = HashMap[Uuid, NamedPartitions](uuid_hash)
    for topic, (name, numbers) in topics.items():
        lost = set(gone.get(topic, ()))
        left = tuple(number for number in numbers if number not in lost)
        if left:
            table.put(topic, NamedPartitions(name, left))
    return dict(table.items())
