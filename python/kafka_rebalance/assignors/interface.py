# SPDX-License-Identifier: Apache-2.0
"""The interface of an assignor, as Kafka's `ConsumerPartitionAssignor`.

Each member has an assignor object. It makes the user data that the member sends when it joins, gets
the member's assignment (`on_assignment`), and assigns for the whole group on the leader (`assign`).

Source   org.apache.kafka.clients.consumer.ConsumerPartitionAssignor (Kafka 4.4.0).
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Protocol, runtime_checkable

from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.spec import GroupSpec


class RebalanceProtocol(Enum):
    """EAGER members revoke all partitions before they join, COOPERATIVE ones only moving ones."""

    EAGER = 0
    COOPERATIVE = 1


@runtime_checkable
class Assignor(Protocol):
    """The methods and properties that an assignor has; `register` makes a custom one known."""

    @property
    def name(self) -> str:
        """The name of the protocol in JoinGroup, unique within a group."""

    @property
    def version(self) -> int:
        """The version of the user data, or 0 if there are no user data."""

    @property
    def supported_protocols(self) -> Sequence[RebalanceProtocol]:
        """Returns the rebalance protocols, in order of preference."""

    def subscription_user_data(self, topics: Iterable[str]) -> bytes | None:
        """Returns the user data that the member sends with its subscription to these topics."""

    def assign(self, group: GroupSpec) -> Mapping[str, Sequence[TopicPartition]]:
        """Returns the partitions of each member; a member without an entry gets none."""

    def on_assignment(self, assignment: Sequence[TopicPartition], generation_id: int) -> None:
        """Receives the partitions that this member got, and their generation."""
