# SPDX-License-Identifier: Apache-2.0
"""Changes of topics and of subscriptions.

No rebalance follows if no member subscribes to the topics that grow or are deleted. None follows if
members subscribe again to the topics that they already have. But aiokafka's members do join again
in this case, and so do librdkafka's leaders under an eager assignor (any member may lead).

Source   ConsumerCoordinator.MetadataSnapshot, SubscriptionState.changeSubscription (Kafka 4.4.0);
         all clients: tests/live/test_topic_changes.py; broker: GroupMetadataManager.
"""

from dataclasses import replace
from typing import Self

from kafka_rebalance.assignors.interface import RebalanceProtocol
from kafka_rebalance.assignors.registry import SERVER_SIDE, protocol_of
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.model import Member, Topic, quoted
from kafka_rebalance.group.spec import GroupSpec, counted
from kafka_rebalance.plans.clients import AIOKAFKA, JAVA, LIBRDKAFKA, clients_for
from kafka_rebalance.plans.rounds import lists_eager

from .change import Change, Verb, check_fields, check_least, topic_count, topic_names
from .edits import Edited, GroupEvent, check_limit, error, find_member, find_topic, newly_listed
from .made_up import MadeUp


class AddPartitions(Change, Frozen):
    """A topic's number of partitions grows to `partitions`.

    If the racks of replicas are known, the racks of new replicas are guessed by Kafka's rule: it
    uses all known racks in turn. A new partition gets as many racks as the old partition with the
    most racks.
    """

    topic: str
    partitions: int

    VERBS = (Verb("partitions", "TOPIC=N", "the topic grows to N partitions in all"),)

    def __post_init__(self) -> None:
        check_fields(self)
        check_least(self.partitions, 1, "partitions")

    @classmethod
    def parse(cls, verb: str, value: str) -> Self:
        return cls(*topic_count(value))

    def __str__(self) -> str:
        return f"partitions {self.topic}={self.partitions}"

    def in_words(self) -> str:
        return f"growing {self.topic} to {counted(self.partitions, 'partition')}"

    def events(self, group: GroupSpec) -> list[GroupEvent]:
        topic = find_topic(group, self.topic)
        if self.partitions <= topic.partitions:
            raise error(
                f"{quoted(self.topic)} has {counted(topic.partitions, 'partition')} already; "
                "give the number that it shall have in all, Kafka never takes any away"
            )
        check_limit(group, self.partitions - topic.partitions)

        def edit(group: GroupSpec, ids: MadeUp) -> Edited:
            racks = None
            if topic.racks is not None:
                racks = topic.racks + _new_racks(group, topic, self.partitions, ids)
            unknown = (None,) * (self.partitions - topic.partitions)
            weights = topic.weights and topic.weights + unknown
            grown = replace(topic, partitions=self.partitions, racks=racks, weights=weights)
            topics = tuple(grown if t.name == self.topic else t for t in group.topics)
            return Edited(group.edited(topics=topics), rebalances=_are_read(group, {self.topic}))

        return [GroupEvent(str(self), edit)]


def _are_read(group: GroupSpec, topics: set[str]) -> bool:
    return any(not topics.isdisjoint(member.topics) for member in group.members)


def _new_racks(
    group: GroupSpec, topic: Topic, partitions: int, ids: MadeUp
) -> tuple[tuple[str | None, ...], ...]:
    """Returns the racks of new replicas: the known racks in turn, as StripedReplicaPlacer does."""
    in_racks = max((len(_known(racks)) for racks in topic.racks or ()), default=0)
    every = sorted(
        {rack for t in group.topics for racks in t.racks or () for rack in _known(racks)}
    )
    # A rack that only members have, but no replica, may have no brokers, so only some draws use it.
    of_members = {member.rack for member in group.members if member.rack is not None}
    if 0 < in_racks < len({*every, *of_members}):
        every = ids.placement(every, of_members)
    return tuple(
        tuple(every[(partition + k) % len(every)] for k in range(in_racks))
        for partition in range(topic.partitions, partitions)
    )


def _known(racks: tuple[str | None, ...]) -> set[str]:
    return {rack for rack in racks if rack is not None}


def _check_topics(change: "AddTopics | RemoveTopics | Resubscribe") -> None:
    """Checks a change's fields. Raises a GroupError if it has no topics: its text needs one."""
    check_fields(change)
    if not change.topics:
        raise error("say which topics: name one at least")


class AddTopics(Change, Frozen):
    """Topics are created, and every member subscribes to them, as if by a pattern."""

    topics: tuple[tuple[str, int], ...]

    VERBS = (Verb("add-topics", "TOPIC=N,…", "topics are created; all members subscribe to them"),)

    def __post_init__(self) -> None:
        _check_topics(self)
        for _, partitions in self.topics:
            check_least(partitions, 0, "partitions")

    @classmethod
    def parse(cls, verb: str, value: str) -> Self:
        return cls(tuple(map(topic_count, value.split(","))))

    def __str__(self) -> str:
        return "add-topics " + ",".join(f"{name}={count}" for name, count in self.topics)

    def in_words(self) -> str:
        return f"creating {counted(len(self.topics), 'topic')}"

    def events(self, group: GroupSpec) -> list[GroupEvent]:
        known = {topic.name for topic in group.topics}
        for name, _ in self.topics:
            if name in known:
                raise error(f"{quoted(name)} is there already")
            known.add(name)
        check_limit(group, sum(count for _, count in self.topics))

        def edit(group: GroupSpec, ids: MadeUp) -> Edited:
            # The brokers' assignors read topic ids. A later change of protocol may lead to such an
            # assignor, so new topics also get ids if other topics have them.
            has_ids = any(topic.topic_id is not None for topic in group.topics)
            has_ids |= group.assignor in SERVER_SIDE
            created = tuple(
                Topic(name, count, topic_id=ids.topic_id(name) if has_ids else None)
                for name, count in self.topics
            )
            names = tuple(name for name, _ in self.topics)
            members = tuple(
                replace(m, topics=m.topics + tuple(n for n in names if n not in m.topics))
                for m in group.members
            )
            after = group.edited(topics=group.topics + created, members=members)
            return Edited(newly_listed(after, ids))

        return [GroupEvent(str(self), edit)]


class RemoveTopics(Change, Frozen):
    """Topics are deleted, and no member subscribes to them any more."""

    topics: tuple[str, ...]

    VERBS = (Verb("remove-topics", "TOPIC,…", "topics are deleted"),)

    def __post_init__(self) -> None:
        _check_topics(self)

    @classmethod
    def parse(cls, verb: str, value: str) -> Self:
        return cls(topic_names(value))

    def __str__(self) -> str:
        return f"remove-topics={','.join(self.topics)}"

    def in_words(self) -> str:
        return f"deleting {counted(len(self.topics), 'topic')}"

    def events(self, group: GroupSpec) -> list[GroupEvent]:
        for name in self.topics:
            find_topic(group, name)
        gone = set(self.topics)

        def edit(group: GroupSpec, _: MadeUp) -> Edited:
            # A broker's target contains the ids of deleted topics until the next target is
            # computed, so these topics stay in the group.
            owned = {tp.topic for m in group.members for tp in m.owned_partitions}
            kept = owned if group.assignor in SERVER_SIDE else set()
            topics = tuple(
                Topic(one.name, 0, topic_id=one.topic_id) if one.name in gone else one
                for one in group.topics
                if one.name not in gone or one.name in kept
            )
            members = tuple(
                replace(m, topics=tuple(t for t in m.topics if t not in gone))
                for m in group.members
            )
            after = group.edited(topics=topics, members=members)
            return Edited(after, rebalances=_are_read(group, gone))

        return [GroupEvent(str(self), edit)]


class Resubscribe(Change, Frozen):
    """A member (or every member, if `member` is None) subscribes to these topics and no others."""

    topics: tuple[str, ...]
    member: str | None = None

    VERBS = (
        Verb(
            "resubscribe",
            "[MEMBER:]TOPIC,…",
            "MEMBER, or every member, subscribes to these topics and to no others",
        ),
    )

    def __post_init__(self) -> None:
        _check_topics(self)

    @classmethod
    def parse(cls, verb: str, value: str) -> Self:
        # A topic's name contains no colon, but a member's name may contain one.
        member, separator, topics = value.rpartition(":")
        return cls(topic_names(topics), member if separator else None)

    def __str__(self) -> str:
        who = "" if self.member is None else f"{self.member}:"
        return f"resubscribe={who}{','.join(self.topics)}"

    def in_words(self) -> str:
        return f"subscribing {self.member or 'every member'} to {', '.join(self.topics)}"

    def events(self, group: GroupSpec) -> list[GroupEvent]:
        for name in self.topics:
            find_topic(group, name)
        who = None if self.member is None else find_member(group, self.member).member_id

        def edit(group: GroupSpec, ids: MadeUp) -> Edited:
            members = tuple(
                replace(m, topics=self.topics) if who in (None, m.member_id) else m
                for m in group.members
            )
            differ = {
                new.member_id
                for old, new in zip(group.members, members, strict=True)
                if set(old.topics) != set(new.topics)
            }
            asked = (m for m in members if who in (None, m.member_id))
            rebalances = bool(differ) or any(_joins_anyway(group, member) for member in asked)
            after = newly_listed(group.edited(members=members), ids, differ)
            return Edited(after, rebalances=rebalances)

        return [GroupEvent(str(self), edit)]

    def renamed(self, ids: MadeUp) -> Self:
        return self if self.member is None else replace(self, member=ids.alias(self.member))


def _joins_anyway(group: GroupSpec, member: Member) -> bool:
    """Returns whether the member joins again even if its new subscription equals its old one."""
    name = group.assignor
    if name is None or name in SERVER_SIDE:
        return False
    clients = clients_for(member, group.group_id)
    is_eager = protocol_of(name) is RebalanceProtocol.EAGER or lists_eager(group, name)
    return (AIOKAFKA in clients and JAVA not in clients) or (clients == (LIBRDKAFKA,) and is_eager)
