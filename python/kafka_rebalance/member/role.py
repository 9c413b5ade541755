# SPDX-License-Identifier: Apache-2.0
"""What a kind of member does in its own way; everything else is the group protocol's.

    Subscriber   a consumer: topics, an assignor, callbacks (subscriber.py)
    Herder       a Connect worker: connectors and tasks, a configuration (herder.py)

Source   the abstract methods of AbstractCoordinator, which ConsumerCoordinator and
         WorkerCoordinator implement (Kafka 4.4.0).
"""

from typing import TYPE_CHECKING, Protocol

from kafka_rebalance import protocol

if TYPE_CHECKING:
    from .membership import Membership, SentRequest

Shares = tuple[tuple[str, bytes], ...]  # (member id, its assignment in bytes)


class Role(Protocol):
    """Each method is called by the step of the same name in `joining` and `answers`."""

    protocol_type: str

    @property
    def is_pending_revocation(self) -> bool:
        """Whether `prepare` waits, and poll has nothing to return meanwhile."""

    def wants_in(self) -> bool:
        """Whether it wants to be in a group at all."""

    def has_news(self, state: "Membership") -> bool:
        """Whether something of its own makes it join again."""

    def prepare(self, state: "Membership") -> bool:
        """onJoinPrepare; False while it waits for something."""

    def prepares_until_ms(self, state: "Membership") -> int | None:
        """Until when `prepare` waits; None where it does not."""

    def protocols(self, state: "Membership") -> tuple[protocol.JoinGroupProtocol, ...]:
        """What it supports, preferred first, each with what it has to say."""

    def lead(self, state: "Membership", response: protocol.JoinGroupResponse) -> Shares:
        """onLeaderElected: everybody's share. Errors: KafkaRebalanceError."""

    def take(self, state: "Membership", assignment: bytes) -> None:
        """onJoinComplete."""

    def settle(self, state: "Membership") -> None:
        """What is left to do when no join is under way."""

    def next_settle_ms(self, state: "Membership") -> int | None:
        """From when on `settle` would do something; None for never."""

    def answered(
        self, state: "Membership", sent: "SentRequest", response: protocol.Response
    ) -> None:
        """The answer to a request that it has sent itself."""

    def give_up(self, state: "Membership") -> None:
        """onLeavePrepare: before it leaves the group."""
