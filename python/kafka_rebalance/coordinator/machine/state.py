# SPDX-License-Identifier: Apache-2.0
"""Holds a coordinator's state, with the actions that several steps need: respond, append, arm.

The steps are functions in `join_group`, `rebalance`, `kind`, …; the state is their first argument.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from kafka_rebalance.frozen import Frozen, Mutable
from kafka_rebalance.group.model import id_text
from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.wire.classic_groups import DeleteGroups, JoinGroupResponse, SyncGroupResponse
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import GroupState, Request, Response
from kafka_rebalance.wire.offsets import CommitRequest, OffsetDelete, OffsetFetch, OffsetToCommit

from ..broker_assigned.group import AssigningGroup
from ..classic_group.group import ClassicGroupMember, Group
from ..config import CoordinatorConfig
from ..offsets.store import GroupOffsets, OffsetChange, Offsets, OffsetValue
from .cluster import ClusterTopics
from .deadlines import INITIAL_REBALANCE, DeadlineKey, Deadlines
from .events import (
    Answer,
    Append,
    Continuation,
    Drop,
    Effect,
    LogRecord,
    Received,
    Respond,
    Transition,
)

if TYPE_CHECKING:
    from kafka_rebalance.wire.broker_records import BrokerRecord


class Ownership(Enum):
    """Whether the broker loads the groups' log, coordinates the groups, or no longer does so."""

    LOADING = "loading"
    ACTIVE = "active"
    GONE = "gone"


AnyGroup = Group | AssigningGroup[Any, Any]
Groups = MutableMapping[str, AnyGroup]
_Kind = TypeVar("_Kind")


def of_kind(group: AnyGroup | None, kind: type[_Kind]) -> _Kind | None:
    """Returns the group if it is of this kind; else None."""
    return group if isinstance(group, kind) else None


class Created(NamedTuple):
    """A group whose first record is not durable yet. `before` holds older offsets under its id."""

    group: Group
    before: frozenset[OffsetValue]

    def is_of(self, group_id: str, offsets: GroupOffsets) -> bool:
        """Returns whether the group has this id, and all `offsets` are older than the group."""
        return self.group.group_id == group_id and offsets.contents() <= self.before


class Write(Frozen):
    """An append in flight: the action after it, and the groups that it creates or deletes.

    `batch` holds the records that changed the broker-assigned group `group_id` at `now_ms`;
    `after` is the classic group that has already replaced that group.
    """

    then: Continuation | None
    created: tuple[Created, ...] = ()
    deleted: tuple[AnyGroup, ...] = ()
    group_id: str | None = None
    batch: "tuple[BrokerRecord, ...]" = ()
    after: Group | None = None
    now_ms: int = 0

    def buried(self) -> list[AnyGroup]:
        """Returns the groups that the append deletes, without those that it also creates."""
        created = [one.group for one in self.created]
        return [group for group in self.deleted if not any(group is one for one in created)]


class Waiting(NamedTuple):
    """A response that is held back until all appends in `append_ids` have a result."""

    then: Answer
    append_ids: set[int]


class Shard(Mutable):
    """A coordinator's state. `now_ms` and `effects` belong to the event that is being handled.

    Kafka's GroupCoordinatorShard, too, holds the groups of one partition of `__consumer_offsets`.

    A new group is in `created` until the next append, whatever that append contains. Requests that
    read only durable groups see the group when this append is durable. If the append fails, the
    group is removed, unless it has newer offsets.

    While appends of a broker-assigned group are in flight, `durable` holds the group as it is
    in the log; None if the log lacks it. `revocations` holds the member epoch for which each
    rebalance timeout was armed.
    """

    config: CoordinatorConfig  # for groups that have no settings of their own
    new_id: Callable[[], str]
    kinds: Mapping[str, "GroupKind"] = field(default_factory=dict)
    vouched: bool = False  # the host reports silent members; other members are alive
    is_logged: bool = True  # if False, the records of classic groups are empty
    ownership: Ownership = Ownership.ACTIVE
    groups: dict[str, AnyGroup] = field(default_factory=dict)
    durable: dict[str, AnyGroup | None] = field(default_factory=dict)
    cluster: ClusterTopics = field(default_factory=ClusterTopics)
    revocations: dict[DeadlineKey, int] = field(default_factory=dict)
    resolving: set[str] = field(default_factory=set)  # groups whose PatternsDue the host still has
    created: list[Created] = field(default_factory=list)
    removed: list[AnyGroup] = field(default_factory=list)  # groups removed since the last append
    offsets: Offsets = field(default_factory=Offsets)
    deadlines: Deadlines = field(default_factory=Deadlines)
    writes: dict[int, Write] = field(default_factory=dict)
    waiting: dict[int, Waiting] = field(default_factory=dict)
    now_ms: int = 0
    effects: list[Effect] = field(default_factory=list)
    num_appends: int = 0  # the id of the next Append
    num_failed: int = 0  # appends that have failed
    answer: Answer | None = None  # the response to send after the next append
    silent: set[tuple[str, str]] = field(default_factory=set)
    group_configs: dict[str, CoordinatorConfig] = field(default_factory=dict)

    def config_of(self, group_id: str) -> CoordinatorConfig:
        return self.group_configs.get(group_id, self.config)

    def clear(self) -> None:
        """Drops all groups, offsets, deadlines, appends in flight and waiting responses."""
        for one in (self.groups, self.durable, self.revocations, self.writes, self.waiting):
            one.clear()
        for several in (self.resolving, self.created, self.removed, self.silent):
            several.clear()
        self.offsets, self.deadlines = Offsets(), Deadlines()

    @property
    def log_epoch(self) -> int:
        """Returns the epoch of the hash maps' snapshots: the number of appends without failure."""
        return self.num_appends - self.num_failed

    def new_member_id(self) -> str:
        """Returns a new id in the form that brokers make: a UUID in 22 characters of base64."""
        return id_text(bytes.fromhex(self.new_id().replace("-", "")))

    # Answer ---------------------------------------------------------------------------------------

    def respond(self, request_id: int, response: Response) -> None:
        self.effects.append(Respond(request_id, response))

    def answer_when_durable(self, then: Answer) -> None:
        """Answers when all appends in flight, on which the response may depend, have a result."""
        if self.writes:
            self.waiting[then.request_id] = Waiting(then, set(self.writes))
        else:
            then.done(self)

    def answer_join(
        self, group: Group, member: ClassicGroupMember, response: JoinGroupResponse
    ) -> None:
        request_id = group.take_join(member)
        if request_id is not None:
            self.respond(request_id, response)

    def answer_sync(self, member: ClassicGroupMember, response: SyncGroupResponse) -> bool:
        """Answers the member's parked SyncGroup; returns whether there was one."""
        request_id, member.parked_sync = member.parked_sync, None
        if request_id is None:
            return False
        self.respond(request_id, response)
        return True

    def refuse_parked(
        self, group: Group, member: ClassicGroupMember, error: ErrorCode, member_id: str = ""
    ) -> None:
        """Refuses the member's parked SyncGroup and JoinGroup, the latter with `member_id`."""
        self.answer_join(group, member, JoinGroupResponse(error_code=error, member_id=member_id))
        self.answer_sync(member, SyncGroupResponse(error_code=error))

    def park_join(self, group: Group, member: ClassicGroupMember, request_id: int) -> None:
        """Parks a JoinGroup; an older parked JoinGroup of the member is dropped."""
        replaced = group.park_join(member, request_id)
        if replaced is not None:
            self.effects.append(Drop(replaced))

    def park_sync(self, member: ClassicGroupMember, request_id: int) -> None:
        """Parks a SyncGroup; an older parked SyncGroup of the member is dropped."""
        if member.parked_sync is not None:
            self.effects.append(Drop(member.parked_sync))
        member.parked_sync = request_id

    @contextmanager
    def answering(self, request_id: int, request: Request, response: Response) -> Iterator[None]:
        """Sends the response when the append of the `with` block, if any, is durable."""
        then = self.answer = Answer(request_id, response, request)
        yield
        if self.answer is not None:
            self.answer = None
            self.answer_when_durable(then)

    # Arm ------------------------------------------------------------------------------------------

    def arm_session(self, group: Group, member_id: str, timeout_ms: int) -> None:
        """Arms the session of a member or pending id to expire `timeout_ms` from now."""
        key = DeadlineKey("heartbeat", group.group_id, member_id)
        self.deadlines.arm(key, self.now_ms + timeout_ms)

    def renew_session(self, group: Group, member: ClassicGroupMember) -> None:
        key = DeadlineKey("heartbeat", group.group_id, member.member_id)
        self.start_session(key, member.session_timeout_ms)

    def start_session(self, key: DeadlineKey, timeout_ms: int) -> None:
        """Arms a member's session to expire, unless the host vouches for the member."""
        if self.vouched and (key.group_id, key.member_id) not in self.silent:
            self.deadlines.cancel(key)
        else:
            self.deadlines.arm(key, self.now_ms + timeout_ms)

    def end_session(self, group: Group, member_id: str) -> None:
        self.deadlines.cancel(DeadlineKey("heartbeat", group.group_id, member_id))

    def arm(self, kind: str, group: Group, delay_ms: int) -> None:
        """Arms the group's `join` or `sync` deadline."""
        self.deadlines.arm(DeadlineKey(kind, group.group_id), self.now_ms + delay_ms)

    def cancel(self, kind: str, group: Group) -> None:
        self.deadlines.cancel(DeadlineKey(kind, group.group_id))

    # Groups ---------------------------------------------------------------------------------------

    def create(self, group_id: str) -> Group:
        """Returns a new Empty group; offsets of an older group with this id may still exist."""
        group = self.groups[group_id] = Group(group_id, self.now_ms)
        there = (self.offsets.durable(group_id), self.offsets.latest(group_id))
        before = frozenset[OffsetValue]().union(*(offsets.contents() for offsets in there))
        self.created.append(Created(group, before))
        return group

    def classic(self, group_id: str) -> Group | None:
        """Returns the classic group with this id; None if there is none."""
        return of_kind(self.groups.get(group_id), Group)

    def kind(self, group: AnyGroup) -> "GroupKind":
        """Returns the object with the functions that differ between kinds of groups."""
        return self.kinds[group.group_type]

    def forget(self, group: AnyGroup) -> None:
        """Removes a group; as in Kafka, deadlines stay armed, except a streams group's delay."""
        del self.groups[group.group_id]
        if group.delays_first_targets:
            self.deadlines.cancel(DeadlineKey(INITIAL_REBALANCE, group.group_id))

    def remove(self, group: AnyGroup) -> None:
        """Removes a group without a record; the removal is durable when the next append is."""
        self.forget(group)
        self.removed.append(group)

    def durable_group(self, group_id: str) -> AnyGroup | None:
        """Returns the group; None if its first record is not durable yet, or if its tombstone is
        durable already.
        """
        offsets = self.offsets.durable(group_id)
        for write in self.writes.values():
            for group in write.buried():
                if group.group_id == group_id:
                    return group
            if any(one.is_of(group_id, offsets) for one in write.created):
                return None
            if write.group_id == group_id:  # the oldest append in flight decides
                return self.durable[group_id]
        for group in self.removed:
            if group.group_id == group_id:
                return group
        if any(one.is_of(group_id, offsets) for one in self.created):
            return None
        if group_id in self.durable:
            return self.durable[group_id]
        return self.groups.get(group_id)

    # Move -----------------------------------------------------------------------------------------

    def move(self, group: Group, state: GroupState) -> None:
        before = group.state
        group.transition_to(state, self.now_ms)
        self.effects.append(Transition(group.group_id, before, state, group.generation_id))

    def next_generation(self, group: Group) -> None:
        before = group.state
        group.next_generation(self.now_ms)
        self.effects.append(Transition(group.group_id, before, group.state, group.generation_id))

    # Append ---------------------------------------------------------------------------------------

    def record(self, make: Callable[..., LogRecord], *of: Any) -> LogRecord:
        return make(*of) if self.is_logged else LogRecord(b"", b"")

    def append(
        self,
        records: Sequence[LogRecord],
        write: Write,
        changes: Iterable[OffsetChange] = (),
        producer_id: int | None = None,
        committed: bool | None = None,
    ) -> None:
        """Appends `records`, or a marker if `committed` is set; with neither, only responds.

        `changes` are the changes to offsets that are staged until the append is durable.
        """
        if not records and committed is None:
            if isinstance(write.then, Answer):
                self.answer_when_durable(write.then)
            return
        append_id = self.num_appends
        log_epoch = self.log_epoch
        self.num_appends += 1
        if self.answer is not None:
            write, self.answer = replace(write, then=self.answer), None
        if self.created or self.removed:
            deleted = (*write.deleted, *self.removed)
            write = replace(write, created=tuple(self.created), deleted=deleted)
            self.created.clear()
            self.removed.clear()
        self.writes[append_id] = write
        self.offsets.stage(append_id, tuple(changes), log_epoch)
        self.effects.append(Append(append_id, tuple(records), producer_id, committed))


Handler = Callable[[Shard, Received, Any, Any], None]


class GroupKind:
    """The functions that differ between kinds of groups; a `group` is always one of this kind."""

    start_members: Callable[[Shard, Any], None]
    """Arms the deadlines of the members of a group that was loaded."""
    fall_silent: Callable[[Shard, Any, str, int], None]
    """Starts the session timeout of a silent member; the last argument is its start in ms."""
    deadline: Callable[[Shard, Any, DeadlineKey], None]
    """Handles a passed deadline; deadlines that only other kinds of groups have are ignored."""
    tombstones: Callable[[Any], list[LogRecord]]
    """Returns the records that remove a group, without those of its offsets."""
    replay: "Callable[[Groups, BrokerRecord, int], None]"
    """Applies one record; the last argument is the time in ms. Errors: IllegalRecord."""
    refuse_commit: Callable[
        [Shard, Received, Any, CommitRequest, Iterable[OffsetToCommit]], ErrorCode
    ]
    """Returns the error that refuses a commit of these offsets as a whole, else NONE."""
    refuse_deletion: Callable[[Any, DeleteGroups | OffsetDelete], ErrorCode]
    """Returns the error that refuses to delete a group, or some of its offsets, else NONE."""

    def __init__(self) -> None:
        self.handlers: dict[type[Request], Handler] = {}
        """The requests of classic members that this kind of group handles in its own way."""

    def refuse_fetch(self, group: Any, request: OffsetFetch) -> ErrorCode:
        """Returns the error that refuses the whole request, else NONE."""
        return ErrorCode.NONE

    def starts_deletion(
        self, state: Shard, request_id: int, request: DeleteGroups, group_ids: tuple[str, ...]
    ) -> bool:
        """Called before a deletion: appends what must be durable first; returns whether it did."""
        return False

    def topics_deleted(self, state: Shard, topic_ids: tuple[Uuid, ...]) -> None:
        """Called when topics were deleted; the default does nothing."""
