# SPDX-License-Identifier: Apache-2.0
"""What every member knows, and what its steps may do to it: send, move, reset, back off.

What only a consumer or only a worker knows is in its role.
"""

import random
from dataclasses import dataclass, field
from itertools import count

from kafka_rebalance.protocol import (
    ErrorCode,
    FindCoordinator,
    JoinGroup,
    LeaveGroup,
    MemberIdentity,
    Request,
    SyncGroup,
)

from .config import GroupConfig
from .interface import Fatal, MemberEffect, MemberTransition, Send
from .role import Role
from .states import LEGAL_PREDECESSORS, MemberState

NO_GENERATION = -1


@dataclass(frozen=True, slots=True)
class Generation:
    """What a member belongs to; an id without a generation has only been handed out."""

    generation_id: int = NO_GENERATION
    member_id: str = ""
    protocol_name: str | None = None

    @property
    def is_known(self) -> bool:
        """Whether the group has taken it in."""
        return self.generation_id != NO_GENERATION and self.member_id != ""


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request without an answer yet, and the generation that it was sent in."""

    request: Request
    generation: Generation
    expires_ms: int


@dataclass(slots=True)
class Membership:
    """`effects` is what the event at hand has led to so far; None stands for "not now"."""

    config: GroupConfig
    rng: random.Random
    role: Role
    state: MemberState = MemberState.UNJOINED
    generation: Generation = Generation()
    is_leader: bool = False
    # The join
    rejoin_needed: bool = True
    needs_prepare: bool = True
    arrived: bytes | None = None  # an assignment that poll has not taken yet
    poll_waits: bool = False  # the last poll has not returned: it waits for what a join needs first
    failures: int = 0  # in a row
    retry_at_ms: int = 0
    fatal: Fatal | None = None
    # Requests and clocks
    coordinator_node: int | None = None
    unknown_since_ms: int | None = None  # since when there has been none, after there was one
    sent: dict[int, SentRequest] = field(default_factory=dict)
    request_ids: "count[int]" = field(default_factory=lambda: count(1))
    heartbeat_at_ms: int | None = None
    session_until_ms: int = 0
    poll_until_ms: int = 0
    now_ms: int = 0
    effects: list[MemberEffect] = field(default_factory=list)

    def is_waiting_for(self, *kinds: type) -> bool:
        """Whether a request of such a kind has no answer yet."""
        return any(isinstance(one.request, kinds) for one in self.sent.values())

    def is_joining(self) -> bool:
        """Whether a join is under way, or its assignment has come."""
        return self.arrived is not None or self.is_waiting_for(JoinGroup, SyncGroup)

    def send(
        self, request: Request, timeout_ms: int, api_version: int | None = None
    ) -> SentRequest:
        """Sends to the coordinator; FindCoordinator goes to the least loaded node."""
        node = None if isinstance(request, FindCoordinator) else self.coordinator_node
        number = next(self.request_ids)
        sent = SentRequest(request, self.generation, self.now_ms + timeout_ms)
        self.sent[number] = sent
        self.effects.append(Send(number, node, request, api_version))
        return sent

    def find_coordinator(self) -> None:
        """Asks once, when the back-off is over."""
        if not self.is_waiting_for(FindCoordinator) and self.now_ms >= self.retry_at_ms:
            request = FindCoordinator(group_id=self.config.group_id)
            self.send(request, self.config.request_timeout_ms)

    def forget_coordinator(self) -> None:
        """It is not there, or not it: what it has not answered it never will.

        The next step looks for it again; a join starts anew, after a while.
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
        """Changes the state; heartbeats stop where there are none."""
        if state is self.state:
            return
        if self.state not in LEGAL_PREDECESSORS[state]:
            raise AssertionError(f"{self.state} -> {state}")
        self.effects.append(MemberTransition(self.state, state))
        self.state = state
        if state in (MemberState.UNJOINED, MemberState.PREPARING_REBALANCE):
            self.heartbeat_at_ms = None

    def start_heartbeats(self) -> None:
        """A generation has come: all three clocks start anew."""
        self.heartbeat_at_ms = self.now_ms + self.config.heartbeat_interval_ms
        self.session_until_ms = self.now_ms + self.config.session_timeout_ms
        self.poll_until_ms = self.now_ms + self.config.rebalance_timeout_ms

    def reset(self, *, keep_id: bool) -> None:
        """The generation is gone: what is owned will be lost at the next poll."""
        member_id = self.generation.member_id if keep_id else ""
        self.generation = Generation(member_id=member_id)
        self.move(MemberState.UNJOINED)
        self.arrived = None
        self.rejoin_needed = True
        self.needs_prepare = True

    def back_off(self) -> None:
        """100 ms, doubled by every failure in a row up to 1 s, with a spread of a fifth."""
        config = self.config
        delay = min(config.retry_backoff_ms * 2**self.failures, config.retry_backoff_max_ms)
        self.failures += 1
        self.retry_at_ms = self.now_ms + round(delay * self.rng.uniform(0.8, 1.2))

    def fail_heartbeat(self) -> None:
        """The next one comes sooner."""
        if self.heartbeat_at_ms is not None:
            delay = round(self.config.retry_backoff_ms * self.rng.uniform(0.8, 1.2))
            self.heartbeat_at_ms = self.now_ms + delay

    def leave(self) -> None:
        """LeaveGroup of a dynamic member, not waited for; a static one just forgets."""
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
                del self.sent[number]  # its answer is of no interest any more
        self.reset(keep_id=False)

    def throw(self, error: ErrorCode, message: str) -> None:
        """What poll throws, now or the next time."""
        self.fatal = Fatal(error, message)
