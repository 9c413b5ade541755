# SPDX-License-Identifier: Apache-2.0
"""A share group as the broker stores it: epochs, members, targets, share state.

A partition can be assigned only after the share coordinator has initialised its share state: the
offsets of the records that are in flight or acknowledged.

    initializing   partitions whose share state was requested; the answer is not here yet
    initialized    partitions that can be assigned
    deleting       topics whose share state is being deleted with the group

Dicts and sets are in the order of Kafka's hash maps and sets; comparisons ignore the order.

Source   ShareGroup.java, ModernGroup.java, ShareGroupMember.java, InitMapValue,
         GroupMetadataManager.combineInitMaps (Kafka 4.4.0); docs/behaviour/share-groups.md.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field
from itertools import starmap
from typing import Any, ClassVar, NamedTuple

from kafka_rebalance.frozen import Frozen
from kafka_rebalance.java.hash_map import HashMap, HashSet, Uuid, integer_hash, uuid_hash
from kafka_rebalance.java.timeline_hash_map import TimelineHashMap
from kafka_rebalance.wire.broker_groups import DescribedPartitions
from kafka_rebalance.wire.broker_records import BrokerRecord, DeletingTopic
from kafka_rebalance.wire.messages import GroupState

from ..broker_assigned.group import AssignedMember, Names
from ..broker_assigned.records import RecordedGroup
from ..broker_assigned.table_order import by_topic_id, copied_counts, recount, step_count
from ..broker_assigned.target import Target


class NamedPartitions(NamedTuple):
    name: str
    partitions: tuple[int, ...]


StateTopics = Mapping[Uuid, NamedPartitions]


class ShareState(Frozen):
    """Partitions by the status of their share state; `since_ms` is the time of their record."""

    initializing: StateTopics
    initialized: StateTopics
    deleting: tuple[Uuid, ...]
    since_ms: int


def combined(first: StateTopics, second: StateTopics) -> StateTopics:
    """Returns the union: all partitions that `first` or `second` contains."""
    every = HashSet.copied(uuid_hash, first)
    for topic in second:
        every.add(topic)
    found: dict[Uuid, NamedPartitions] = {}
    for topic in every:
        name, numbers = "", HashSet[int](integer_hash)
        if topic in first:
            name = first[topic].name
            numbers = HashSet.copied(integer_hash, first[topic].partitions)
        if topic in second:
            name = second[topic].name
            for number in second[topic].partitions:
                numbers.add(number)
        found[topic] = NamedPartitions(name, tuple(numbers))
    return by_topic_id(found)


def without_partitions(topics: StateTopics, gone: Mapping[Uuid, Iterable[int]]) -> StateTopics:
    """Returns the topics without these partitions, and without topics that have none left."""
    found: dict[Uuid, NamedPartitions] = {}
    for topic, (name, numbers) in topics.items():
        lost = set(gone.get(topic, ()))
        left = tuple(number for number in numbers if number not in lost)
        if left:
            found[topic] = NamedPartitions(name, left)
    return by_topic_id(found)


Partitions = Mapping[Uuid, Mapping[int, None]]
"""Partitions by topic id."""


class ShareGroupMember(AssignedMember):
    """A member of a share group; its partitions can be assigned to other members, too."""

    subscribed_topic_names: Names = field(default_factory=dict)
    assigned: Partitions = field(default_factory=dict)


class ShareGroup(RecordedGroup[ShareGroupMember, Target]):
    """A share group; a method either only reads it, or applies one record."""

    group_type: ClassVar[str] = "share"
    before: ClassVar[tuple[str, ...]] = ("STATE_PARTITION_METADATA",)
    has_offsets: ClassVar[bool] = False

    counts: TimelineHashMap[str, int] = field(default_factory=TimelineHashMap)
    share_state: ShareState | None = None

    @property
    def tables(self) -> tuple[TimelineHashMap[str, Any], ...]:
        return (self.members, self.counts)

    @property
    def state(self) -> GroupState:
        return GroupState.EMPTY if self.is_empty else GroupState.STABLE

    @property
    def is_homogeneous(self) -> bool:
        return is_homogeneous((count for _, count in self.counts.items()), len(self.members))

    def is_subscribed(self, topic: str) -> bool:
        return topic in self.counts

    def counts_with(self, old: ShareGroupMember, new: ShareGroupMember | None) -> HashMap[str, int]:
        """Returns the counts of topics as if `new` had replaced `old`; None: `old` leaves."""
        counts = copied_counts(self.counts)
        for name in old.subscribed_topic_names:
            recount(counts, name, None)
        for name in () if new is None else new.subscribed_topic_names:
            recount(counts, None, name)
        return counts

    def misses_initialized_partitions(self) -> bool:
        """Returns whether a subscribed topic's initialised partitions differ from the targets."""
        if self.share_state is None or self.is_empty:
            return False
        for topic, (name, partitions) in self.share_state.initialized.items():
            if name not in self.counts:
                continue
            targeted = [one[topic] for one in self.targets.values() if topic in one]
            if not targeted or set().union(*targeted) != set(partitions):
                return True
        return False

    def member(self, member_id: str) -> ShareGroupMember:
        """Returns the member with this id; if there is none, adds a new member first."""
        known = self.members.get(member_id)
        if known is None:
            known = ShareGroupMember(member_id)
            self.update(known)
        return known

    def _replaced(self, old: ShareGroupMember | None, new: ShareGroupMember | None) -> None:
        for member, step in ((old, -1), (new, 1)):
            for name in () if member is None else member.subscribed_topic_names:
                step_count(self.counts, name, step)

    def share_state_record(
        self, initializing: StateTopics, initialized: StateTopics, deleting: Mapping[Uuid, str]
    ) -> BrokerRecord:
        (role,) = self.before
        topics = _state_topics(initializing), _state_topics(initialized)
        return self.record(role, None, *topics, tuple(starmap(DeletingTopic, deleting.items())))


def is_homogeneous(counts: Iterable[int], members: int) -> bool:
    """Returns whether all members name the same topics."""
    return all(count == members for count in counts)


def _state_topics(topics: StateTopics) -> tuple[DescribedPartitions, ...]:
    return tuple(DescribedPartitions(topic, *named) for topic, named in topics.items())
