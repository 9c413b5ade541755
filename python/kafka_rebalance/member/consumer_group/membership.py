# SPDX-License-Identifier: Apache-2.0
"""Holds the state of a member of a consumer group, with the actions that several steps need.

The client has two threads. The application's thread polls and runs the callbacks; the background
thread sends heartbeats, and keeps sending them while a callback runs. So a callback that is due
waits in `callbacks` for the next poll; `running` is the callback that the application runs now.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, field
from enum import Enum, auto
from typing import NamedTuple

from kafka_rebalance.frozen import Mutable
from kafka_rebalance.group.model import TopicPartition, id_text
from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.member.interface import Partitions
from kafka_rebalance.wire.broker_groups import (
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    ConsumerGroupHeartbeat,
    TopicPartitions,
)
from kafka_rebalance.wire.classic_groups import FindCoordinator

from ..config import LIBRDKAFKA, ConsumerConfig
from ..interface import Assigned, Lost, Revoked
from ..membership import AnyMembership, SentRequest
from ..states import CONSUMER_LEGAL_PREDECESSORS, ConsumerMemberState

_NO_EPOCH = -1


class LocalAssignment(NamedTuple):
    """An assignment as sent by the coordinator, or as applied: sorted partitions by topic id.

    `epoch` is a counter of the client, which grows with each assignment that differs from the
    previous one. So the member also acknowledges a new assignment that equals the one it last
    applied.

    Source   AbstractMembershipManager.LocalAssignment (Kafka 4.4.0).
    """

    epoch: int
    partitions: Mapping[Uuid, tuple[int, ...]]

    @property
    def is_none(self) -> bool:
        """Returns whether no assignment has come yet, which differs from an empty assignment."""
        return self.epoch == _NO_EPOCH

    def updated(self, assigned: Iterable[TopicPartitions]) -> "LocalAssignment":
        """Returns an assignment with these partitions; this object if its partitions are equal."""
        partitions = {one.topic_id: tuple(sorted(one.partitions)) for one in assigned}
        if not self.is_none and partitions == self.partitions:
            return self
        return LocalAssignment(self.epoch + 1, partitions)

    def resolved(self, names: Mapping[Uuid, str]) -> "LocalAssignment":
        known = {topic: numbers for topic, numbers in self.partitions.items() if topic in names}
        return LocalAssignment(self.epoch, known)

    def named(self, names: Mapping[Uuid, str]) -> Partitions:
        there = self.partitions.items()
        pairs = ((names[topic], number) for topic, numbers in there for number in numbers)
        return tuple(TopicPartition(*pair) for pair in sorted(pairs))

    def sent(self) -> tuple[TopicPartitions, ...]:
        return tuple(TopicPartitions(*one) for one in self.partitions.items())


NO_ASSIGNMENT = LocalAssignment(_NO_EPOCH, {})


class Purpose(Enum):
    """The reason for a callback; it decides what follows when the callback has returned."""

    REVOKE = auto()  # a reconciliation revokes partitions; it then assigns others
    ASSIGN = auto()  # a reconciliation assigns partitions, which the member then acknowledges
    RELEASE = auto()  # partitions are lost, because the member is no longer in the group


class Callback(NamedTuple):
    """A call to the application's listener."""

    effect: Revoked | Assigned | Lost
    purpose: Purpose


class LocalReconciliation(Mutable):
    """The assignment that is being applied, from the commit to the acknowledgement."""

    assignment: LocalAssignment
    owned: tuple[TopicPartition, ...]
    revoked: tuple[TopicPartition, ...]
    added: tuple[TopicPartition, ...]
    until_ms: int  # from this time on, a failed commit is not retried
    commit: SentRequest | None = None
    commit_at_ms: int | None = None  # when the commit must be sent
    commit_failures: int = 0
    is_void: bool = False  # the member has joined again since the reconciliation began
    has_revoked: bool = False  # onPartitionsRevoked has returned


class SentFields(Mutable):
    """The values that were last sent; after an error, all are None, so that all are sent again."""

    rebalance_timeout_ms: int | None = None
    topics: frozenset[str] | None = None
    pattern: str | None = None
    assignor: str | None = None
    assignment: LocalAssignment | None = None


class AsyncMembership(AnyMembership):
    """The state of a member of a consumer group."""

    config: ConsumerConfig
    member_id: str = ""
    member_epoch: int = 0
    _: KW_ONLY
    legal_predecessors = CONSUMER_LEGAL_PREDECESSORS
    state: ConsumerMemberState = ConsumerMemberState.UNSUBSCRIBED
    # The subscription, and the topics that the client knows.
    subscription: frozenset[str] = frozenset()
    pattern: str | None = None
    is_subscription_new: bool = False
    topics: dict[Uuid, str] = field(default_factory=dict)
    # The assignment.
    names: dict[Uuid, str] = field(default_factory=dict)  # names of assigned topics
    target: LocalAssignment = NO_ASSIGNMENT
    current: LocalAssignment = NO_ASSIGNMENT
    owned_partitions: Partitions = ()
    reconciliation: LocalReconciliation | None = None
    callbacks: deque[Callback] = field(default_factory=deque)
    callbacks_in_poll: int = 0  # how many callbacks the last poll still has to run
    running: Callback | None = None
    rejoins_when_released: bool = False
    # Commits.
    positions: dict[TopicPartition, int] = field(default_factory=dict)
    commit_at_ms: int = 0
    # Requests and timers.
    find_at_ms: int = 0
    find_failures: int = 0
    sent_fields: SentFields = field(default_factory=SentFields)
    heartbeat_interval_ms: int = 0  # set by the coordinator
    heartbeat_at_ms: int = 0
    heartbeat_failures: int = 0
    retry_at_ms: int = 0  # end of the back-off after an error: no regular heartbeat before it

    def __post_init__(self) -> None:
        # The client chooses its random id once, and keeps it across all joins.
        drawn = self.rng.getrandbits(128).to_bytes(16, "big")
        self.member_id = self.member_id or id_text(drawn)

    @property
    def is_librdkafka(self) -> bool:
        return self.config.client_library == LIBRDKAFKA

    @property
    def leave_epoch(self) -> int:
        is_dynamic = self.config.group_instance_id is None
        return LEAVE_EPOCH if is_dynamic else LEAVE_STATIC_EPOCH

    def heartbeat_in_flight(self) -> bool:
        return any(
            isinstance(one.request, ConsumerGroupHeartbeat) and not one.is_ignored
            for one in self.sent.values()
        )

    def forget_coordinator(self) -> None:
        """Drops the coordinator, and all requests to it, which will stay unanswered."""
        self.coordinator_node = None
        for number, one in list(self.sent.items()):
            if not isinstance(one.request, FindCoordinator):
                del self.sent[number]
        commit = self.reconciliation
        if commit is not None and commit.commit is not None:
            commit.commit, commit.commit_at_ms = None, self.now_ms

    def join(self) -> None:
        if self.state is ConsumerMemberState.FATAL:
            return
        if self.reconciliation is not None:
            self.reconciliation.is_void = True
        self.member_epoch = 0
        self.move(ConsumerMemberState.JOINING)
        self.target = NO_ASSIGNMENT
        self.names.clear()

    def clear_assignment(self) -> None:
        self.owned_partitions = ()
        self.current = self.target = NO_ASSIGNMENT
        self.names.clear()

    def lose(self) -> None:
        """Queues onPartitionsLost for the next poll; without partitions, goes on at once."""
        if self.owned_partitions:
            self.callbacks.append(Callback(Lost(self.owned_partitions), Purpose.RELEASE))
        else:
            self.released()

    def released(self) -> None:
        """Continues after a loss: a fenced member rejoins, a stale member only after a poll."""
        self.clear_assignment()
        is_stale = self.state is ConsumerMemberState.STALE
        if self.state is ConsumerMemberState.FENCED or (is_stale and self.rejoins_when_released):
            self.rejoins_when_released = False
            self.join()

    def is_releasing(self) -> bool:
        waiting = [*self.callbacks, *([] if self.running is None else [self.running])]
        return any(one.purpose is Purpose.RELEASE for one in waiting)
