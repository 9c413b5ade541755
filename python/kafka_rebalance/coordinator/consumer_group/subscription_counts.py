# SPDX-License-Identifier: Apache-2.0
"""Counts a group's members by topic, by pattern and by assignor.

    topics        how many members name a topic, and how many resolved patterns contain it
    homogeneous   all members have one subscription, so an assignor can use its faster algorithm

Source   SubscriptionCount.java, ModernGroup.java, ConsumerGroup.java (Kafka 4.4.0).
"""

from collections.abc import Iterable
from typing import NamedTuple

from .member import ConsumerGroupMember


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
