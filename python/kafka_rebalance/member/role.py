# SPDX-License-Identifier: Apache-2.0
"""The steps that consumers and Connect workers do differently; they share all other steps.

    Subscriber   a consumer: topics, an assignor, callbacks (subscriber.py)
    Herder       a Connect worker: connectors and tasks, a configuration (herder.py)

Source   the abstract methods of AbstractCoordinator, which ConsumerCoordinator and
         WorkerCoordinator implement (Kafka 4.4.0).
"""

from typing import TYPE_CHECKING, Protocol

from kafka_rebalance.wire.classic_groups import JoinGroupProtocol, JoinGroupResponse
from kafka_rebalance.wire.messages import Response

if TYPE_CHECKING:
    from .membership import Membership, SentRequest

Shares = tuple[tuple[str, bytes], ...]  # (member id, its assignment in bytes)


class Role(Protocol):
    """`joining`, `answers` and `group_member` call these methods in the steps of a rebalance."""

    protocol_type: str

    @property
    def is_pending_revocation(self) -> bool:
        """Returns whether `prepare` waits before a revocation; poll then returns no records."""

    def wants_in(self) -> bool:
        """Returns whether the member wants to be in a group."""

    def has_news(self, state: "Membership") -> bool:
        """Returns whether the role has a reason to join again."""

    def prepare(self, state: "Membership") -> bool:
        """Does the work of onJoinPrepare; returns False while it has to wait."""

    def prepares_until_ms(self, state: "Membership") -> int | None:
        """Returns when the wait of `prepare` ends; None if it does not wait."""

    def protocols(self, state: "Membership") -> tuple[JoinGroupProtocol, ...]:
        """Returns the supported protocols, preferred first, each with the member's metadata."""

    def lead(self, state: "Membership", response: JoinGroupResponse) -> Shares:
        """Returns all members' assignments (onLeaderElected). Errors: KafkaRebalanceError."""

    def take(self, state: "Membership", assignment: bytes) -> None:
        """Applies the assignment (onJoinComplete). Errors: WireError, before any change."""

    def settle(self, state: "Membership") -> None:
        """Does the role's work while no join is in progress."""

    def next_settle_ms(self, state: "Membership") -> int | None:
        """Returns when `settle` will have work to do; None if it has none."""

    def answered(self, state: "Membership", sent: "SentRequest", response: Response) -> None:
        """Handles the response to a request that the role sent."""

    def give_up(self, state: "Membership") -> None:
        """Gives up the member's work before it leaves the group (onLeavePrepare)."""
