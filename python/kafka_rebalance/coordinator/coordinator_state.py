# SPDX-License-Identifier: Apache-2.0
"""All that a coordinator knows, and the four things that a step may do: answer, append, arm, move.

The steps themselves are in `join_group`, `sync_group`, `rebalance`, …; each takes this first.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import count
from typing import NamedTuple

from kafka_rebalance.protocol.group_state import GroupState
from kafka_rebalance.protocol.messages import (
    JoinGroupResponse,
    Request,
    Response,
    SyncGroupResponse,
)

from .config import CoordinatorConfig
from .deadlines import DeadlineKey, Deadlines
from .group import Group
from .interface import Append, Drop, Effect, LogRecord, Respond, Transition
from .members import ClassicGroupMember
from .offsets import GroupOffsets, OffsetChange, Offsets, OffsetValue


class Ownership(Enum):
    """Whether this broker coordinates the groups at all."""

    LOADING = "loading"
    ACTIVE = "active"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class StoreAssignment:
    """After the append: the leader's assignment is everybody's, and the group Stable."""

    group: Group
    generation_id: int
    assignment: dict[str, bytes]


@dataclass(frozen=True, slots=True)
class ReplaceStatic:
    """After the append: a static member has a new id (`before` is how it was), no rebalance."""

    group: Group
    before: ClassicGroupMember
    old_leader: str | None
    request_id: int
    knows_skipping: bool


@dataclass(frozen=True, slots=True)
class SendResponse:
    """After the append: the response, or a refusal of the request."""

    request_id: int
    response: Response
    request: Request


Continuation = StoreAssignment | ReplaceStatic | SendResponse | None


class Created(NamedTuple):
    """A group that is not in the log yet, and what offsets of its name were there before it."""

    group: Group
    before: frozenset[OffsetValue]

    def is_of(self, group_id: str, offsets: GroupOffsets) -> bool:
        """Whether this is still the group that was created, and it has no offsets of its own."""
        return self.group.group_id == group_id and offsets.contents() <= self.before


@dataclass(frozen=True, slots=True)
class Write:
    """An append under way: what follows it, and which groups it brings into the log or removes."""

    then: Continuation
    created: tuple[Created, ...] = ()
    deleted: tuple[Group, ...] = ()


@dataclass(slots=True)
class Waiting:
    """A response that says nothing before the appends that were under way are durable."""

    request: Request
    response: Response
    append_ids: set[int]


@dataclass(slots=True)
class CoordinatorState:
    """`now_ms` is the time of the event at hand, `effects` what it has led to so far.

    A group comes into being with the next append, whatever that is of: until then it is in
    `created`, unseen by those who read the log only, and an append that fails takes it back.
    """

    config: CoordinatorConfig
    new_id: Callable[[], str]
    vouched: bool = False  # the host says who is silent; everybody else is alive
    ownership: Ownership = Ownership.ACTIVE
    groups: dict[str, Group] = field(default_factory=dict)
    created: list[Created] = field(default_factory=list)
    offsets: Offsets = field(default_factory=Offsets)
    deadlines: Deadlines = field(default_factory=Deadlines)
    writes: dict[int, Write] = field(default_factory=dict)
    waiting: dict[int, Waiting] = field(default_factory=dict)
    now_ms: int = 0
    effects: list[Effect] = field(default_factory=list)
    append_ids: "count[int]" = field(default_factory=count)
    answer: SendResponse | None = None  # goes with the next append
    silent: set[tuple[str, str]] = field(default_factory=set)

    def clear(self) -> None:
        """Forgets everything but the settings."""
        self.groups.clear()
        self.created.clear()
        self.offsets = Offsets()
        self.deadlines = Deadlines()
        self.writes.clear()
        self.silent.clear()
        self.waiting.clear()

    # Answer ---------------------------------------------------------------------------------------

    def respond(self, request_id: int, response: Response) -> None:
        """Answers a request."""
        self.effects.append(Respond(request_id, response))

    def respond_when_durable(self, request_id: int, request: Request, response: Response) -> None:
        """Answers a request that saw what is not durable yet: after what is under way."""
        if self.writes:
            self.waiting[request_id] = Waiting(request, response, set(self.writes))
        else:
            self.respond(request_id, response)

    def answer_join(
        self, group: Group, member: ClassicGroupMember, response: JoinGroupResponse
    ) -> None:
        """Answers the member's parked JoinGroup, if there is one."""
        request_id = group.take_join(member)
        if request_id is not None:
            self.respond(request_id, response)

    def answer_sync(self, member: ClassicGroupMember, response: SyncGroupResponse) -> bool:
        """Answers the member's parked SyncGroup; whether there was one."""
        request_id, member.parked_sync = member.parked_sync, None
        if request_id is None:
            return False
        self.respond(request_id, response)
        return True

    def park_join(self, group: Group, member: ClassicGroupMember, request_id: int) -> None:
        """Keeps a JoinGroup; an older one of the member gets no answer any more."""
        replaced = group.park_join(member, request_id)
        if replaced is not None:
            self.effects.append(Drop(replaced))

    def park_sync(self, member: ClassicGroupMember, request_id: int) -> None:
        """Keeps a SyncGroup, likewise."""
        if member.parked_sync is not None:
            self.effects.append(Drop(member.parked_sync))
        member.parked_sync = request_id

    @contextmanager
    def answering(self, request_id: int, request: Request, response: Response) -> Iterator[None]:
        """Answers after the append that the block asks for, if it asks for one."""
        self.answer = SendResponse(request_id, response, request)
        yield
        if self.answer is not None:
            self.answer = None
            self.respond_when_durable(request_id, request, response)

    # Arm ------------------------------------------------------------------------------------------

    def arm_session(self, group: Group, member_id: str, timeout_ms: int) -> None:
        """The member, or pending id, has so long from now."""
        key = DeadlineKey("heartbeat", group.group_id, member_id)
        self.deadlines.arm(key, self.now_ms + timeout_ms)

    def renew_session(self, group: Group, member: ClassicGroupMember) -> None:
        """The member has been heard of."""
        if self.vouched and (group.group_id, member.member_id) not in self.silent:
            self.end_session(group, member.member_id)
        else:
            self.arm_session(group, member.member_id, member.session_timeout_ms)

    def end_session(self, group: Group, member_id: str) -> None:
        """Nobody waits for the id any more."""
        self.deadlines.cancel(DeadlineKey("heartbeat", group.group_id, member_id))

    def arm(self, kind: str, group: Group, delay_ms: int) -> None:
        """The group's `join` or `sync` deadline."""
        self.deadlines.arm(DeadlineKey(kind, group.group_id), self.now_ms + delay_ms)

    def cancel(self, kind: str, group: Group) -> None:
        """Forgets it."""
        self.deadlines.cancel(DeadlineKey(kind, group.group_id))

    # Groups ---------------------------------------------------------------------------------------

    def create(self, group_id: str) -> Group:
        """A new group, Empty; offsets may be left of another one of this name."""
        group = self.groups[group_id] = Group(group_id, self.now_ms)
        there = (self.offsets.durable(group_id), self.offsets.latest(group_id))
        before = frozenset[OffsetValue]().union(*(offsets.contents() for offsets in there))
        self.created.append(Created(group, before))
        return group

    def forget(self, group: Group) -> None:
        """Takes a group out; its deadlines pass without effect, as in Kafka."""
        del self.groups[group.group_id]

    def durable_group(self, group_id: str) -> Group | None:
        """A group as the log has it: there from its first record on, until its tombstone."""
        offsets = self.offsets.durable(group_id)
        for write in self.writes.values():
            if any(one.is_of(group_id, offsets) for one in write.created):
                return None
            for group in write.deleted:
                if group.group_id == group_id:
                    return group
        if any(one.is_of(group_id, offsets) for one in self.created):
            return None
        return self.groups.get(group_id)

    # Move -----------------------------------------------------------------------------------------

    def move(self, group: Group, state: GroupState) -> None:
        """Changes a group's state."""
        before = group.state
        group.transition_to(state, self.now_ms)
        self.effects.append(Transition(group.group_id, before, state, group.generation_id))

    def next_generation(self, group: Group) -> None:
        """Ends a group's join phase."""
        before = group.state
        group.next_generation(self.now_ms)
        self.effects.append(Transition(group.group_id, before, group.state, group.generation_id))

    # Append ---------------------------------------------------------------------------------------

    def append(
        self,
        records: Sequence[LogRecord],
        write: Write,
        changes: Iterable[OffsetChange] = (),
        producer_id: int | None = None,
        committed: bool | None = None,
    ) -> None:
        """Asks for an append; `changes` are what it does to offsets, one a record where any."""
        append_id = next(self.append_ids)
        if self.answer is not None:
            write, self.answer = replace(write, then=self.answer), None
        self.writes[append_id] = replace(write, created=tuple(self.created))
        self.created.clear()
        self.offsets.stage(append_id, tuple(changes))
        self.effects.append(Append(append_id, tuple(records), producer_id, committed))
