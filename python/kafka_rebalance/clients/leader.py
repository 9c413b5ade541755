# SPDX-License-Identifier: Apache-2.0
"""Computes a leader's answer from the client library's data, in the form that the library sends."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from kafka_rebalance.assignors.assigning import assign
from kafka_rebalance.errors import KafkaRebalanceError
from kafka_rebalance.group.model import Member, Topic, TopicPartition
from kafka_rebalance.group.ownership import Anomaly
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.wire.consumer_protocol import by_topic

from .caller import ClientNames, log


def answer(
    client: ClientNames,
    group_id: str,
    cluster: Any,
    members: Sequence[Member],
    assignor: str,
    decide: "Decide | None" = None,
) -> dict[str, list[tuple[str, list[int]]]]:
    """Returns each member's partitions, as a list of topics with partition numbers.

    `decide`, if given, computes the answer in place of `legal`. A topic without metadata, as at the
    consumer's first join, is treated as missing. The client joins again when it has received the
    topic's metadata.
    """
    subscribed = dict.fromkeys(topic for member in members for topic in member.topics)
    counts = {
        topic: len(partitions)
        for topic in subscribed
        if (partitions := cluster.partitions_for_topic(topic))
    }
    # If no member has a rack, the racks of replicas have no effect, and reading them is slow.
    known = cluster.brokers() if any(member.rack for member in members) else ()
    brokers = {getattr(broker, client.node): broker.rack for broker in known}
    topics = tuple(
        Topic(topic, count, _racks(client, cluster, topic, count, brokers))
        for topic, count in counts.items()
    )
    assignment = (decide or legal)(group_id, topics, tuple(members), assignor)
    return {member_id: list(by_topic(owned).items()) for member_id, owned in assignment.items()}


def _racks(
    client: ClientNames, cluster: Any, topic: str, count: int, brokers: Mapping[Any, str | None]
) -> tuple[tuple[str | None, ...], ...] | None:
    """Returns the racks of each partition's replicas; None if `brokers` contains no rack."""
    if not any(brokers.values()):
        return None
    # Neither client has a public method for the replicas of all partitions.
    partitions = cluster._partitions[topic]
    return tuple(
        tuple(brokers.get(node) for node in getattr(partitions[p], client.replicas))
        if p in partitions
        else ()
        for p in range(count)
    )


LegalAnswer = Mapping[str, Sequence[TopicPartition]]
Decide = Callable[[str, tuple[Topic, ...], tuple[Member, ...], str], LegalAnswer]

_COOPERATIVE = "cooperative-sticky"
_NO_LIMIT = 2**31 - 1
_SHOWN = 5


def legal(
    group_id: str, topics: tuple[Topic, ...], members: tuple[Member, ...], assignor: str
) -> LegalAnswer:
    """Returns each member's partitions: Kafka's answer, unless it would crash or hang a consumer.

    `members` are in join order. An exception would crash the leader's own consumer and, after each
    session timeout, that of the next leader; so this function raises none.

    1. Kafka's assignor computes an answer. Anomalies are logged.
    2. A second answer is computed if the first one throws, never ends, or assigns a member a topic
       to which the member does not subscribe. (That would crash aiokafka's consumer, and make other
       clients join again forever.) The input of the second answer lacks members that subscribe to
       nothing, and claims that cannot be kept: to other topics, or to partitions that do not exist.
    3. If the second answer has such a problem too, or its input would be the same, range computes
       the answer of this generation: it needs no claims, and always has an answer. In a cooperative
       group, a partition that another member claims is not assigned until the next generation.
    """
    for attempt in _attempts(topics, members):
        try:
            spec = GroupSpec(group_id, topics, attempt, max_partitions=_NO_LIMIT)
            answer = assign(spec, assignor)
        except KafkaRebalanceError as error:
            log.error("group %s: %s", group_id, error)
            continue
        if answer.anomalies:
            log.warning("group %s: %s", group_id, _told(answer.anomalies))
        if all(anomaly.kind != "unsubscribed" for anomaly in answer.anomalies):
            return {member.member_id: answer.get(member.member_id, ()) for member in members}
        log.error(
            "group %s: Kafka's %s assignor assigns members topics that they do not subscribe to, "
            "which ends some consumers; this answer is not sent",
            group_id,
            assignor,
        )
    log.error("group %s: range assigns this generation in place of %s", group_id, assignor)
    return _by_range(group_id, topics, members, cooperative=assignor == _COOPERATIVE)


def _attempts(
    topics: tuple[Topic, ...], members: tuple[Member, ...]
) -> Iterator[tuple[Member, ...]]:
    """Yields the members for the first answer, then those for the second answer if they differ."""
    yield members
    counts = {topic.name: topic.partitions for topic in topics}
    without = tuple(
        replace(
            member,
            owned_partitions=tuple(
                tp
                for tp in member.owned_partitions
                if tp.topic in member.topics and 0 <= tp.partition < counts.get(tp.topic, 0)
            ),
        )
        for member in members
        if member.topics
    )
    if without and without != members:
        yield without


def _by_range(
    group_id: str, topics: tuple[Topic, ...], members: tuple[Member, ...], *, cooperative: bool
) -> LegalAnswer:
    bare = tuple(
        Member(member.member_id, member.topics, member.group_instance_id, rack_id=member.rack)
        for member in members
    )
    answer = assign(GroupSpec(group_id, topics, bare, max_partitions=_NO_LIMIT), "range")
    if not cooperative:
        return answer
    claims = {member.member_id: set(member.owned_partitions) for member in members}
    claimed = set().union(*claims.values())
    return {
        member_id: [tp for tp in given if tp in claims[member_id] or tp not in claimed]
        for member_id, given in answer.items()
    }


def _told(anomalies: Sequence[Anomaly]) -> str:
    """Returns a text with the number of anomalies, and the first few of them."""
    first = ", ".join(
        f"{one.kind} {one.topic}-{one.partition}"
        + (f" to {one.member_id}" if one.member_id else "")
        for one in islice(anomalies, _SHOWN)
    )
    more = ", …" if len(anomalies) > _SHOWN else ""
    return f"Kafka's answer is unsound in {len(anomalies)} places: {first}{more}"
