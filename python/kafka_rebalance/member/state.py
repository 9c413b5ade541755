"""All that a member knows, and what its steps may do to it: send, move, reset, back off."""

import random
from dataclasses import dataclass, field
from itertools import count

from kafka_rebalance.assignors.protocol import Assignor, RebalanceProtocol
from kafka_rebalance.coordinator import (
    ErrorCode,
    FindCoordinator,
    JoinGroup,
    LeaveGroup,
    MemberIdentity,
    OffsetCommit,
    OffsetToCommit,
    Request,
    SyncGroup,
)
from kafka_rebalance.model import Topic, TopicPartition

from .config import ConsumerConfig
from .events import Fatal, MemberEffect, MemberTransition, Partitions, Send
from .leading import Snapshot
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
class Sent:
    """A request without an answer yet, and the generation that it was sent in."""

    request: Request
    generation: Generation
    expires_ms: int


@dataclass(slots=True)
class State:
    """`effects` is what the event at hand has led to so far; None stands for "not now"."""

    config: ConsumerConfig
    rng: random.Random
    assignors: dict[str, Assignor]
    state: MemberState = MemberState.UNJOINED
    generation: Generation = Generation()
    owned: Partitions = ()
    # What it wants, and what the cluster has
    subscription: frozenset[str] = frozenset()
    pattern: str | None = None
    joined_subscription: frozenset[str] | None = None  # what the last JoinGroup said
    topics: dict[str, Topic] = field(default_factory=dict)
    # What a leader watches
    is_leader: bool = False
    group_subscription: frozenset[str] = frozenset()
    assigned_by: Snapshot | None = None
    # The join
    rejoin_needed: bool = True
    needs_prepare: bool = True
    arrived: bytes | None = None  # an assignment that poll has not taken yet
    prepare_until_ms: int | None = None  # a commit before the join is waited for until then
    committed: bool = False  # that commit has ended
    failures: int = 0  # in a row
    retry_at_ms: int = 0
    fatal: Fatal | None = None
    # Requests and clocks
    coordinator_node: int | None = None
    sent: dict[int, Sent] = field(default_factory=dict)
    request_ids: "count[int]" = field(default_factory=lambda: count(1))
    heartbeat_at_ms: int | None = None
    session_until_ms: int = 0
    poll_until_ms: int = 0
    commit_at_ms: int = 0
    positions: dict[TopicPartition, int] = field(default_factory=dict)
    now_ms: int = 0
    effects: list[MemberEffect] = field(default_factory=list)

    @property
    def is_cooperative(self) -> bool:
        """Whether it keeps reading while the group rebalances (KIP-429)."""
        return self.config.rebalance_protocol() is RebalanceProtocol.COOPERATIVE

    def is_waiting_for(self, *kinds: type) -> bool:
        """Whether a request of such a kind has no answer yet."""
        return any(isinstance(one.request, kinds) for one in self.sent.values())

    def is_joining(self) -> bool:
        """Whether a join is under way, or its assignment has come."""
        return self.arrived is not None or self.is_waiting_for(JoinGroup, SyncGroup)

    def send(self, request: Request, timeout_ms: int, api_version: int | None = None) -> None:
        """Sends to the coordinator; FindCoordinator goes to the least loaded node."""
        node = None if isinstance(request, FindCoordinator) else self.coordinator_node
        number = next(self.request_ids)
        self.sent[number] = Sent(request, self.generation, self.now_ms + timeout_ms)
        self.effects.append(Send(number, node, request, api_version))

    def find_coordinator(self) -> None:
        """Asks once, when the back-off is over."""
        if not self.is_waiting_for(FindCoordinator) and self.now_ms >= self.retry_at_ms:
            request = FindCoordinator(group_id=self.config.group_id)
            self.send(request, self.config.request_timeout_ms)

    def forget_coordinator(self) -> None:
        """It is not there, or not it: the next step looks for it again."""
        self.coordinator_node = None

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
        self.poll_until_ms = self.now_ms + self.config.max_poll_interval_ms

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

    def commit(self) -> bool:
        """Sends the positions of what is owned, asynchronously; whether there were any."""
        offsets = tuple(
            OffsetToCommit(one.topic, one.partition, self.positions[one])
            for one in self.owned
            if one in self.positions
        )
        if not offsets or self.coordinator_node is None:
            return False
        request = OffsetCommit(
            group_id=self.config.group_id,
            offsets=offsets,
            member_id=self.generation.member_id,
            generation_id=self.generation.generation_id,
            group_instance_id=self.config.group_instance_id,
        )
        self.send(request, self.config.request_timeout_ms)
        return True

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
