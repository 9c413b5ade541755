# SPDX-License-Identifier: Apache-2.0
"""What an assignor is: the interface of Kafka's `ConsumerPartitionAssignor`.

A member holds one: it tells what to send when joining (`subscription_user_data`), is told what the
member got (`on_assignment`), and on the leader answers for the group (`assign`).

Source   org.apache.kafka.clients.consumer.ConsumerPartitionAssignor (Kafka 4.4.0).
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Protocol, runtime_checkable

from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.spec import GroupSpec


class RebalanceProtocol(Enum):
    """EAGER members give up everything before they join; COOPERATIVE ones only what moves."""

    EAGER = 0
    COOPERATIVE = 1


@runtime_checkable
class Assignor(Protocol):
    """What an assignor is; a custom one has these and is made known with `register`."""

    @property
    def name(self) -> str:
        """The protocol's name in JoinGroup, unique within a group."""

    @property
    def version(self) -> int:
        """The version of its user data; 0 when it has none."""

    @property
    def supported_protocols(self) -> Sequence[RebalanceProtocol]:
        """In order of preference."""

    def subscription_user_data(self, topics: Iterable[str]) -> bytes | None:
        """What the member sends beside its subscription to these topics."""

    def assign(self, group: GroupSpec) -> Mapping[str, Sequence[TopicPartition]]:
        """Who gets what; members that are left out get nothing."""

    def on_assignment(self, assignment: Sequence[TopicPartition], generation_id: int) -> None:
        """What this member got, and in which generation."""
