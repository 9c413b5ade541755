# SPDX-License-Identifier: Apache-2.0
"""Reads and writes the consumer protocol: subscription, assignment, and sticky's user data."""

from collections.abc import Iterable, Sequence
from functools import lru_cache

import kafka_rebalance._core as _core
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.model import TopicPartition

HIGHEST_VERSION = 3


class Subscription(Frozen):
    """The message that a member sends when it joins.

    `generation_id` is None if the field is negative or the version has no such field; `rack_id` is
    None if the field is null or the version has none. For Kafka's classes, an empty rack counts as
    none; librdkafka distinguishes the two.
    """

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned_partitions: tuple[TopicPartition, ...] = ()
    generation_id: int | None = None
    rack_id: str | None = None
    version: int = HIGHEST_VERSION


class AssignmentData(Frozen):
    """The message that a member receives from its leader in SyncGroup."""

    partitions: tuple[TopicPartition, ...]
    user_data: bytes | None = None
    version: int = HIGHEST_VERSION


@lru_cache(256)
def decode_subscription(data: bytes) -> Subscription:
    """Reads a subscription; a version above 3 is read as version 3. Errors: WireError.

    The results are cached, because the broker, the leader and a simulation read the same bytes.
    """
    return Subscription(*_core.decode_subscription(data))


def encode_subscription(subscription: Subscription) -> bytes:
    """Writes a subscription in its version (0 to 3), with sorted topics and owned partitions."""
    return _core.encode_subscription(subscription)


def decode_assignment(data: bytes) -> AssignmentData:
    """Reads an assignment; a version above 3 is read as version 3. Errors: WireError."""
    return AssignmentData(*_core.decode_assignment(data))


def encode_assignment(assignment: AssignmentData) -> bytes:
    """Writes an assignment, grouped by topic in order of first appearance."""
    return _core.encode_assignment(assignment.version, assignment.partitions, assignment.user_data)


def by_topic(partitions: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """Returns partition numbers by topic, with the topics in order of first appearance."""
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return topics


class StickyUserData(Frozen):
    """The partitions that a sticky member owned. `generation_id` is None in version 0."""

    owned_partitions: tuple[TopicPartition, ...]
    generation_id: int | None


def decode_sticky_user_data(data: bytes) -> StickyUserData:
    """Reads StickyAssignor's version 1 or 0; unreadable bytes mean no partitions, generation -1."""
    return StickyUserData(*_core.decode_sticky_user_data(data))


def encode_sticky_user_data(partitions: Sequence[TopicPartition], generation_id: int) -> bytes:
    """Writes StickyAssignor's version 1, with the topics in the order of Kafka's hash map."""
    return _core.encode_sticky_user_data(partitions, generation_id)


def decode_cooperative_user_data(data: bytes) -> int:
    """Returns CooperativeStickyAssignor's generation; as in Kafka, -1 for unreadable bytes."""
    return _core.decode_cooperative_user_data(data)


def encode_cooperative_user_data(generation_id: int) -> bytes:
    """Writes CooperativeStickyAssignor's four bytes; -1 means that there is no generation yet."""
    return generation_id.to_bytes(4, "big", signed=True)
