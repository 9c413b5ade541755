# SPDX-License-Identifier: Apache-2.0
"""Kafka's eager assignors, and this project's own two, for aiokafka's setting
`partition_assignment_strategy`.

The setting takes classes, as for aiokafka's own assignors, or instances. aiokafka does not pass its
`client_rack` to assignors, so the rack (KIP-881) is a parameter of the instance:
`partition_assignment_strategy=[Range(rack_id="b")]`. Each consumer remembers its own last
assignment, even if consumers share a class or an instance. aiokafka has no cooperative rebalancing.

Differs  from aiokafka's own sticky assignor, which never sends its generation.
"""

from collections.abc import Callable, Iterable, Mapping
from types import MethodType
from typing import Any, ClassVar

from kafka_rebalance.assignors.registry import BALANCED, WEIGHTED
from kafka_rebalance.errors import MissingExtra, WireError
from kafka_rebalance.wire.consumer_protocol import Subscription, decode_subscription
from kafka_rebalance.wire.sent_members import sent_member

from .balance import EAGER, PlugInOptions, Source, leading
from .leader import NO_GENERATION, ClientNames, answer, calling, log, memory

try:
    from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
    from aiokafka.coordinator.protocol import (
        ConsumerProtocolMemberAssignment,
        ConsumerProtocolMemberMetadata,
    )
    from aiokafka.protocol.types import Array, Int32, Schema, String
except ImportError:
    raise MissingExtra("kafka_rebalance.clients.aiokafka", "aiokafka") from None

CLIENT = ClientNames("aiokafka.consumer.group_coordinator", "nodeId", "replicas")

_VERSION = 3


class _Subscription(ConsumerProtocolMemberMetadata):  # type: ignore[misc]
    """A subscription of version 3; aiokafka's own class has version 0."""

    _BASE = ConsumerProtocolMemberMetadata.SCHEMA
    SCHEMA = Schema(
        *zip(_BASE.names, _BASE.fields, strict=True),
        ("owned_partitions", Array(("topic", String()), ("partitions", Array(Int32)))),
        ("generation_id", Int32),
        ("rack_id", String()),
    )


class _OfBoth:
    """A method that can be called on the class and on an instance, as aiokafka may do either."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    def __get__(self, instance: object, owner: type) -> MethodType:
        return MethodType(self._function, owner if instance is None else instance)


class _Assignor(AbstractPartitionAssignor):  # type: ignore[misc]
    """Makes a consumer's subscription, keeps its last assignment, and assigns for a leader."""

    name: ClassVar[str]
    sent_as: ClassVar[str | None] = None
    """The assignor in whose format members send their user data; for None, it is `name`."""
    rack_id: str | None = None
    _options: PlugInOptions | None = None

    def __init__(self, *, rack_id: str | None = None) -> None:
        self.rack_id = rack_id

    @_OfBoth
    def assign(self, cluster: Any, members: Mapping[str, Any]) -> dict[str, Any]:
        """Returns each member's ConsumerProtocolMemberAssignment; `members` are in join order."""
        called = calling(CLIENT)
        consumer = _consumer(called)
        group_id = getattr(consumer, "group_id", "")
        group = [
            sent_member(member_id, sent, self.sent_as or self.name, group_instance_id=instance_id)
            for member_id, instance_id, sent in _joined(called, members)
        ]
        decide = None
        if self._options is not None:
            known = memory(consumer or self, self.name)
            decide = leading(known, self._options, consumer).decide
        given = answer(CLIENT, group_id, cluster, group, self.name, decide)
        return {
            member_id: ConsumerProtocolMemberAssignment(_VERSION, topics, None)
            for member_id, topics in given.items()
        }

    @_OfBoth
    def metadata(self, topics: Iterable[str]) -> Any:
        """Returns the subscription to send, without owned partitions: the consumer is eager."""
        subscribed = frozenset(topics)
        consumer = _consumer(calling(CLIENT))
        known = memory(consumer or self, self.name)
        user_data = known.user_data(self.sent_as or self.name, subscribed)
        generation_id = consumer.generation if consumer else known.generation_id
        rack_id = self.rack_id or None
        return _Subscription(_VERSION, sorted(subscribed), user_data, [], generation_id, rack_id)

    @_OfBoth
    def on_assignment(self, assignment: Any) -> None:
        called = calling(CLIENT)
        known = memory(_consumer(called) or self, self.name)
        known.learn(assignment.partitions(), called.get("generation", NO_GENERATION))


def _consumer(called: Mapping[str, Any]) -> Any:
    """Returns the consumer's coordinator: the caller, or the caller's `_coordinator`."""
    caller = called.get("self")
    return getattr(caller, "_coordinator", caller)


def _joined(
    called: Mapping[str, Any], members: Mapping[str, Any]
) -> Iterable[tuple[str, str | None, Subscription]]:
    """Yields member id, instance id and subscription of each member, decoded from its own bytes.

    aiokafka itself decodes all subscriptions as version 0; the bytes are in the variable `response`
    of its coordinator.
    """
    response = called.get("response")
    sent = {one[0]: one for one in response.members} if response else {}
    for member_id, read in members.items():
        subscription = Subscription(tuple(read.subscription), read.user_data, version=0)
        _, *instance_id, metadata = sent.get(member_id, (member_id, None))
        if metadata is not None:
            try:
                subscription = decode_subscription(metadata)
            except WireError as error:
                log.error("member %s: its subscription is read as version 0: %s", member_id, error)
        yield member_id, instance_id[0] if instance_id else None, subscription


class Range(_Assignor):
    """`org.apache.kafka.clients.consumer.RangeAssignor`."""

    name = "range"


class RoundRobin(_Assignor):
    """`org.apache.kafka.clients.consumer.RoundRobinAssignor`."""

    name = "roundrobin"


class Sticky(_Assignor):
    """`org.apache.kafka.clients.consumer.StickyAssignor`: sends owned partitions as user data."""

    name = "sticky"


class Balanced(_Assignor):
    """`balanced` (docs/balance.md): `settings` as in "prefer=moves,rack,topics" or "budget=3"."""

    name = EAGER[BALANCED]
    sent_as = "sticky"
    _options = PlugInOptions(BALANCED)

    def __init__(self, settings: str = "", *, rack_id: str | None = None) -> None:
        super().__init__(rack_id=rack_id)
        self._options = PlugInOptions(BALANCED, settings)


class Weighted(_Assignor):
    """`weighted` (docs/balance.md): takes nothing from an owner until it has fresh `weights`.

    `weights` is a `Load`, another function of group id and partitions, or a mapping from (topic,
    partition). `settings` are as in "budget=3&tolerance=5%". The leader requests one rebalance if
    members have no partition, and others only if `rebalance_every` is given: at most one in that
    many seconds, because each rebalance stops all members.
    """

    name = EAGER[WEIGHTED]
    sent_as = "sticky"
    _options = PlugInOptions(WEIGHTED)

    def __init__(
        self,
        weights: Source | None = None,
        settings: str = "",
        *,
        rebalance_every: float | None = None,
        rack_id: str | None = None,
    ) -> None:
        super().__init__(rack_id=rack_id)
        self._options = PlugInOptions(WEIGHTED, settings, weights, rebalance_every)
