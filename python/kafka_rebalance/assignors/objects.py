# SPDX-License-Identifier: Apache-2.0
"""Kafka's assignors as objects: one instance for each member, as in a real consumer.

Only the sticky ones have state: the last generation, and the last assignment for `Sticky`.
"""

from collections.abc import Iterable, Sequence

from kafka_rebalance import wire
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec

from .assigning import assign
from .interface import RebalanceProtocol

_NO_GENERATION = -1


class Range:
    """`org.apache.kafka.clients.consumer.RangeAssignor`."""

    name = "range"
    version = 0
    supported_protocols: Sequence[RebalanceProtocol] = (RebalanceProtocol.EAGER,)

    def subscription_user_data(self, topics: Iterable[str]) -> bytes | None:
        return None

    def assign(self, group: GroupSpec) -> Assignment:
        return assign(group, self.name)

    def on_assignment(self, assignment: Sequence[TopicPartition], generation_id: int) -> None:
        """Range remembers nothing."""


class RoundRobin:
    """`org.apache.kafka.clients.consumer.RoundRobinAssignor`."""

    name = "roundrobin"
    version = 0
    supported_protocols: Sequence[RebalanceProtocol] = (RebalanceProtocol.EAGER,)

    def subscription_user_data(self, topics: Iterable[str]) -> bytes | None:
        return None

    def assign(self, group: GroupSpec) -> Assignment:
        return assign(group, self.name)

    def on_assignment(self, assignment: Sequence[TopicPartition], generation_id: int) -> None:
        """Round-robin remembers nothing."""


class Sticky:
    """`org.apache.kafka.clients.consumer.StickyAssignor`: user data has owned partitions."""

    name = "sticky"
    version = 0
    supported_protocols: Sequence[RebalanceProtocol] = (RebalanceProtocol.EAGER,)

    def __init__(self) -> None:
        self._owned: tuple[TopicPartition, ...] | None = None
        self._generation_id = _NO_GENERATION

    def subscription_user_data(self, topics: Iterable[str]) -> bytes | None:
        """None before the first assignment, then user data of version 1."""
        if self._owned is None:
            return None
        return wire.encode_sticky_user_data(self._owned, self._generation_id)

    def assign(self, group: GroupSpec) -> Assignment:
        return assign(group, self.name)

    def on_assignment(self, assignment: Sequence[TopicPartition], generation_id: int) -> None:
        self._owned = tuple(assignment)
        self._generation_id = generation_id


class CooperativeSticky:
    """`org.apache.kafka.clients.consumer.CooperativeStickyAssignor`: user data is a generation."""

    name = "cooperative-sticky"
    version = 0
    supported_protocols: Sequence[RebalanceProtocol] = (
        RebalanceProtocol.COOPERATIVE,
        RebalanceProtocol.EAGER,
    )

    def __init__(self) -> None:
        self._generation_id = _NO_GENERATION

    def subscription_user_data(self, topics: Iterable[str]) -> bytes | None:
        """Four bytes: the last generation, or -1 before the first assignment."""
        return wire.encode_cooperative_user_data(self._generation_id)

    def assign(self, group: GroupSpec) -> Assignment:
        return assign(group, self.name)

    def on_assignment(self, assignment: Sequence[TopicPartition], generation_id: int) -> None:
        self._generation_id = generation_id
