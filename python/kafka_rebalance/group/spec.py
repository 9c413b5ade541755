# SPDX-License-Identifier: Apache-2.0
"""The input of an assignor: topics, and members in join order.

A `GroupSpec` is immutable. Its constructor validates the group, so other code need not; groups in
batches are validated by Rust.
"""

from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from typing import Any

import kafka_rebalance._core as _core
from kafka_rebalance.errors import GroupError

from . import contract, streams
from .field_paths import a_type, integer, objects
from .field_types import MAX_INT64
from .group_fields import GROUP, MEMBER, check_types, has_unknown, warn
from .html_tables import MOST_CHARACTERS, clipped, small_table
from .model import (
    MAX_PARTITIONS,
    Member,
    RebalanceProtocolName,
    Subtopology,
    Topic,
    TopicPartition,
    quoted,
    wrong_protocol,
)


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """A group: its topics, and its members in join order. Answers depend on the join order.

    `leader_library` is the library of the last rebalance's leader, recognised by the assignment's
    bytes: "java" for Kafka's format (our plug-ins write it too); "librdkafka"; "python" for the
    assignors of kafka-python and aiokafka. None means unknown. `leader` is that leader's member id,
    if known; this member leads until it leaves. Only streams groups have `subtopologies`;
    `num_standby_replicas` is Kafka's setting, and None means 0.

    `rebalance_protocol` is the protocol that the members use with `assignor`, in Kafka's names:
    "eager" or "cooperative". Java's members use the highest protocol that all assignors in their
    lists support; None means the highest protocol of `assignor`.

    Errors   GroupError with the field's path: wrong types; duplicate names or ids; numbers out of
             range; `racks` or `weights` without one entry for each partition; a protocol that the
             assignor lacks; no members; more than `max_partitions` partitions, or tasks, in all
             (this limit protects the memory).
    """

    group_id: str
    topics: tuple[Topic, ...]
    members: tuple[Member, ...]
    assignor: str | None = None
    generation_id: int | None = None
    max_partitions: InitVar[int] = MAX_PARTITIONS
    leader_library: str | None = None
    leader: str | None = None
    subtopologies: tuple[Subtopology, ...] | None = None
    num_standby_replicas: int | None = None
    rebalance_protocol: RebalanceProtocolName | None = None
    _interned: "_core.Interned | None" = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self, max_partitions: int) -> None:
        _validate(self, checked_limit(max_partitions))

    @classmethod
    def from_json(cls, line: str | bytes, *, max_partitions: int = MAX_PARTITIONS) -> "GroupSpec":
        """Reads one contract line. Errors: GroupError with the path of the wrong field.

        Warns of ignored fields that resemble fields of the contract, if an end of the line contains
        one. The core reads correct lines. `contract.py` reads others again, and raises the error.
        """
        fields = _core.read_line(line, max_partitions) if cls is GroupSpec else None
        if fields is not None:
            if has_unknown(line):
                warn(contract.parse(line))
            return _checked(fields)
        return cls(**contract.read(contract.parse(line)), max_partitions=max_partitions)

    @classmethod
    def from_dict(
        cls, fields: Mapping[str, Any], *, max_partitions: int = MAX_PARTITIONS
    ) -> "GroupSpec":
        """Reads a parsed contract line. Errors: GroupError with the path of the wrong field.

        `contract.py` reads lines that the core cannot: wrong ones, and those with non-JSON types.
        """
        found = _core.read_fields(fields, max_partitions)
        if found is not None and cls is GroupSpec:
            warn(fields)
            return _checked(found)
        return cls(**contract.read(fields), max_partitions=max_partitions)

    def interned(self) -> "_core.Interned":
        """Returns the group in the core's form; the first call makes it, later calls reuse it."""
        if self._interned is None:
            object.__setattr__(self, "_interned", _core.intern(self))
        assert self._interned is not None
        return self._interned

    def __repr__(self) -> str:
        return f"<GroupSpec {self._summary()}>"

    def _repr_html_(self) -> str:
        def row(member: Member) -> tuple[object, ...]:
            topics = ", ".join(member.topics[:MOST_CHARACTERS])
            return member.member_id, topics, len(member.owned_partitions)

        columns = ("member", "topics", "owned partitions")
        return small_table(self._summary(), columns, self.members, row)

    def _summary(self) -> str:
        partitions = sum(topic.partitions for topic in self.topics)
        return (
            f"{clipped(self.group_id)}: {counted(partitions, 'partition')}, "
            f"{counted(len(self.topics), 'topic')}, {counted(len(self.members), 'member')}, "
            f"{clipped(self.assignor or 'no assignor')}"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        fields = (self.group_id, self.topics, self.members, self.assignor, self.generation_id)
        more = (self.leader_library, self.leader, self.subtopologies, self.num_standby_replicas)
        return GroupSpec, (*fields, self.limit, *more, self.rebalance_protocol)

    def to_dict(self) -> dict[str, Any]:
        """Returns the contract line as a dict; fields that are None are left out."""
        line: dict[str, Any] = GROUP.write(self)
        return line

    def to_json(self) -> str:
        """Returns the contract line as compact JSON."""
        return contract.dumps(self.to_dict())

    def edited(
        self,
        *,
        topics: tuple[Topic, ...] | None = None,
        members: tuple[Member, ...] | None = None,
        assignor: str | None = None,
        generation_id: int | None = None,
        leader: str | None = None,
        rebalance_protocol: RebalanceProtocolName | None = None,
    ) -> "GroupSpec":
        """Returns a validated copy of the group with the given fields replaced; None keeps a field.

        A leader that is not in new `members` is dropped. The present rebalance protocol is kept
        only if the assignor stays.
        """
        if rebalance_protocol is None and assignor in (None, self.assignor):
            rebalance_protocol = self.rebalance_protocol
        leader = self.leader if leader is None else leader
        if members is not None:
            there = objects(members, "members", Member, MEMBER.example)
            leader = leader if any(member.member_id == leader for member in there) else None
        return GroupSpec(
            self.group_id,
            self.topics if topics is None else topics,
            self.members if members is None else members,
            self.assignor if assignor is None else assignor,
            self.generation_id if generation_id is None else generation_id,
            max_partitions=self.limit,
            leader_library=self.leader_library,
            leader=leader,
            subtopologies=self.subtopologies,
            num_standby_replicas=self.num_standby_replicas,
            rebalance_protocol=rebalance_protocol,
        )

    def owning(
        self,
        assignment: Mapping[str, Sequence[tuple[str, int]]],
        *,
        generation_id: int | None = None,
    ) -> "GroupSpec":
        """Returns a copy whose members own this assignment, as the start of a `plan`.

        They own it in generation `generation_id`; if that is None, in the group's own generation
        or, if that is unknown, in 1. A member without an entry owns nothing. In a streams group,
        members have the tasks of the assignment, and no generation. Errors: GroupError for a member
        that is not in the group, or a wrong list; TypeError for anything but a mapping.
        """
        if not isinstance(assignment, Mapping):
            raise TypeError(
                f"assignment: {a_type(assignment)} is not an assignment; give what `assign` returns"
            )
        members = {member.member_id for member in self.members}
        for member_id, owned in assignment.items():
            if not isinstance(owned, Sequence) or not {2}.issuperset(map(len, owned)):
                raise GroupError(f"assignment[{quoted(member_id)}]", "not a list of TopicPartition")
            if member_id not in members:
                raise GroupError("assignment", f"there is no member {quoted(member_id)}")
        if self.subtopologies is not None:
            standby = getattr(assignment, "standby", None) or {}
            running = tuple(_running(member, assignment, standby) for member in self.members)
            return self.edited(members=running)
        since = self.generation_id if generation_id is None else generation_id
        since = 1 if since is None else since
        topics = getattr(assignment, "owned_topics", {})
        owning = tuple(
            member.owning(
                _as_partitions(assignment.get(member.member_id, ())),
                since,
                topics.get(member.member_id, ()),
            )
            for member in self.members
        )
        return self.edited(members=owning, generation_id=since)

    @property
    def limit(self) -> int:
        """Returns the largest number of partitions or tasks that a change of the group may lead to:
        MAX_PARTITIONS, or the group's present number if that is larger.
        """
        tasks = streams.all_tasks(self.subtopologies or (), self.num_standby_replicas or 0)
        return max(MAX_PARTITIONS, sum(topic.partitions for topic in self.topics), tasks)

    def partition_counts(self) -> dict[str, int]:
        """Returns topic -> number of partitions, as assignors see it: without empty topics."""
        return {topic.name: topic.partitions for topic in self.topics if topic.partitions > 0}


def _checked(fields: Sequence[object]) -> GroupSpec:
    """Returns the group with these fields, which the core has already checked."""
    group = object.__new__(GroupSpec)
    names = (*(one.name for one in GROUP.fields), "_interned")
    for name, value in zip(names, fields, strict=True):
        object.__setattr__(group, name, value)
    return group


def _as_partitions(pairs: Sequence[tuple[str, int]]) -> tuple[TopicPartition, ...]:
    if {TopicPartition}.issuperset(map(type, pairs)):
        return tuple(pairs)  # type: ignore[arg-type]
    return tuple(TopicPartition(*tp) for tp in pairs)


def _running(
    member: Member,
    active: Mapping[str, Sequence[tuple[str, int]]],
    standby: Mapping[str, Sequence[tuple[str, int]]],
) -> Member:
    """Returns a copy of a streams group's member with its tasks from `active` and `standby`."""
    if member.streams is None:
        return member
    lists = (active.get(member.member_id, ()), standby.get(member.member_id, ()))
    active_tasks, standby_tasks = map(_as_partitions, lists)
    tasks = replace(member.streams, active_tasks=active_tasks, standby_tasks=standby_tasks)
    return replace(member, streams=tasks)


_OF_EACH_PARTITION = {"racks": "one list of replica racks", "weights": "one weight or null"}


def _validate_broker_fields(topic: Topic, at: str) -> None:
    if topic.topic_id is not None:
        contract.check_topic_id(topic.topic_id, f"{at}.topic_id")
    for n, partition in enumerate(topic.initialized or ()):
        if partition >= topic.partitions:
            problem = f"{partition} is not one of the topic's {topic.partitions} partitions"
            raise GroupError(f"{at}.initialized[{n}]", problem)


def _validate(group: GroupSpec, max_partitions: int) -> None:
    check_types(group)
    protocol = group.rebalance_protocol
    if protocol is not None and (problem := wrong_protocol(protocol, group.assignor)):
        raise GroupError("rebalance_protocol", problem)
    names: dict[str, str] = {}
    ids: dict[str, str] = {}
    for i, topic in enumerate(group.topics):
        at = f"topics[{i}]"
        contract.check_new(names, topic.name, at, "name")
        for name, each in _OF_EACH_PARTITION.items():
            given = getattr(topic, name)
            if given is not None and len(given) != topic.partitions:
                problem = f"{len(given)} entries for {topic.partitions} partitions"
                how = f"give {each} for each partition, or none at all"
                raise GroupError(f"{at}.{name}", f"{problem}; {how}")
        _validate_broker_fields(topic, at)
        if topic.topic_id is not None:
            contract.check_new(ids, topic.topic_id, at, "topic_id")
    total = sum(topic.partitions for topic in group.topics)
    if total > max_partitions:
        raise GroupError(
            "topics",
            f"{total} partitions in all, more than the limit of {max_partitions}; "
            "raise max_partitions if that is meant",
        )
    if not group.members:
        raise GroupError("members", "empty; a leader is always a member itself")
    ids = {}
    for i, member in enumerate(group.members):
        contract.check_new(ids, member.member_id, f"members[{i}]", "member_id")
    streams.check_topology(group.subtopologies or (), group.num_standby_replicas, max_partitions)


def require_group(group: object) -> None:
    """Raises a TypeError for anything but a GroupSpec."""
    if not isinstance(group, GroupSpec):
        raise TypeError(
            f"group: {a_type(group)} is not a GroupSpec; "
            "GroupSpec.from_dict and GroupSpec.from_json read one"
        )


def checked_limit(max_partitions: int) -> int:
    """Returns the limit. Errors: GroupError for anything but a number from 0 on."""
    return integer(max_partitions, "max_partitions", "number", 0, MAX_INT64)


def partition_or_task_counts(group: GroupSpec) -> dict[str, int]:
    """Returns topic -> number of partitions; in a streams group, subtopology -> number of tasks."""
    if group.subtopologies is None:
        return group.partition_counts()
    return {one.subtopology_id: one.tasks for one in group.subtopologies}


def counted(number: int, noun: str = "member") -> str:
    """Returns `1 member` or `2 members`, for sentences about one group."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def first_of(names: Sequence[str], most: int, between: str = ", ") -> str:
    """Returns the first `most` names and the number of the others, such as `a, b and 2 more`."""
    more = len(names) - most
    return between.join(names[:most]) + (f" and {more} more" if more > 0 else "")
