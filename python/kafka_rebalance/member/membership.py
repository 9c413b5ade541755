# SPDX-License-Identifier: Apache-2.0
"""Holds a group member's state, with the actions that several steps need, such as send and reset.

`Subscriber` holds the state that only consumers have, `Herder` the state that only workers have.
"""

import random
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from kafka_rebalance.wire.classic_groups import (
    NO_GENERATION,
    FindCoordinator,
    JoinGroup,
    LeaveGroup,
    MemberIdentity,
    SyncGroup,
)
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import Request

from .config import GroupConfig
from .interface import Fatal, MemberEffect, MemberTransition, Send
from .role import Role
from .states import LEGAL_PREDECESSORS, MemberState


@dataclass(frozen=True, slots=True)
class Generation:
    """A member's id and generation; before a join and after a reset, there is no generation."""

    generation_id: int = NO_GENERATION
    member_id: str = ""
    protocol_name: str | None = None

    @property
    def is_known(self) -> bool:
        """Returns whether the member has joined a generation."""
        return self.generation_id != NO_GENERATION and self.member_id != ""


class SentRequest(NamedTuple):
    """An unanswered request, and the generation in which it was sent."""

    request: Request
    generation: Generation
    expires_ms: int


@dataclass(slots=True)
class Membership:
    """A member's state; `effects` are those of the current event."""

    config: GroupConfig
    rng: random.Random
    role: Role
    state: MemberState = MemberState.UNJOINED
    generation: Generation = Generation()
    is_leader: bool = False
    # The join.
    rejoin_needed: bool = True
    needs_prepare: bool = True
    arrived: bytes | None = None  # an assignment that the next poll will apply
    poll_waits: bool = False  # the last poll is blocked by a step before the join
    failures: int = 0  # consecutive failed attempts to join
    retry_at_ms: int = 0
    fatal: Fatal | None = None
    # Requests and timers.
    coordinator_node: int | None = None
    unknown_since_ms: int | None = None  # when the coordinator was lost
    sent: dict[int, SentRequest] = field(default_factory=dict)
    request_ids: "count[int]" = field(default_factory=lambda: count(1))
    heartbeat_at_ms: int | None = None
    heartbeat_failures: int = 0  # consecutive failed heartbeats
    session_until_ms: int = 0
    poll_until_ms: int = 0
    now_ms: int = 0
    effects: list[MemberEffect] = field(default_factory=list)

    def is_waiting_for(self, *kinds: type) -> bool:
        return bool(self.sent) and any(isinstance(one.request, kinds) for one in self.sent.values())

    def is_joining(self) -> bool:
        """Returns whether a join is in progress, or its assignment waits for poll."""
        if self.arrived is not None:
            return True
        return self.is_waiting_for(JoinGroup, SyncGroup)

    def send(
        self, request: Request, timeout_ms: int, api_version: int | None = None
    ) -> SentRequest:
        """Sends a request to the coordinator, or a FindCoordinator to the least loaded node."""
        node = None if isinstance(request, FindCoordinator) else self.coordinator_node
        number = next(self.request_ids)
        sent = SentRequest(request, self.generation, self.now_ms + timeout_ms)
        self.sent[number] = sent
        self.effects.append(Send(number, node, request, api_version))
        return sent

    def find_coordinator(self) -> None:
        """Sends FindCoordinator, unless one is unanswered or the back-off has not ended."""
        if not self.is_waiting_for(FindCoordinator) and self.now_ms >= self.retry_at_ms:
            request = FindCoordinator(group_id=self.config.group_id)
            self.send(request, self.config.request_timeout_ms)

    def forget_coordinator(self) -> None:
        """Drops the coordinator, which is gone or has moved; its requests will stay unanswered.

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

    def move(self, state: MemberState) -> None:
        """Changes the state; stops heartbeats if the new state does not send them."""
        if state is self.state:
            return
        if self.state not in LEGAL_PREDECESSORS[state]:
            raise AssertionError(f"{self.state} -> {state}")
        self.effects.append(MemberTransition(self.state, state))
        self.state = state
        if state in (MemberState.UNJOINED, MemberState.PREPARING_REBALANCE):
            self.heartbeat_at_ms = None

    def start_heartbeats(self) -> None:
        """Restarts the timers of heartbeat, session and poll, because a generation has begun."""
        self.heartbeat_at_ms = self.now_ms + self.config.heartbeat_interval_ms
        self.session_until_ms = self.now_ms + self.config.session_timeout_ms
        self.poll_until_ms = self.now_ms + self.config.rebalance_timeout_ms

    def reset(self, *, keep_id: bool) -> None:
        """Drops the generation; the next poll then loses the owned partitions."""
        member_id = self.generation.member_id if keep_id else ""
        self.generation = Generation(member_id=member_id)
        self.move(MemberState.UNJOINED)
        self.arrived = None
        self.rejoin_needed = True
        self.needs_prepare = True

    def back_off(self) -> None:
        """Delays the next attempt to join by an exponential back-off."""
        self.retry_at_ms = self.now_ms + self._backoff_ms(self.failures)
        self.failures += 1

    def fail_heartbeat(self) -> None:
        """Schedules the next heartbeat after a back-off, instead of a heartbeat interval."""
        if self.heartbeat_at_ms is not None:
            self.heartbeat_at_ms = self.now_ms + self._backoff_ms(self.heartbeat_failures)
            self.heartbeat_failures += 1

    def _backoff_ms(self, failures: int) -> int:
        """Returns the back-off: doubled by each failure, ± 20 %, at most `retry.backoff.max.ms`."""
        most = self.config.retry_backoff_max_ms
        delay = min(self.config.retry_backoff_ms << min(failures, 32), most)
        return min(round(delay * self.rng.uniform(0.8, 1.2)), most)

    def leave(self) -> None:
        """Leaves without waiting for the response; a static member does not send LeaveGroup."""
        config, member_id = self.config, self.generation.member_id
        if (
            config.group_instance_id is None
            and self.coordinator_node is not None
            and self.state is not MemberState.UNJOINED
            and member_id
        ):
            request = LeaveGroup(group_id=config.group_id, members=(MemberIdentity(member_id),))
            self.send(request, config.request_timeout_ms)
        for number, one in list(self.sent.items()):
            if isinstance(one.request, JoinGroup | SyncGroup):
                del self.sent[number]  # the response no longer matters
        self.reset(keep_id=False)

    def throw(self, error: ErrorCode, message: str) -> None:
        """Makes poll throw: the current poll, or the next one if no poll is running."""
        self.fatal = Fatal(error, message)
