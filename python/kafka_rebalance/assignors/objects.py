# SPDX-License-Identifier: Apache-2.0
"""Kafka's assignors as objects; as in a real consumer, each member has an object of its own.

`CooperativeSticky` and `Sticky` send the member's last generation in the user data; `Sticky` also
sends the member's last assignment.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import cast

from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec

from .assigning import assign
from .interface import RebalanceProtocol
from .registry import BUILT_IN, BuiltIn

_NO_GENERATION = -1


class BuiltInAssignor:
    """An assignor with the properties of the registry's row for its `name`."""

    name: str
    version = 0
    supported_protocols: Sequence[RebalanceProtocol]
    _row: BuiltIn

    def __init_subclass__(cls) -> None:
        # A subclass whose name has no row in the registry keeps the row of its base class.
        row = BUILT_IN.get(vars(cls).get("name", ""))
        if row is not None:
            cooperative = (RebalanceProtocol.COOPERATIVE,) if row.withholds else ()
            cls._row, cls.supported_protocols = row, (*cooperative, RebalanceProtocol.EAGER)

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
    """Returns a new object for a row of the registry, even if this module has no class for it."""
    return _class_of(name)()


@cache
def _class_of(name: str) -> type[BuiltInAssignor]:
    """Makes the class for a registry's row; cached, because an object takes far less time."""
    return cast(type[BuiltInAssignor], type(name, (BuiltInAssignor,), {"name": name}))


class Range(BuiltInAssignor):
    """`org.apache.kafka.clients.consumer.RangeAssignor`: sends no user data."""

    name = "range"


class RoundRobin(BuiltInAssignor):
    """`org.apache.kafka.clients.consumer.RoundRobinAssignor`: sends no user data."""

    name = "roundrobin"


class Sticky(BuiltInAssignor):
    """`org.apache.kafka.clients.consumer.StickyAssignor`: sends its last assignment as user data.

    The user data have version 1; they are None before the first assignment.
    """

    name = "sticky"


class CooperativeSticky(BuiltInAssignor):
    """`org.apache.kafka.clients.consumer.CooperativeStickyAssignor`: sends its generation."""

    name = "cooperative-sticky"
