# SPDX-License-Identifier: Apache-2.0
"""The interface of an assignor, modelled on Kafka's `ConsumerPartitionAssignor`.

Each member has its own assignor. The assignor makes the user data that the member sends when it
joins, and receives the member's assignment (`on_assignment`). If the member is the leader, its
assignor computes the assignment of the whole group (`assign`).

Source   org.apache.kafka.clients.consumer.ConsumerPartitionAssignor (Kafka 4.4.0).
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Protocol, runtime_checkable

from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.spec import GroupSpec


class RebalanceProtocol(Enum):
    """EAGER members revoke all partitions before they join; COOPERATIVE members keep them."""

    EAGER = 0
    COOPERATIVE = 1


@runtime_checkable
class Assignor(Protocol):
    """The methods and properties of an assignor. `register` makes a custom assignor known.

    A class that derives from this one must define `name` and `assign`. The defaults of the other
    methods are those of an eager assignor without user data, such as Kafka's `range`.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """Returns the name by which members list the assignor in JoinGroup."""

    @property
    def version(self) -> int:
        """Returns the version of the assignor: 0 for Kafka's own."""
        return 0

    @property
    def supported_protocols(self) -> Sequence[RebalanceProtocol]:
        """Returns the rebalance protocols that the assignor supports."""
        return (RebalanceProtocol.EAGER,)

    def subscription_user_data(self, topics: Iterable[str]) -> bytes | None:
        """Returns the user data that the member sends when it joins with a subscription to
        `topics`; None (the default) for no user data.
        """
        return None

    @abstractmethod
    def assign(self, group: GroupSpec) -> Mapping[str, Sequence[TopicPartition]]:
        """Returns the partitions of each member, as TopicPartition or pairs (topic, partition).

        A member without an entry gets none.
        """

    def on_assignment(self, assignment: Sequence[TopicPartition], generation_id: int) -> None:
        """Receives the member's new assignment and its generation. The default does nothing."""
        return  # type checkers take an empty body for an abstract method
