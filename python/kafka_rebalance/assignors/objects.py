# SPDX-License-Identifier: Apache-2.0
"""Kafka's assignors as objects: one instance for each member, as in a real consumer.

Only the sticky ones have state: both keep the last generation, and `Sticky` the last assignment.
"""

from collections.abc import Iterable, Sequence

from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec

from .assigning import assign
from .interface import RebalanceProtocol
from .registry import BUILT_IN, BuiltIn

_NO_GENERATION = -1


def _protocols(name: str) -> Sequence[RebalanceProtocol]:
    if BUILT_IN[name].withholds:
        return (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)
    return (RebalanceProtocol.EAGER,)


class BuiltInAssignor:
    """The behaviour that all objects share; `built_in` makes one for any row of the registry."""

    name: str
    version = 0
    supported_protocols: Sequence[RebalanceProtocol]
    _row: BuiltIn

    def __init__(self) -> None:
        self._owned: tuple[TopicPartition, ...] | None = None
        self._generation_id = _NO_GENERATION

    def subscription_user_data(self, topics: Iterable[str]) -> bytes | None:
        return self._row.user_data(self._owned, self._generation_id)

    def assign(self, group: GroupSpec) -> Assignment:
        return assign(group, self.name)

    def on_assignment(self, assignment: Sequence[TopicPartition], generation_id: int) -> None:
        self._owned = tuple(assignment)
        self._generation_id = generation_id


def built_in(name: str) -> BuiltInAssignor:
    """Returns the object for a row of the registry, even if the row has no class of its own."""
    made = BuiltInAssignor()
    made.name, made.supported_protocols, made._row = name, _protocols(name), BUILT_IN[name]
    return made


class Range(BuiltInAssignor):
    """`org.apache.kafka.clients.consumer.RangeAssignor`: sends no user data."""

    name = "range"
    supported_protocols = _protocols("range")
    _row = BUILT_IN["range"]


class RoundRobin(BuiltInAssignor):
    """`org.apache.kafka.clients.consumer.RoundRobinAssignor`: sends no user data."""

    name = "roundrobin"
    supported_protocols = _protocols("roundrobin")
    _row = BUILT_IN["roundrobin"]


class Sticky(BuiltInAssignor):
    """`org.apache.kafka.clients.consumer.StickyAssignor`: history travels as user data, version 1.

    The user data are None before the first assignment.
    """

    name = "sticky"
    supported_protocols = _protocols("sticky")
    _row = BUILT_IN["sticky"]


class CooperativeSticky(BuiltInAssignor):
    """`org.apache.kafka.clients.consumer.CooperativeStickyAssignor`: the generation travels.

    The user data are four bytes: the last generation, -1 before the first.
    """

    name = "cooperative-sticky"
    supported_protocols = _protocols("cooperative-sticky")
    _row: BuiltIn = BUILT_IN["cooperative-sticky"]
