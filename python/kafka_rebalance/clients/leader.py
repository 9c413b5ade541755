# SPDX-License-Identifier: Apache-2.0
"""Computes a leader's answer from the client library's data, in the form that the library sends."""

from collections.abc import Mapping, Sequence
from typing import Any

from kafka_rebalance.group.model import Member, Topic
from kafka_rebalance.wire import by_topic

from .caller import ClientNames
from .legal import legal


def answer(
    client: ClientNames,
    group_id: str,
    cluster: Any,
    members: Sequence[Member],
    assignor: str,
) -> dict[str, list[tuple[str, list[int]]]]:
    """Returns each member's partitions, as a list of topics with partition numbers.

    A topic without metadata, as in the consumer's first join, counts as missing. The client joins
    again when it has received the topic's metadata.
    """
    subscribed = dict.fromkeys(topic for member in members for topic in member.topics)
    counts = {
        topic: len(partitions)
        for topic in subscribed
        if (partitions := cluster.partitions_for_topic(topic))
    }
    # If no member has a rack, the racks of replicas have no effect, and reading them takes long.
    known = cluster.brokers() if any(member.rack for member in members) else ()
    brokers = {getattr(broker, client.node): broker.rack for broker in known}
    topics = tuple(
        Topic(topic, count, _racks(client, cluster, topic, count, brokers))
        for topic, count in counts.items()
    )
    assignment = legal(group_id, topics, tuple(members), assignor)
    return {member_id: list(by_topic(owned).items()) for member_id, owned in assignment.items()}


def _racks(
    client: ClientNames, cluster: Any, topic: str, count: int, brokers: Mapping[Any, str | None]
) -> tuple[tuple[str | None, ...], ...] | None:
    """Returns the racks of each partition's replicas; None if `brokers` has no rack."""
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
