# SPDX-License-Identifier: Apache-2.0
"""A member of a consumer group, as the broker keeps it; an update makes a new member.

Dicts have the iteration order of Kafka's hash tables, and compare without order.

Source   ConsumerGroupMember.java, ModernGroupMember.java, SubscriptionCount.java, ModernGroup.java,
         ConsumerGroup.java (Kafka 4.4.0); docs/behaviour/consumer-groups.md#4-reconciliation.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.wire.broker_records import ClassicMetadata

from ..broker_assigned.group import AssignedMember, Names, ReconciliationState

PartitionEpochs = Mapping[Uuid, Mapping[int, int]]
"""Partitions by topic id, each with the assignment epoch in which the member got it."""

NO_PARTITIONS: PartitionEpochs = {}
"""The partitions of a new member. One step compares by identity with it, as Kafka does."""


@dataclass(frozen=True, slots=True)
class ConsumerGroupMember(AssignedMember):
    """A member; `classic` is None if it uses the consumer protocol."""

    subscribed_topic_names: Names = field(default_factory=dict)
    subscribed_topic_regex: str | None = ""
    server_assignor: str | None = None
    assigned: PartitionEpochs = field(default_factory=lambda: NO_PARTITIONS)
    pending_revocation: PartitionEpochs = field(default_factory=lambda: NO_PARTITIONS)
    classic: ClassicMetadata | None = None

    @property
    def pattern(self) -> str | None:
        """Returns the pattern; None without one."""
        return self.subscribed_topic_regex or None

    @property
    def is_revoking(self) -> bool:
        return self.state is ReconciliationState.UNREVOKED_PARTITIONS

    def assignment_epoch(self, topic_id: Uuid, partition: int) -> int | None:
        """Returns the epoch of a partition that is assigned or pending revocation."""
        for partitions in (self.assigned, self.pending_revocation):
            if partition in partitions.get(topic_id, ()):
                return partitions[topic_id][partition]
        return None


# Counts -------------------------------------------------------------------------------------------


class SubscriptionCount(NamedTuple):
    """How many members name a topic, and how many patterns were resolved to it."""

    by_name: int = 0
    by_pattern: int = 0


Counts = dict[str, SubscriptionCount]


def is_homogeneous(patterns: Iterable[int], counts: Counts, members: int) -> bool:
    """Returns whether all members have one subscription: equal names, or one pattern and no names.

    `patterns` has the number of members of each pattern.
    """
    users = next(iter(patterns), None)
    if users is None:
        return all(count.by_name == members for count in counts.values())
    return users == members and all(
        count.by_pattern == 1 and count.by_name <= 0 for count in counts.values()
    )


def count_pattern(counts: Counts, topics: Iterable[str], step: int) -> None:
    for topic in topics:
        before = counts.get(topic, SubscriptionCount())
        _set_count(counts, topic, before._replace(by_pattern=before.by_pattern + step))


def count_names(
    counts: Counts, old: ConsumerGroupMember | None, new: ConsumerGroupMember | None
) -> None:
    for member, step in ((old, -1), (new, 1)):
        for topic in () if member is None else member.subscribed_topic_names:
            before = counts.get(topic, SubscriptionCount())
            _set_count(counts, topic, before._replace(by_name=before.by_name + step))


def _set_count(counts: Counts, topic: str, count: SubscriptionCount) -> None:
    if count.by_name <= 0 and count.by_pattern <= 0:
        counts.pop(topic, None)
    else:
        counts[topic] = count


def most_named(counts: Iterable[tuple[str, int]]) -> str | None:
    return max(counts, key=lambda one: one[1], default=(None, 0))[0]
