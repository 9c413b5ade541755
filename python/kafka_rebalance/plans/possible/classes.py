# SPDX-License-Identifier: Apache-2.0
"""Reduces a group to classes of topics and members, for the best balance and the least moves.

Topics with equal subscribers are one topic class, members with equal subscriptions are one
subscription class. The balance depends only on the sizes of classes. Moves also depend on how many
partitions of each topic class a member holds. Mirror: `src/plans/possible/classes.rs`.
"""

from dataclasses import dataclass

from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.java.order import by_name


@dataclass(slots=True)
class Classes:
    """The classes of a group. Members and classes are numbers; members are in join order.

    `supply`         topic class -> its number of partitions
    `subscribers`    topic class -> its subscription classes, ascending
    `owner`          partition that exists -> the only member that claims it in the newest
                     generation, if this member subscribes to the topic
    """

    topics: list[list[str]]
    supply: list[int]
    members: list[list[int]]
    subscribers: list[list[int]]
    class_of_topic: dict[str, int]
    class_of_member: list[int]
    owner: dict[TopicPartition, int]


def classify(group: GroupSpec) -> Classes:
    """Returns the classes: those of topics by their first topic, those of members in join order."""
    counts = group.partition_counts()
    existing = [{t for t in member.topics if t in counts} for member in group.members]
    by_subscription: dict[frozenset[str], list[int]] = {}
    for m, subscription in enumerate(existing):
        by_subscription.setdefault(frozenset(subscription), []).append(m)
    subscriptions = list(by_subscription)
    class_of_member = [0] * len(group.members)
    for k, sharers in enumerate(by_subscription.values()):
        for m in sharers:
            class_of_member[m] = k
    by_subscribers: dict[tuple[int, ...], list[str]] = {}
    for topic in by_name(counts):
        subscribers = tuple(k for k, names in enumerate(subscriptions) if topic in names)
        if subscribers:
            by_subscribers.setdefault(subscribers, []).append(topic)
    topics = list(by_subscribers.values())
    return Classes(
        topics=topics,
        supply=[sum(counts[t] for t in names) for names in topics],
        members=list(by_subscription.values()),
        subscribers=[list(subscribers) for subscribers in by_subscribers],
        class_of_topic={t: c for c, names in enumerate(topics) for t in names},
        class_of_member=class_of_member,
        owner=_owners(group, counts, existing),
    )


def _owners(
    group: GroupSpec, counts: dict[str, int], topics_of: list[set[str]]
) -> dict[TopicPartition, int]:
    """Returns each partition's owner (KIP-341): the claim of the newest generation counts; if two
    members claim the partition in that generation, it has no owner.
    """
    newest: dict[TopicPartition, int] = {}
    owner: dict[TopicPartition, int | None] = {}
    for m, member in enumerate(group.members):
        generation = -1 if member.generation_id is None else member.generation_id
        for tp in dict.fromkeys(member.owned_partitions):
            if tp in owner and newest[tp] > generation:
                continue
            contested = tp in owner and newest[tp] == generation
            owner[tp], newest[tp] = None if contested else m, generation
    return {
        tp: m
        for tp, m in owner.items()
        if m is not None and tp.topic in topics_of[m] and tp.partition < counts[tp.topic]
    }
