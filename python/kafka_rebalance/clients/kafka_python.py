# SPDX-License-Identifier: Apache-2.0
"""Kafka's assignors, and this project's own two, as classes for kafka-python 3's setting
`partition_assignment_strategy`.

The setting takes a class, an instance, or a function that returns an instance; each consumer
remembers its own last assignment. kafka-python does not pass its `client_rack` to assignors, so the
rack (KIP-881) is a parameter of the assignor: `partition_assignment_strategy=[Range(rack_id="b")]`.

Differs  from kafka-python's own assignors: its range loses some static members, and its
         cooperative-sticky sends neither generation nor rack; these classes send both. After a
         revocation, `CooperativeSticky` here claims only partitions that the consumer still holds.
"""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from kafka_rebalance.assignors.registry import BALANCED, WEIGHTED
from kafka_rebalance.errors import MissingExtra
from kafka_rebalance.group.model import Member, TopicPartition
from kafka_rebalance.wire.consumer_protocol import Subscription, by_topic
from kafka_rebalance.wire.sent_members import sent_member

from .balance import COOPERATIVE, PlugInOptions, Source, leading
from .leader import ClientNames, ConsumerMemory, answer, calling, memory

try:
    from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol
    from kafka.protocol.consumer.metadata import (
        ConsumerProtocolAssignment,
        ConsumerProtocolSubscription,
    )
except ImportError:
    raise MissingExtra("kafka_rebalance.clients.kafka_python", "kafka") from None

CLIENT = ClientNames("kafka.coordinator.consumer", "node_id", "replica_nodes")

# Version 3 of the subscription contains fields for owned partitions, generation and rack.
_VERSION = 3


class _Assignor(AbstractPartitionAssignor):  # type: ignore[misc]
    """Makes a consumer's subscription, keeps its last assignment, and assigns for a leader."""

    name: ClassVar[str]
    _options: PlugInOptions | None = None

    def __init__(self, *, rack_id: str | None = None) -> None:
        self._rack_id = rack_id

    def supported_protocols(self) -> list[Any]:
        return [RebalanceProtocol.EAGER]

    def assign(self, cluster: Any, members: Sequence[Any]) -> dict[str, Any]:
        """Returns a ConsumerProtocolAssignment for each of `members` (decoded from JoinGroup)."""
        consumer = calling(CLIENT).get("self")
        group_id = getattr(consumer, "group_id", "")
        group = [self._member(member) for member in members]
        decide = None
        if self._options is not None:
            decide = leading(self._memory(consumer), self._options, consumer).decide
        given = answer(CLIENT, group_id, cluster, group, self.name, decide)
        return {
            member_id: ConsumerProtocolAssignment(version=_VERSION, assigned_partitions=topics)
            for member_id, topics in given.items()
        }

    def metadata(self, topics: Iterable[str]) -> Any:
        """Returns the subscription that the consumer sends when it joins."""
        subscribed = frozenset(topics)
        consumer = calling(CLIENT).get("self")
        known = self._memory(consumer)
        held = by_topic(sorted(self._held(consumer, known, subscribed)))
        entry = ConsumerProtocolSubscription.TopicPartition
        # Without user data, the group can change to the consumer protocol (KIP-848) later.
        user_data = None if self._options else known.user_data(self.name, subscribed)
        return ConsumerProtocolSubscription(
            version=_VERSION,
            topics=sorted(subscribed),
            user_data=user_data,
            owned_partitions=[entry(topic=t, partitions=numbers) for t, numbers in held.items()],
            generation_id=(
                consumer.group_metadata().generation_id if consumer else known.generation_id
            ),
            rack_id=self._rack_id or None,
        )

    def on_assignment(self, assignment: Any, generation: int) -> None:
        self._memory(calling(CLIENT).get("self")).learn(assignment.partitions(), generation)

    def _memory(self, consumer: Any) -> ConsumerMemory:
        return memory(consumer or self, self.name)

    def _member(self, member: Any) -> Member:
        sent = member.metadata
        owned = tuple(
            TopicPartition(entry.topic, partition)
            for entry in sent.owned_partitions or ()
            for partition in entry.partitions
        )
        generation_id = sent.generation_id if sent.generation_id >= 0 else None
        subscription = Subscription(
            tuple(sent.topics), sent.user_data, owned, generation_id, sent.rack_id, sent.version
        )
        return sent_member(
            member.member_id, subscription, self.name, group_instance_id=member.group_instance_id
        )

    def _held(
        self, consumer: Any, known: ConsumerMemory, subscribed: frozenset[str]
    ) -> Iterable[tuple[str, int]]:
        """Returns the partitions to claim: none, as an eager member revokes all before it joins."""
        return ()


class Range(_Assignor):
    """`org.apache.kafka.clients.consumer.RangeAssignor`."""

    name = "range"


class RoundRobin(_Assignor):
    """`org.apache.kafka.clients.consumer.RoundRobinAssignor`."""

    name = "roundrobin"


class Sticky(_Assignor):
    """`org.apache.kafka.clients.consumer.StickyAssignor`: sends owned partitions as user data."""

    name = "sticky"


class _Cooperative(_Assignor):
    """An assignor whose members keep their partitions when they join.

    As in Java, a consumer whose list also contains an eager assignor is eager. A group that changes
    from an eager assignor to this one, by two rolling restarts, depends on this rule in the first
    restart.
    """

    def supported_protocols(self) -> list[Any]:
        return [RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER]

    def _held(
        self, consumer: Any, known: ConsumerMemory, subscribed: frozenset[str]
    ) -> Iterable[tuple[str, int]]:
        """Returns the subscribed partitions that the consumer still holds; none if it is eager."""
        if consumer is None:
            return known.still(subscribed)
        if consumer._rebalance_protocol is not RebalanceProtocol.COOPERATIVE:
            return ()
        held = consumer._subscription.assigned_partitions()
        return (tp for tp in held if tp.topic in subscribed)


class CooperativeSticky(_Cooperative):
    """Answers as `org.apache.kafka.clients.consumer.CooperativeStickyAssignor`."""

    name = "cooperative-sticky"


class Balanced(_Cooperative):
    """`balanced` (docs/balance.md): `settings` as in "prefer=moves,rack,topics" or "budget=3"."""

    name = COOPERATIVE[BALANCED]

    def __init__(self, settings: str = "", *, rack_id: str | None = None) -> None:
        super().__init__(rack_id=rack_id)
        self._options = PlugInOptions(BALANCED, settings, is_cooperative=True)


class Weighted(_Cooperative):
    """`weighted` (docs/balance.md): takes nothing from an owner until it has fresh `weights`.

    `weights` is a `Load`, another function of group id and partitions, or a mapping from (topic,
    partition). `settings` are as in "budget=3&tolerance=5%". The leader requests one rebalance if
    members have no partition, and others only if `rebalance_every` is given: at most one in that
    many seconds.
    """

    name = COOPERATIVE[WEIGHTED]

    def __init__(
        self,
        weights: Source | None = None,
        settings: str = "",
        *,
        rebalance_every: float | None = None,
        rack_id: str | None = None,
    ) -> None:
        super().__init__(rack_id=rack_id)
        self._options = PlugInOptions(
            WEIGHTED, settings, weights, rebalance_every, is_cooperative=True
        )
