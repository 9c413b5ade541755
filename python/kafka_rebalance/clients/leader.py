"""What a client's leader knows, as a group; and the answer as a client sends it."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Protocol

from kafka_rebalance.assignors import assign
from kafka_rebalance.model import GroupSpec, Member, Topic, TopicPartition
from kafka_rebalance.wire import decode_sticky_user_data

_NO_LIMIT = 2**31 - 1


class Cluster(Protocol):
    """What both clients' ClusterMetadata can tell."""

    def partitions_for_topic(self, topic: str) -> set[int] | None: ...


def answer(
    cluster: Cluster, members: Sequence[Member], assignor: str
) -> dict[str, list[tuple[str, list[int]]]]:
    """Who gets what, a list of topics with their partitions for each member.

    A topic of which the client has no metadata yet (as on a first join) counts as not there; the
    client rejoins when it has. Errors: AssignorThrows where Kafka's class throws.
    """
    subscribed = dict.fromkeys(topic for member in members for topic in member.topics)
    topics = [
        Topic(topic, len(partitions))
        for topic in subscribed
        if (partitions := cluster.partitions_for_topic(topic))
    ]
    group = GroupSpec("", tuple(topics), tuple(members), max_partitions=_NO_LIMIT)
    assignment = assign(group, assignor)
    return {member_id: _by_topic(owned) for member_id, owned in assignment.items()}


def _by_topic(owned: Iterable[TopicPartition]) -> list[tuple[str, list[int]]]:
    """Each topic once, in order of first appearance."""
    topics: dict[str, list[int]] = {}
    for topic, run in groupby(owned, key=lambda tp: tp.topic):
        topics.setdefault(topic, []).extend(partition for _, partition in run)
    return list(topics.items())


def sticky_history(user_data: bytes | None) -> tuple[tuple[TopicPartition, ...], int | None]:
    """What a sticky member says it owned, and when; nothing where it cannot be read."""
    if not user_data:
        return (), None
    history = decode_sticky_user_data(user_data)
    return history.owned_partitions, history.generation_id
