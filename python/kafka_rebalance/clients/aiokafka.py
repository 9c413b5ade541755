"""Kafka's eager assignors for aiokafka: classes for `partition_assignment_strategy`.

aiokafka calls classes, not instances, and keeps one assignment a class, so that consumers of one
process share it: take a class of your own for each (`class Mine(Sticky): pass`) where that matters.
It tells no generation and no instance ids, and has no cooperative rebalancing.
"""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from kafka_rebalance.errors import MissingExtra
from kafka_rebalance.model import Member, TopicPartition
from kafka_rebalance.wire import encode_sticky_user_data

from .leader import Cluster, answer, sticky_history

try:
    from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
    from aiokafka.coordinator.protocol import (
        ConsumerProtocolMemberAssignment,
        ConsumerProtocolMemberMetadata,
    )
except ImportError:
    raise MissingExtra("kafka_rebalance.clients.aiokafka", "aiokafka") from None

_VERSION = 0
_NO_GENERATION = -1


class _Assignor(AbstractPartitionAssignor):  # type: ignore[misc]
    name: ClassVar[str]

    @classmethod
    def assign(cls, cluster: Cluster, members: Mapping[str, Any]) -> dict[str, Any]:
        """`members` by id, in join order; gives each a ConsumerProtocolMemberAssignment."""
        group = [cls._member(member_id, sent) for member_id, sent in members.items()]
        return {
            member_id: ConsumerProtocolMemberAssignment(_VERSION, topics, b"")
            for member_id, topics in answer(cluster, group, cls.name).items()
        }

    @classmethod
    def metadata(cls, topics: Iterable[str]) -> Any:
        """What the consumer sends when it joins."""
        return ConsumerProtocolMemberMetadata(_VERSION, sorted(topics), cls._user_data())

    @classmethod
    def on_assignment(cls, assignment: Any) -> None:
        """Range and round-robin remember nothing."""

    @classmethod
    def _member(cls, member_id: str, sent: Any) -> Member:
        owned, generation_id = cls._claims(sent)
        topics = tuple(sent.subscription)
        return Member(member_id, topics, owned_partitions=owned, generation_id=generation_id)

    @classmethod
    def _claims(cls, sent: Any) -> tuple[tuple[TopicPartition, ...], int | None]:
        return (), None

    @classmethod
    def _user_data(cls) -> bytes:
        return b""


class Range(_Assignor):
    """`org.apache.kafka.clients.consumer.RangeAssignor`."""

    name = "range"


class RoundRobin(_Assignor):
    """`org.apache.kafka.clients.consumer.RoundRobinAssignor`."""

    name = "roundrobin"


class Sticky(_Assignor):
    """`org.apache.kafka.clients.consumer.StickyAssignor`; aiokafka never tells the generation."""

    name = "sticky"
    _owned: ClassVar[tuple[TopicPartition, ...] | None] = None

    @classmethod
    def on_assignment(cls, assignment: Any) -> None:
        cls._owned = tuple(TopicPartition(*tp) for tp in assignment.partitions())

    @classmethod
    def _claims(cls, sent: Any) -> tuple[tuple[TopicPartition, ...], int | None]:
        return sticky_history(sent.user_data)

    @classmethod
    def _user_data(cls) -> bytes:
        if cls._owned is None:
            return b""
        return encode_sticky_user_data(cls._owned, _NO_GENERATION)
