# SPDX-License-Identifier: Apache-2.0
"""Reduces a group to classes of topics and members, for `balanced` and the best possible result.

Topics with equal subscribers are one topic class, members with equal subscriptions are one
subscription class. The balance depends only on the sizes of classes. Moves also depend on how many
partitions of each topic class a member holds. Mirror: `src/assignors/balance/classes.rs`.
"""

from dataclasses import dataclass

from kafka_rebalance.group.model import Member, TopicPartition
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.java.order import by_name, name_key


@dataclass(slots=True)
class Classes:
    """The classes of a group. Classes are numbers, and a member's number is its index in the group.

    `order`          all members: static ones by instance id, then dynamic ones, each by member id
    `supply`         topic class -> its number of partitions
    `subscribers`    topic class -> its subscription classes, ascending
    `owner`          partition that exists -> the only member that claims it in the newest
                     generation, if this member subscribes to the topic
    """

    order: list[int]
    topics: list[list[str]]
    supply: list[int]
    members: list[list[int]]
    subscribers: list[list[int]]
    class_of_topic: dict[str, int]
    class_of_member: list[int]
    owner: dict[TopicPartition, int]


def classify(group: GroupSpec) -> Classes:
    """Returns the classes. Topic classes are in the order of their first topics, subscription
    classes in that of their first members. So the order of a group's lists changes no answer.
    """
    counts = group.partition_counts()
    existing = [{t for t in member.topics if counts.get(t)} for member in group.members]
    by_subscription: dict[frozenset[str], list[int]] = {}
    order = sorted(range(len(group.members)), key=lambda m: _place(group.members[m]))
    for m in order:
        by_subscription.setdefault(frozenset(existing[m]), []).append(m)
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
        order=order,
        topics=topics,
        supply=[sum(counts[t] for t in names) for names in topics],
        members=list(by_subscription.values()),
        subscribers=[list(subscribers) for subscribers in by_subscribers],
        class_of_topic={t: c for c, names in enumerate(topics) for t in names},
        class_of_member=class_of_member,
        owner=_owners(group, counts, existing),
    )


def _place(member: Member) -> tuple[bool, bytes, bytes]:
    instance = member.group_instance_id
    return instance is None, name_key(instance or ""), name_key(member.member_id)


def _owners(
    group: GroupSpec, counts: dict[str, int], topics_of: list[set[str]]
) -> dict[TopicPartition, int]:
    """Returns each partition's owner (KIP-341): the newest claim counts, unless two are newest."""
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
