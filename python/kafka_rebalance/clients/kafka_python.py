"""Kafka's assignors for kafka-python 3: classes for `partition_assignment_strategy`.

kafka-python makes an instance of each class for each consumer; `rack_id` (KIP-881) needs an
instance of your own: `partition_assignment_strategy=[Range(rack_id="b")]`.

Differs  from kafka-python's own in what its range loses among static members, and in the generation
         and rack that its cooperative-sticky does not send.
"""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from kafka_rebalance.errors import MissingExtra
from kafka_rebalance.model import Member, TopicPartition
from kafka_rebalance.wire import encode_cooperative_user_data, encode_sticky_user_data

from .leader import Cluster, answer, sticky_history

try:
    from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol
    from kafka.protocol.consumer.metadata import (
        ConsumerProtocolAssignment,
        ConsumerProtocolSubscription,
    )
except ImportError:
    raise MissingExtra("kafka_rebalance.clients.kafka_python", "kafka") from None

# The subscription's newest version: owned partitions, generation and rack have fields of their own.
_SUBSCRIPTION_VERSION = 3
_ASSIGNMENT_VERSION = 0
_NO_GENERATION = -1


class _Assignor(AbstractPartitionAssignor):  # type: ignore[misc]
    """One consumer's: what it sends, what it was given, and the answer when it leads."""

    name: ClassVar[str]

    def __init__(self, *, rack_id: str | None = None) -> None:
        self._rack_id = rack_id
        self._owned: tuple[TopicPartition, ...] | None = None
        self._generation_id = _NO_GENERATION

    def supported_protocols(self) -> list[Any]:
        return [RebalanceProtocol.EAGER]

    def assign(self, cluster: Cluster, members: Sequence[Any]) -> dict[str, Any]:
        """`members` as decoded from JoinGroup; gives each a ConsumerProtocolAssignment."""
        group = [self._member(member) for member in members]
        return {
            member_id: ConsumerProtocolAssignment(_ASSIGNMENT_VERSION, topics, b"")
            for member_id, topics in answer(cluster, group, self.name).items()
        }

    def metadata(self, topics: Iterable[str]) -> Any:
        """What the consumer sends when it joins."""
        return ConsumerProtocolSubscription(
            version=_SUBSCRIPTION_VERSION,
            topics=sorted(topics),
            user_data=self._user_data(),
            owned_partitions=self._owned_field(),
            generation_id=self._generation_field(),
            rack_id=self._rack_id,
        )

    def on_assignment(self, assignment: Any, generation: int) -> None:
        self._owned = tuple(TopicPartition(*tp) for tp in assignment.partitions())
        self._generation_id = generation

    def _member(self, member: Any) -> Member:
        sent = member.metadata
        owned, generation_id = self._claims(sent)
        return Member(
            member.member_id,
            tuple(sent.topics),
            member.group_instance_id,
            owned_partitions=owned,
            generation_id=generation_id,
            rack_id=getattr(sent, "rack_id", None),
        )

    def _claims(self, sent: Any) -> tuple[tuple[TopicPartition, ...], int | None]:
        return (), None

    def _user_data(self) -> bytes | None:
        return None

    def _owned_field(self) -> list[Any]:
        return []

    def _generation_field(self) -> int:
        return _NO_GENERATION


class Range(_Assignor):
    """`org.apache.kafka.clients.consumer.RangeAssignor`."""

    name = "range"


class RoundRobin(_Assignor):
    """`org.apache.kafka.clients.consumer.RoundRobinAssignor`."""

    name = "roundrobin"


class Sticky(_Assignor):
    """`org.apache.kafka.clients.consumer.StickyAssignor`: history travels as user data."""

    name = "sticky"

    def _claims(self, sent: Any) -> tuple[tuple[TopicPartition, ...], int | None]:
        return sticky_history(sent.user_data)

    def _user_data(self) -> bytes | None:
        if self._owned is None:
            return None
        return encode_sticky_user_data(self._owned, self._generation_id)

    def _generation_field(self) -> int:
        return self._generation_id


class CooperativeSticky(_Assignor):
    """`org.apache.kafka.clients.consumer.CooperativeStickyAssignor`."""

    name = "cooperative-sticky"

    def supported_protocols(self) -> list[Any]:
        return [RebalanceProtocol.COOPERATIVE]

    def _claims(self, sent: Any) -> tuple[tuple[TopicPartition, ...], int | None]:
        owned = tuple(
            TopicPartition(entry.topic, partition)
            for entry in getattr(sent, "owned_partitions", None) or ()
            for partition in entry.partitions
        )
        generation_id = getattr(sent, "generation_id", None)
        return owned, None if generation_id in (None, _NO_GENERATION) else generation_id

    def _user_data(self) -> bytes | None:
        return encode_cooperative_user_data(self._generation_id)

    def _owned_field(self) -> list[Any]:
        topics: dict[str, list[int]] = {}
        for topic, partition in self._owned or ():
            topics.setdefault(topic, []).append(partition)
        entry = ConsumerProtocolSubscription.TopicPartition
        return [entry(topic=t, partitions=sorted(ps)) for t, ps in sorted(topics.items())]

    def _generation_field(self) -> int:
        return self._generation_id
