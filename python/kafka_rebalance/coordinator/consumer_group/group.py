# SPDX-License-Identifier: Apache-2.0
"""A consumer group as the broker stores it: epochs, members, targets, counts of subscriptions.

    owner_epochs   partition -> epoch of the member that owns it, or still has to revoke it
    counts         topic -> number of members that name it, number of resolved patterns for it

Source   ConsumerGroup.java, ModernGroup.java (Kafka 4.4.0);
         docs/behaviour/consumer-groups.md#1-epochs.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any, ClassVar, NamedTuple

from kafka_rebalance.java.hash_map import HashMap, Uuid
from kafka_rebalance.java.order import by_name
from kafka_rebalance.java.timeline_hash_map import TimelineHashMap
from kafka_rebalance.wire import broker_records as wire
from kafka_rebalance.wire.broker_records import BrokerRecord as Record
from kafka_rebalance.wire.broker_records import ClassicMetadata

from ..broker_assigned.group import AssignedMember, Names, OwnedTwice, ReconciliationState
from ..broker_assigned.records import RecordedGroup
from ..broker_assigned.table_order import copied_counts, recount, step_count
from ..broker_assigned.target import NO_TARGET, Target

OLD_METADATA, _PATTERN = "PARTITION_METADATA", "REGULAR_EXPRESSION"
"""The roles of records that only consumer groups have."""

PartitionEpochs = Mapping[Uuid, Mapping[int, int]]
"""Partitions by topic id, each with the assignment epoch in which the member got it."""

NO_PARTITIONS: PartitionEpochs = {}
"""The partitions of a new member."""


class ConsumerGroupMember(AssignedMember):
    """A member of a consumer group. `classic` is None for a member with the consumer protocol."""

    subscribed_topic_names: Names = field(default_factory=dict)
    subscribed_topic_regex: str | None = ""
    server_assignor: str | None = None
    assigned: PartitionEpochs = field(default_factory=lambda: NO_PARTITIONS)
    pending_revocation: PartitionEpochs = field(default_factory=lambda: NO_PARTITIONS)
    classic: ClassicMetadata | None = None

    @property
    def pattern(self) -> str | None:
        """Returns the subscribed pattern; None if there is none."""
        return self.subscribed_topic_regex or None

    @property
    def is_revoking(self) -> bool:
        return self.state is ReconciliationState.UNREVOKED_PARTITIONS

    def assignment_epoch(self, topic_id: Uuid, partition: int) -> int | None:
        """Returns the epoch of a partition that is assigned or pending revocation; else None."""
        for partitions in (self.assigned, self.pending_revocation):
            if partition in partitions.get(topic_id, ()):
                return partitions[topic_id][partition]
        return None


# Counts -------------------------------------------------------------------------------------------


class SubscriptionCount(NamedTuple):
    """The number of members that name a topic, and of the resolved patterns that match it."""

    by_name: int = 0
    by_pattern: int = 0


Counts = dict[str, SubscriptionCount]


def is_homogeneous(patterns: Iterable[int], counts: Counts, members: int) -> bool:
    """Returns whether all subscriptions are equal; `patterns` is each pattern's member count."""
    users = next(iter(patterns), None)
    if users is None:
        return all(count.by_name == members for count in counts.values())
    return users == members and all(
        count.by_pattern == 1 and count.by_name <= 0 for count in counts.values()
    )


def count_pattern(counts: Counts, topics: Iterable[str], step: int) -> None:
    for topic in topics:
        _count(counts, topic, by_pattern=step)


def count_names(
    counts: Counts, old: ConsumerGroupMember | None, new: ConsumerGroupMember | None
) -> None:
    for member, step in ((old, -1), (new, 1)):
        for topic in () if member is None else member.subscribed_topic_names:
            _count(counts, topic, by_name=step)


def _count(counts: Counts, topic: str, *, by_name: int = 0, by_pattern: int = 0) -> None:
    names, patterns = counts.get(topic, SubscriptionCount())
    counts[topic] = SubscriptionCount(names + by_name, patterns + by_pattern)
    if max(counts[topic]) <= 0:
        del counts[topic]


def most_named(counts: Iterable[tuple[str, int]]) -> str | None:
    return max(counts, key=lambda one: one[1], default=(None, 0))[0]


class ResolvedPattern(NamedTuple):
    """The topics that match a pattern, when they were found, and the version of the metadata."""

    topics: Names
    version: int
    timestamp_ms: int


class ConsumerGroup(RecordedGroup[ConsumerGroupMember, Target]):
    """A consumer group; a method either only reads it, or applies one record."""

    group_type: ClassVar[str] = "consumer"
    before: ClassVar[tuple[str, ...]] = (OLD_METADATA,)
    nested: ClassVar[tuple[str, ...]] = ("owner_epochs",)

    assignors: TimelineHashMap[str, int] = field(default_factory=TimelineHashMap)
    patterns: TimelineHashMap[str, int] = field(default_factory=TimelineHashMap)
    resolved: TimelineHashMap[str, ResolvedPattern] = field(default_factory=TimelineHashMap)
    counts: Counts = field(default_factory=dict)
    owner_epochs: dict[Uuid, dict[int, int]] = field(default_factory=dict)
    is_homogeneous: bool = True
    classic_protocols: Counter[str] = field(default_factory=Counter)
    num_classic_members: int = 0
    has_old_metadata: bool = False

    @property
    def tables(self) -> tuple[TimelineHashMap[str, Any], ...]:
        return (self.members, self.assignors, self.patterns, self.resolved)

    def is_subscribed(self, topic: str) -> bool:
        return topic in self.counts

    def is_owned(self, topic: Uuid, partition: int) -> bool:
        return partition in self.owner_epochs.get(topic, ())

    def waits_for_release(self, member: ConsumerGroupMember) -> bool:
        """Returns whether a partition of the member's target still belongs to another member."""
        return any(
            partition not in member.assigned.get(topic, ()) and self.is_owned(topic, partition)
            for topic, partitions in self.targets.get(member.member_id, NO_TARGET).items()
            for partition in partitions
        )

    def supports(self, names: Iterable[str]) -> bool:
        """Returns whether one of these protocols is listed by all classic members."""
        return any(self.classic_protocols[name] == self.num_classic_members for name in names)

    def counts_with(self, old: ConsumerGroupMember, new: ConsumerGroupMember) -> Counts:
        """Returns the subscription counts of topics as if `new` had replaced `old`."""
        counts = dict(self.counts)
        count_names(counts, old, new)
        pattern = old.pattern
        if pattern is not None and new.pattern != pattern and self.patterns.get(pattern) == 1:
            self.uncount_pattern(counts, pattern)
        return counts

    def uncount_pattern(self, counts: Counts, pattern: str) -> None:
        resolved = self.resolved.get(pattern)
        count_pattern(counts, () if resolved is None else resolved.topics, -1)

    def patterns_with(
        self, old: ConsumerGroupMember, new: ConsumerGroupMember
    ) -> HashMap[str, int]:
        """Returns the number of members of each pattern as if `new` had replaced `old`."""
        counts = copied_counts(self.patterns)
        recount(counts, old.pattern, new.pattern)
        return counts

    def preferred_assignor(self) -> str | None:
        """Returns the assignor that most members name; tie-break: the order of `assignors`."""
        return most_named(self.assignors.items())

    def preferred_assignor_with(
        self, old: ConsumerGroupMember, new: ConsumerGroupMember
    ) -> str | None:
        """Returns the assignor that most members name, as if `new` had replaced `old`.

        Quirk: the tie-break is the order of a different hash map than in `preferred_assignor`.
        """
        counts = copied_counts(self.assignors)
        recount(counts, old.server_assignor, new.server_assignor)
        return most_named(counts.items())

    def _replaced(self, old: ConsumerGroupMember | None, new: ConsumerGroupMember | None) -> None:
        self._recount(old, new)
        if old is not None:
            self._disown(old)
        if new is not None:
            for partitions in (new.assigned, new.pending_revocation):
                self._own(partitions, new.member_epoch)

    def resolve(self, pattern: str, resolved: ResolvedPattern | None) -> None:
        """Sets the topics of a pattern; None removes them."""
        before = self.resolved.remove(pattern)
        if before is not None:
            count_pattern(self.counts, before.topics, -1)
        if resolved is not None:
            self.resolved.put(pattern, resolved)
            count_pattern(self.counts, resolved.topics, 1)

    def _recount(self, old: ConsumerGroupMember | None, new: ConsumerGroupMember | None) -> None:
        count_names(self.counts, old, new)
        for member, step in ((old, -1), (new, 1)):
            if member is None:
                continue
            step_count(self.assignors, member.server_assignor, step)
            step_count(self.patterns, member.pattern, step)
            if member.classic is not None:
                self.num_classic_members += step
                for name, _ in member.classic.protocols:
                    self.classic_protocols[name] += step
        users = [number for _, number in self.patterns.items()]
        self.is_homogeneous = is_homogeneous(users, self.counts, len(self.members))

    def _own(self, partitions: PartitionEpochs, epoch: int) -> None:
        for topic, numbers in partitions.items():
            epochs = self.owner_epochs.setdefault(topic, {})
            for partition in numbers:
                if partition in epochs and epochs[partition] >= epoch:
                    raise OwnedTwice(f"{self.group_id}: partition {partition} has two owners")
                epochs[partition] = epoch

    def _disown(self, member: ConsumerGroupMember) -> None:
        for partitions in (member.assigned, member.pending_revocation):
            for topic, numbers in partitions.items():
                epochs = self.owner_epochs.get(topic, {})
                for partition in numbers:
                    if epochs.get(partition) == member.member_epoch:
                        del epochs[partition]
                if not epochs:
                    self.owner_epochs.pop(topic, None)

    # Records --------------------------------------------------------------------------------------

    def held(self, member: ConsumerGroupMember) -> Iterable[tuple[wire.CurrentTopic, ...]]:
        for partitions in (member.assigned, member.pending_revocation):
            yield tuple(
                wire.CurrentTopic(topic, tuple(epochs), tuple(epochs.values()))
                for topic, epochs in partitions.items()
            )

    def pattern_record(self, pattern: str, resolved: ResolvedPattern | None) -> Record:
        """Returns the record of a pattern; a tombstone if `resolved` is None."""
        if resolved is None:
            return self.tombstone(_PATTERN, pattern)
        fields = (tuple(by_name(resolved.topics)), resolved.version, resolved.timestamp_ms)
        return self.record(_PATTERN, pattern, *fields)

    def old_metadata_tombstone(self) -> Record:
        return self.tombstone(OLD_METADATA)

    def other_tombstones(self) -> list[Record]:
        return [self.pattern_record(pattern, None) for pattern in self.resolved]

    def all_records(self) -> list[Record]:
        """Returns the records of the whole group, which was a classic group before."""
        members, targets = self.members.values(), self.targets
        return [
            *map(self.member_record, members),
            self.epoch_record(self.epoch, self.metadata_hash),
            *(self.target_record(one.member_id, targets[one.member_id]) for one in members),
            self.target_epoch_record(self.assignment_epoch, self.assignment_timestamp_ms),
            *map(self.current_record, members),
        ]
