# SPDX-License-Identifier: Apache-2.0
"""Runs the assignors of kafka-python and aiokafka: the classes of the installed library.

Use them for groups whose leader runs the library without this project's plug-ins. They run in
Python only, so batches and Spark cannot run them.

1. Each member is encoded as by the library's own consumer: the class gets the member's owned
   partitions, if it uses them, and makes the subscription.
2. The class assigns. Its errors become AssignorThrows.

Quirk    the classes iterate over sets of names, so an answer may depend on Python's hash seed, as
         in a real consumer.
Source   kafka-python 3.0.12, aiokafka 0.14.0 (coordinator.assignors).
"""

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kafka_rebalance.errors import AssignorThrows, GroupError, MissingExtra
from kafka_rebalance.group.model import Member, TopicPartition
from kafka_rebalance.group.spec import GroupSpec

from .interface import RebalanceProtocol

_NO_GENERATION = -1


class _Cluster:
    """The methods of the library's ClusterMetadata that its assignors call."""

    def __init__(self, group: GroupSpec) -> None:
        self._partitions = {name: set(range(n)) for name, n in group.partition_counts().items()}

    def topics(self) -> list[str]:
        return list(self._partitions)

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        return self._partitions.get(topic)


class LibraryAssignor:
    """One class of a library, with the interface of `Assignor`."""

    version = 0

    def __init__(self, name: str, library: "_Library", path: str) -> None:
        self.name = name
        self._library = library
        self.class_path = f"{library.package}.coordinator.assignors.{path}"
        cooperative = name.endswith("cooperative-sticky")
        protocol = RebalanceProtocol.COOPERATIVE if cooperative else RebalanceProtocol.EAGER
        self.supported_protocols: Sequence[RebalanceProtocol] = (protocol,)

    def subscription_user_data(self, topics: Iterable[str]) -> bytes | None:
        return None

    def assign(self, group: GroupSpec) -> Mapping[str, Sequence[TopicPartition]]:
        made = self._class()
        # 1.
        sent = [(member, self._library.sends(made, member)) for member in group.members]
        # 2.
        try:
            answer = made().assign(_Cluster(group), self._library.members(sent))
        except Exception as error:  # the library's class may raise any error for a group
            problem = f"{self.name} raises {type(error).__name__} here: {error}"
            raise AssignorThrows("assignor", problem) from error
        return {
            member_id: [TopicPartition(*tp) for tp in given.partitions()]
            for member_id, given in answer.items()
        }

    def on_assignment(self, assignment: Sequence[TopicPartition], generation_id: int) -> None:
        """Does nothing: the group already contains the claims of all members."""

    def _class(self) -> Any:
        module, _, name = self.class_path.rpartition(".")
        try:
            return getattr(importlib.import_module(module), name)
        except ImportError:
            missing = MissingExtra(self.name, self._library.extra)
            raise GroupError("assignor", str(missing)) from None


def _by_topic(member: Member) -> list[tuple[str, list[int]]]:
    topics: dict[str, list[int]] = {}
    for topic, partition in member.owned_partitions:
        topics.setdefault(topic, []).append(partition)
    return list(topics.items())


def _kafka_python_sends(made: Any, member: Member) -> Any:
    from kafka.protocol.consumer.metadata import (
        ConsumerProtocolAssignment,
        ConsumerProtocolSubscription,
    )

    one = made()
    if member.owned_partitions or member.generation_id is not None:
        given = ConsumerProtocolAssignment(0, _by_topic(member), b"")
        none = member.generation_id is None
        one.on_assignment(given, _NO_GENERATION if none else member.generation_id)
    return ConsumerProtocolSubscription.decode(one.metadata(member.topics).encode())


def _kafka_python_members(members: Sequence[tuple[Member, Any]]) -> Any:
    from kafka.protocol.consumer.group import JoinGroupResponse

    return [
        JoinGroupResponse.JoinGroupResponseMember(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            metadata=subscription,
        )
        for member, subscription in members
    ]


def _aiokafka_sends(made: Any, member: Member) -> Any:
    # aiokafka keeps a member's state on the class, so this calls `_metadata` directly, with this
    # member's state. A consumer of aiokafka never sets the generation.
    from aiokafka.structs import TopicPartition as OwnPartition

    if not hasattr(made, "_metadata"):
        return made.metadata(member.topics)
    owned = None
    if member.owned_partitions or member.generation_id is not None:
        owned = [OwnPartition(*tp) for tp in member.owned_partitions]
    return made._metadata(member.topics, owned, _NO_GENERATION)


class _Library(NamedTuple):
    """How to call a library: `sends` encodes a member, `members` makes the argument of `assign`."""

    package: str
    extra: str
    sends: Callable[[Any, Member], Any]
    members: Callable[[Sequence[tuple[Member, Any]]], Any]


_LIBRARIES = {
    "kafka-python": _Library("kafka", "kafka", _kafka_python_sends, _kafka_python_members),
    "aiokafka": _Library(
        "aiokafka",
        "aiokafka",
        _aiokafka_sends,
        lambda members: {one.member_id: sent for one, sent in members},
    ),
}
_CLASSES = {
    "kafka-python/range": "range.RangePartitionAssignor",
    "kafka-python/roundrobin": "roundrobin.RoundRobinPartitionAssignor",
    "kafka-python/sticky": "sticky.sticky_assignor.StickyPartitionAssignor",
    "kafka-python/cooperative-sticky": "cooperative_sticky.CooperativeStickyAssignor",
    "aiokafka/range": "range.RangePartitionAssignor",
    "aiokafka/roundrobin": "roundrobin.RoundRobinPartitionAssignor",
    "aiokafka/sticky": "sticky.sticky_assignor.StickyPartitionAssignor",
}

PYTHON_LIBRARIES = {
    name: LibraryAssignor(name, _LIBRARIES[name.partition("/")[0]], path)
    for name, path in _CLASSES.items()
}
"""The assignors of the Python libraries, by name."""
