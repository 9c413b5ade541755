# SPDX-License-Identifier: Apache-2.0
"""Holds a classic group: its state, members, leader, generation and votes; makes its log records.

    pending        ids sent with MEMBER_ID_REQUIRED that have not joined yet (KIP-394)
    pending_sync   ids of members that have not sent SyncGroup in this generation
    votes          protocol -> number of members that list it
    awaiting_join  number of members with a parked JoinGroup

Members are in the order in which they joined. Kafka chooses the next leader in the order of a hash
map of member ids; this class chooses it in the order of joining.

Source   ClassicGroup.java, ClassicGroupState.java; docs/behaviour/coordinator.md#2-group, in which
         `python -m tools.tables` draws `LEGAL_PREDECESSORS`.
"""

from collections import Counter
from dataclasses import field
from typing import ClassVar

from kafka_rebalance.assignors.selection import select_protocol
from kafka_rebalance.errors import KafkaRebalanceError, WireError
from kafka_rebalance.frozen import Mutable
from kafka_rebalance.wire import group_records as wire
from kafka_rebalance.wire.classic_groups import JoinedMember, JoinGroup, JoinGroupProtocol
from kafka_rebalance.wire.consumer_protocol import decode_subscription
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import GroupState, common_fields

from ..machine.events import LogRecord
from ..offsets.store import Commit, Partition

_S = GroupState
STATES = (_S.EMPTY, _S.PREPARING_REBALANCE, _S.COMPLETING_REBALANCE, _S.STABLE, _S.DEAD)

# Each state, with the states from which a group can enter it.
LEGAL_PREDECESSORS: dict[GroupState, frozenset[GroupState]] = {
    _S.EMPTY: frozenset({_S.PREPARING_REBALANCE}),
    _S.PREPARING_REBALANCE: frozenset({_S.EMPTY, _S.COMPLETING_REBALANCE, _S.STABLE}),
    _S.COMPLETING_REBALANCE: frozenset({_S.PREPARING_REBALANCE}),
    _S.STABLE: frozenset({_S.COMPLETING_REBALANCE}),
    _S.DEAD: frozenset(STATES),
}


class IllegalTransition(KafkaRebalanceError):
    """A transition that LEGAL_PREDECESSORS does not allow; the group is unchanged."""

    def __init__(self, group_id: str, before: GroupState, after: GroupState) -> None:
        allowed = ", ".join(sorted(str(state) for state in LEGAL_PREDECESSORS[after]))
        super().__init__(f"group {group_id!r}: {after} comes after {allowed}, not after {before}")


CONSUMER = "consumer"


class ClassicGroupMember(Mutable):
    """A member of a classic group. Times are in ms; `parked_join` and `parked_sync` are request
    ids.

    `is_new` is True until the member's first join phase ends: a new member can be removed even
    while its JoinGroup is parked.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: tuple[JoinGroupProtocol, ...]
    assignment: bytes = b""
    is_new: bool = False
    parked_join: int | None = None
    parked_sync: int | None = None

    @property
    def is_static(self) -> bool:
        """Returns whether the member has a `group.instance.id` (KIP-345)."""
        return self.group_instance_id is not None

    def names(self) -> tuple[str, ...]:
        return tuple([name for name, _ in self.protocols])

    def metadata(self, protocol_name: str | None) -> bytes:
        """Returns the metadata for a protocol. Errors: KeyError if the member does not list it."""
        for name, metadata in self.protocols:
            if name == protocol_name:
                return metadata
        raise KeyError(protocol_name)

    def is_excused(self) -> bool:
        """Returns whether a member that is not new waits for a response: it cannot time out."""
        return not self.is_new and (self.parked_join is not None or self.parked_sync is not None)


def without_repeats(protocols: tuple[JoinGroupProtocol, ...]) -> tuple[JoinGroupProtocol, ...]:
    """Returns each protocol once. Kafka counts repeats, and may find no protocol to select."""
    first: dict[str, JoinGroupProtocol] = {}
    for protocol in protocols:
        first.setdefault(protocol.name, protocol)
    return tuple(first.values())


class Group(Mutable):
    """A classic group. `state_timestamp_ms` is None if its loaded record has no timestamp."""

    group_type: ClassVar[str] = "classic"
    has_offsets: ClassVar[bool] = True
    delays_first_targets: ClassVar[bool] = False

    group_id: str
    state_timestamp_ms: int | None
    state: GroupState = GroupState.EMPTY
    previous_state: GroupState = GroupState.EMPTY
    protocol_type: str | None = None
    protocol_name: str | None = None
    generation_id: int = 0
    leader_id: str | None = None
    members: dict[str, ClassicGroupMember] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    pending: dict[str, None] = field(default_factory=dict)
    pending_sync: dict[str, None] = field(default_factory=dict)
    votes: Counter[str] = field(default_factory=Counter)
    awaiting_join: int = 0
    subscribed_topics: frozenset[str] | None = None
    new_member_added: bool = False
    initial_delay_ms: int | None = None  # the part of the initial delay that is running
    initial_remaining_ms: int = 0  # by how much the initial delay can still be extended

    # State ----------------------------------------------------------------------------------------

    def is_(self, *states: GroupState) -> bool:
        return self.state in states

    @property
    def is_empty(self) -> bool:
        return self.state is GroupState.EMPTY

    def is_simple(self) -> bool:
        """Returns whether the group holds only offsets and has never had a member."""
        return self.protocol_type is None and self.is_(GroupState.EMPTY) and not self.pending

    def can_rebalance(self) -> bool:
        return self.state in LEGAL_PREDECESSORS[GroupState.PREPARING_REBALANCE]

    def transition_to(self, state: GroupState, now_ms: int) -> None:
        """Changes the state. Errors: IllegalTransition; the group is then unchanged."""
        if self.state not in LEGAL_PREDECESSORS[state]:
            raise IllegalTransition(self.group_id, self.state, state)
        self.previous_state, self.state = self.state, state
        self.state_timestamp_ms = now_ms

    # Members --------------------------------------------------------------------------------------

    def is_leader(self, member_id: str) -> bool:
        return member_id == self.leader_id

    def rebalance_timeout_ms(self) -> int:
        """Returns the longest rebalance timeout of the members, 0 without members."""
        return max((one.rebalance_timeout_ms for one in self.members.values()), default=0)

    def supports(self, protocol_type: str, names: tuple[str, ...]) -> bool:
        """Returns whether a member with this protocol type and these protocols may join."""
        if self.is_(GroupState.EMPTY):
            return bool(protocol_type) and bool(names)
        if protocol_type != self.protocol_type:
            return False
        return len(self.members) in [self.votes[name] for name in names]

    def add(self, member: ClassicGroupMember) -> None:
        """Adds a member; the first one leads. Errors: ValueError if it does not fit the group."""
        instance = member.group_instance_id
        if instance is not None and instance in self.static_members:
            raise ValueError(f"{instance!r} is taken by {self.static_members[instance]!r}")
        if not self.members:
            self.protocol_type = member.protocol_type
        elif not self.supports(member.protocol_type, member.names()):
            raise ValueError(f"{member.member_id!r} does not fit the group's protocols")
        if instance is not None:
            self.static_members[instance] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self.votes.update(member.names())
        self.awaiting_join += member.parked_join is not None
        self.pending.pop(member.member_id, None)

    def remove(self, member_id: str) -> ClassicGroupMember | None:
        """Removes a member or pending id; the oldest member succeeds a removed leader."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self.votes.subtract(member.names())
            self.awaiting_join -= member.parked_join is not None
            if member.group_instance_id is not None:
                del self.static_members[member.group_instance_id]
        if self.is_leader(member_id):
            self.leader_id = next(iter(self.members), None)
        self.pending.pop(member_id, None)
        self.pending_sync.pop(member_id, None)
        return member

    def replace_static(self, group_instance_id: str, new_id: str) -> ClassicGroupMember:
        """Replaces a static member's id; the member keeps its assignment and role."""
        old_id = self.static_members[group_instance_id]
        member = self.members.pop(old_id)
        member.member_id = new_id
        member.is_new = False
        self.members[new_id] = member
        self.static_members[group_instance_id] = new_id
        if self.is_leader(old_id):
            self.leader_id = new_id
        return member

    def update(self, member: ClassicGroupMember, newest: JoinGroup | ClassicGroupMember) -> None:
        """Sets the member's protocols and timeouts to those of `newest`."""
        before, member.protocols = member.names(), newest.protocols
        after = member.names()
        if after != before:
            self.votes.subtract(before)
            self.votes.update(after)
        member.rebalance_timeout_ms = newest.rebalance_timeout_ms
        member.session_timeout_ms = newest.session_timeout_ms

    def add_pending(self, member_id: str) -> None:
        """Adds an id sent with MEMBER_ID_REQUIRED. Errors: ValueError if a member has this id."""
        if member_id in self.members:
            raise ValueError(f"{member_id!r} is a member already")
        self.pending[member_id] = None

    def park_join(self, member: ClassicGroupMember, request_id: int) -> int | None:
        """Parks a JoinGroup; returns the request id of the member's older parked JoinGroup."""
        replaced, member.parked_join = member.parked_join, request_id
        self.awaiting_join += replaced is None
        return replaced

    def take_join(self, member: ClassicGroupMember) -> int | None:
        """Removes and returns the member's parked JoinGroup, which the caller answers."""
        parked, member.parked_join = member.parked_join, None
        self.awaiting_join -= parked is not None
        return parked

    def check(self, member_id: str, group_instance_id: str | None) -> ErrorCode:
        """Returns the error for a request with these ids; NONE if they belong to a member."""
        if group_instance_id is not None:
            known = self.static_members.get(group_instance_id)
            if known is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if known != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    # Generations ----------------------------------------------------------------------------------

    def has_all_joined(self) -> bool:
        """Returns whether every member has a parked JoinGroup and no id is pending."""
        return self.awaiting_join == len(self.members) and not self.pending

    def elect_joined_leader(self) -> bool:
        """Elects a joined member unless the leader has joined; returns False if nobody has."""
        leader = None if self.leader_id is None else self.members.get(self.leader_id)
        if leader is not None and leader.parked_join is not None:
            return True
        for member in self.members.values():
            if member.parked_join is not None:
                self.leader_id = member.member_id
                return True
        return False

    def next_generation(self, now_ms: int) -> None:
        """Ends the join phase and starts the next generation, with or without members."""
        self.generation_id += 1
        self.protocol_name = self.select_protocol() if self.members else None
        self.find_subscribed_topics()
        state = GroupState.COMPLETING_REBALANCE if self.members else GroupState.EMPTY
        self.transition_to(state, now_ms)
        self.pending_sync.clear()

    def select_protocol(self) -> str:
        """Returns the winner of the members' vote. Errors: ValueError without members."""
        return select_protocol([member.names() for member in self.members.values()])

    def find_subscribed_topics(self) -> None:
        """Sets `subscribed_topics` from the metadata of consumers; to None for other groups.

        Metadata of every version starts with the fields of version 0. Kafka fails on some broken
        metadata; here `subscribed_topics` is then None.
        """
        self.subscribed_topics = None
        if self.protocol_type != CONSUMER:
            return
        topics: set[str] = set()
        for member in self.members.values():
            metadata = member.metadata(self.protocol_name)
            if len(metadata) < 2 or metadata[0] & 0x80:
                return
            try:
                topics.update(decode_subscription(b"\0\0" + metadata[2:]).topics)
            except WireError:
                return
        self.subscribed_topics = frozenset(topics)

    def is_subscribed(self, topic: str) -> bool:
        """Returns whether a member subscribes to the topic, or consumers' topics are unknown."""
        if self.subscribed_topics is None:
            return self.protocol_type == CONSUMER
        return topic in self.subscribed_topics

    def joined_members(self) -> tuple[JoinedMember, ...]:
        """Returns all members, as the leader's JoinGroup response lists them."""
        return tuple(
            JoinedMember(one.member_id, one.group_instance_id, one.metadata(self.protocol_name))
            for one in self.members.values()
        )


def group_record(group: Group, assignment: dict[str, bytes]) -> LogRecord:
    """Returns the group's record: the assignment, and only the selected protocol's metadata."""
    timestamp = -1 if group.state_timestamp_ms is None else group.state_timestamp_ms
    members = tuple(
        wire.MemberMetadata(
            **common_fields(one, wire.MemberMetadata)
            | {"assignment": assignment.get(one.member_id, b"")},
            subscription=one.metadata(group.protocol_name),
        )
        for one in group.members.values()
    )
    value = wire.GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation_id=group.generation_id,
        protocol=group.protocol_name,
        leader=group.leader_id,
        current_state_timestamp_ms=timestamp,
        members=members,
    )
    return LogRecord(
        wire.encode_key(wire.GroupMetadataKey(group.group_id)), wire.encode_value(value)
    )


def new_group_record(group: Group) -> LogRecord:
    """Returns the first record of a group: it contains no members, even if one is joining."""
    return group_record(Group(group.group_id, group.state_timestamp_ms), {})


def group_tombstone(group_id: str) -> LogRecord:
    """Returns the record that removes a group; its offsets need tombstones of their own."""
    return LogRecord(wire.encode_key(wire.GroupMetadataKey(group_id)), None)


def offset_record(commit: Commit) -> LogRecord:
    value = commit.value
    expires = value.expire_timestamp_ms
    written = wire.OffsetCommitValue(
        offset=value.offset,
        metadata=value.metadata,
        commit_timestamp_ms=value.commit_timestamp_ms,
        leader_epoch=-1 if value.leader_epoch is None else value.leader_epoch,
        expire_timestamp_ms=-1 if expires is None else expires,
        version=4 if expires is None else 1,
        tagged=wire.tagged_topic_id(value.topic_id),
    )
    key = wire.OffsetCommitKey(commit.group_id, *commit.partition)
    return LogRecord(wire.encode_key(key), wire.encode_value(written))


def offset_tombstone(group_id: str, partition: Partition) -> LogRecord:
    return LogRecord(wire.encode_key(wire.OffsetCommitKey(group_id, *partition)), None)
