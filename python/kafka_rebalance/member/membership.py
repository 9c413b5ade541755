# SPDX-License-Identifier: Apache-2.0
"""A group member's state, with the actions that several steps need, such as send and reset."""

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, field
from itertools import count
from typing import Any, ClassVar, NamedTuple

from kafka_rebalance.frozen import Mutable
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.wire.classic_groups import (
    NO_GENERATION,
    FindCoordinator,
    JoinGroup,
    JoinGroupProtocol,
    JoinGroupResponse,
    LeaveGroup,
    MemberIdentity,
    SyncGroup,
)
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import Request
from kafka_rebalance.wire.offsets import OffsetCommit, OffsetCommitResponse, OffsetToCommit

from .config import GroupConfig
from .interface import Fatal, MemberEffect, MemberTransition, Send
from .states import LEGAL_PREDECESSORS, AnyState, MemberState

Shares = tuple[tuple[str, bytes], ...]  # (member id, its assignment in bytes)


class Generation(NamedTuple):
    """A member's id and generation; before a join and after a reset, there is no generation."""

    generation_id: int = NO_GENERATION
    member_id: str = ""
    protocol_name: str | None = None

    @property
    def is_known(self) -> bool:
        return self.generation_id != NO_GENERATION and self.member_id != ""


class SentRequest(NamedTuple):
    """An unanswered request, with the classic member's `generation` at the time it was sent."""

    request: Request
    expires_ms: int
    generation: Generation = Generation()
    is_ignored: bool = False  # the response to the heartbeat of a STALE member is ignored


class AnyMembership(Mutable):
    """The state that members of both protocols share. `effects` belong to the present event."""

    config: GroupConfig
    rng: random.Random
    _: KW_ONLY
    legal_predecessors: ClassVar[Mapping[Any, frozenset[Any]]]
    state: AnyState
    sent: dict[int, SentRequest] = field(default_factory=dict)
    request_ids: "count[int]" = field(default_factory=lambda: count(1))
    coordinator_node: int | None = None
    generation: Generation = Generation()
    poll_until_ms: int = 0
    now_ms: int = 0
    fatal: Fatal | None = None
    effects: list[MemberEffect] = field(default_factory=list)

    def begin(self, now_ms: int) -> list[MemberEffect]:
        """Begins an event; returns a list for effects. Errors: ValueError if `now_ms` decreases."""
        if now_ms < self.now_ms:
            raise ValueError(f"now_ms: {now_ms} is before {self.now_ms}")
        self.now_ms = now_ms
        self.effects = []
        return self.effects

    def is_waiting_for(self, *kinds: type) -> bool:
        return bool(self.sent) and any(isinstance(one.request, kinds) for one in self.sent.values())

    def expired(self) -> Iterator[SentRequest]:
        """Removes and yields the unanswered requests that have timed out."""
        for number, sent in list(self.sent.items()):
            if sent.expires_ms <= self.now_ms and self.sent.pop(number, None) is not None:
                yield sent

    def send(
        self,
        request: Request,
        timeout_ms: int | None = None,
        api_version: int | None = None,
        *,
        is_ignored: bool = False,
    ) -> SentRequest:
        """Sends a request to the coordinator, or a FindCoordinator to the least loaded node."""
        node = None if isinstance(request, FindCoordinator) else self.coordinator_node
        number = next(self.request_ids)
        expires_ms = self.now_ms + (timeout_ms or self.config.request_timeout_ms)
        sent = SentRequest(request, expires_ms, self.generation, is_ignored)
        self.sent[number] = sent
        self.effects.append(Send(number, node, request, api_version))
        return sent

    def find_coordinator(self) -> None:
        """Sends FindCoordinator, unless one is unanswered."""
        if not self.is_waiting_for(FindCoordinator):
            self.send(FindCoordinator(group_id=self.config.group_id))

    def move(self, state: AnyState) -> None:
        if state is self.state:
            return
        if self.state not in self.legal_predecessors[state]:
            raise AssertionError(f"{self.state} -> {state}")
        self.effects.append(MemberTransition(self.state, state))
        self.state = state

    def send_commit(
        self,
        partitions: Iterable[TopicPartition],
        positions: Mapping[TopicPartition, int],
        member_id: str,
        generation_id: int,
    ) -> SentRequest | None:
        """Commits positions of partitions without waiting; returns None if nothing can be sent."""
        offsets = tuple(
            OffsetToCommit(*one, positions[one]) for one in partitions if one in positions
        )
        if not offsets or self.coordinator_node is None:
            return None
        request = OffsetCommit(
            group_id=self.config.group_id,
            offsets=offsets,
            member_id=member_id,
            generation_id=generation_id,
            group_instance_id=self.config.group_instance_id,
        )
        return self.send(request)

    def backoff_ms(self, failures: int) -> int:
        """Returns the back-off: doubled by each failure, ± 20 %, at most `retry.backoff.max.ms`."""
        most = self.config.retry_backoff_max_ms
        delay = min(self.config.retry_backoff_ms << min(failures, 32), most)
        return min(round(delay * self.rng.uniform(0.8, 1.2)), most)

    def throw(self, error: ErrorCode, message: str) -> None:
        """Makes the current poll throw this error, or the next one if no poll is running."""
        self.fatal = Fatal(error, message)


class Membership(AnyMembership):
    """The state of a member of a classic group, and the steps that consumers and workers do
    differently.

    Source   the abstract methods of AbstractCoordinator, which ConsumerCoordinator and
             WorkerCoordinator implement (Kafka 4.4.0).
    """

    _: KW_ONLY
    legal_predecessors = LEGAL_PREDECESSORS
    protocol_type: ClassVar[str]
    state: MemberState = MemberState.UNJOINED
    is_leader: bool = False
    # The join.
    rejoin_needed: bool = True
    needs_prepare: bool = True
    arrived: bytes | None = None  # an assignment that the next poll will apply
    is_in_poll: bool = False  # the last poll is blocked by a step before the join
    failures: int = 0  # consecutive failed attempts to join
    retry_at_ms: int = 0
    # The coordinator, and timers.
    unknown_since_ms: int | None = None  # when the coordinator was lost
    heartbeat_at_ms: int | None = None
    heartbeat_failures: int = 0  # consecutive failed heartbeats
    session_until_ms: int = 0

    # The steps of a consumer or a worker ----------------------------------------------------------

    @property
    def is_pending_revocation(self) -> bool:
        """Returns whether `prepare` waits before it revokes; poll then returns no records."""
        return False

    def wants_in(self) -> bool:
        """Returns whether the member is to be in a group."""
        raise NotImplementedError

    def has_news(self) -> bool:
        """Returns whether the member needs a rejoin, for example after a changed subscription."""
        raise NotImplementedError

    def prepare(self) -> bool:
        """Does the work of onJoinPrepare; returns False while that waits, as for a commit."""
        raise NotImplementedError

    def prepares_until_ms(self) -> int | None:
        """Returns when (ms) the wait of `prepare` ends; None if it does not wait."""
        return None

    def protocols(self) -> tuple[JoinGroupProtocol, ...]:
        """Returns the supported protocols, preferred first, each with the member's metadata."""
        raise NotImplementedError

    def lead(self, response: JoinGroupResponse) -> Shares:
        """Returns all members' assignments (onLeaderElected). Errors: KafkaRebalanceError."""
        raise NotImplementedError

    def take(self, assignment: bytes) -> None:
        """Applies the assignment (onJoinComplete). Errors: WireError, before any change."""
        raise NotImplementedError

    def settle(self) -> None:
        """Does the regular work, such as automatic commits, while no join is in progress."""
        raise NotImplementedError

    def next_settle_ms(self) -> int | None:
        """Returns when (ms) `settle` will have work to do; None if it will have none."""
        return None

    def commit_answered(self, sent: SentRequest, response: OffsetCommitResponse) -> None:
        """Handles the response to a commit."""

    def give_up(self) -> None:
        """Gives up the partitions or the work before the member leaves (onLeavePrepare)."""
        raise NotImplementedError

    # Actions --------------------------------------------------------------------------------------

    def is_joining(self) -> bool:
        """Returns whether a join is in progress, or its assignment waits for poll."""
        return self.arrived is not None or self.is_waiting_for(JoinGroup, SyncGroup)

    def needs_rejoin(self) -> bool:
        """Returns whether the member is to be in a group, and has a reason to send JoinGroup."""
        return (self.rejoin_needed or self.has_news()) and self.wants_in()

    def is_rebalancing(self) -> bool:
        return self.needs_rejoin() or self.is_joining()

    def find_coordinator(self) -> None:
        """Sends FindCoordinator, unless one is unanswered or the back-off has not ended."""
        if self.now_ms >= self.retry_at_ms:
            super().find_coordinator()

    def forget_coordinator(self) -> None:
        """Drops the coordinator, which was lost or has moved, and the requests to it.

        The next step looks for a coordinator; a join starts again after a back-off.
        """
        if self.coordinator_node is not None:
            self.unknown_since_ms = self.now_ms
        self.coordinator_node = None
        for number, one in list(self.sent.items()):
            if isinstance(one.request, FindCoordinator):
                continue
            del self.sent[number]
            if isinstance(one.request, JoinGroup | SyncGroup):
                self.rejoin_needed = True
                self.back_off()

    def move(self, state: AnyState) -> None:
        """Changes the state; stops heartbeats if the new state has none."""
        super().move(state)
        if state in (MemberState.UNJOINED, MemberState.PREPARING_REBALANCE):
            self.heartbeat_at_ms = None

    def start_heartbeats(self) -> None:
        self.heartbeat_at_ms = self.now_ms + self.config.heartbeat_interval_ms
        self.session_until_ms = self.now_ms + self.config.session_timeout_ms
        self.poll_until_ms = self.now_ms + self.config.rebalance_timeout_ms

    def reset(self, *, keep_id: bool) -> None:
        """Drops the generation; a consumer loses its partitions before its next join."""
        self.generation = Generation(member_id=self.generation.member_id if keep_id else "")
        self.move(MemberState.UNJOINED)
        self.arrived = None
        self.rejoin_needed = True
        self.needs_prepare = True

    def back_off(self) -> None:
        self.retry_at_ms = self.now_ms + self.backoff_ms(self.failures)
        self.failures += 1

    def fail_heartbeat(self) -> None:
        """Schedules the next heartbeat after a back-off, instead of a heartbeat interval."""
        if self.heartbeat_at_ms is not None:
            self.heartbeat_at_ms = self.now_ms + self.backoff_ms(self.heartbeat_failures)
            self.heartbeat_failures += 1

    def leave(self) -> None:
        """Leaves without waiting for the response; a static member does not send LeaveGroup."""
        config, member_id = self.config, self.generation.member_id
        if (
            config.group_instance_id is None
            and self.coordinator_node is not None
            and self.state is not MemberState.UNJOINED
            and member_id
        ):
            self.send(LeaveGroup(group_id=config.group_id, members=(MemberIdentity(member_id),)))
        for number, one in list(self.sent.items()):
            if isinstance(one.request, JoinGroup | SyncGroup):
                del self.sent[number]  # the response no longer matters
        self.reset(keep_id=False)
