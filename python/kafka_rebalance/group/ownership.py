# SPDX-License-Identifier: Apache-2.0
"""Assignments: which member owns which partitions. The difference `after - before` is a `Delta`:

kept         = before ∩ after
revoked      = before - after
gained       = after - before
transferring = revoked from one member ∩ gained by another
"""

import math
from collections.abc import ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from dataclasses import asdict
from itertools import groupby
from types import MappingProxyType
from typing import Any, Literal

import kafka_rebalance._core as _core
from kafka_rebalance.errors import GroupError
from kafka_rebalance.frozen import Frozen

from .field_paths import a_type, each_of
from .html_tables import MOST_CHARACTERS, small_table
from .model import TopicPartition, quoted
from .partition_columns import NO_PAIRS, check_pairs, named_partitions
from .spec import GroupSpec, counted, require_group


class Balance(Frozen):
    """Partitions per member: minimum, maximum, mean, and population standard deviation."""

    min: int
    max: int
    mean: float
    stddev: float

    @classmethod
    def of(cls, counts: Sequence[int]) -> "Balance":
        """Returns the balance, computed in integers up to the last step, so order has no effect."""
        if not counts:
            return cls(0, 0, 0.0, 0.0)
        members, total = len(counts), sum(counts)
        squares = members * sum(count * count for count in counts) - total * total
        return cls(min(counts), max(counts), total / members, math.sqrt(squares / members**2))

    @property
    def least_to_most(self) -> str:
        """Returns a string such as "3-4", or "3" if all members own equally many partitions."""
        return str(self.min) if self.min == self.max else f"{self.min}-{self.max}"

    def to_dict(self) -> dict[str, float]:
        return asdict(self)


NO_TOPICS: Mapping[str, tuple[str, ...]] = MappingProxyType({})

AnomalyKind = Literal["duplicate", "unsubscribed", "nonexistent", "unassigned"]


class Anomaly(Frozen):
    """A fault in an assignment. Kafka's own assignors can cause faults, too.

    duplicate     assigned to this member, and to an earlier member (or to this one a second time)
    unsubscribed  assigned to a member that does not subscribe to the topic
    nonexistent   assigned, but the topic has no such partition
    unassigned    a member subscribes to the topic, but no member gets the partition, although no
                  member has to revoke it first
    """

    kind: AnomalyKind
    topic: str
    partition: int
    member_id: str | None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class Assignment(Mapping[str, Sequence[TopicPartition]]):
    """An immutable mapping from member id to the member's partitions; members are in join order.

    The data are columns: member m has the entries `offsets[m]:offsets[m + 1]` of `topic_ids`
    (indexes into `topics`) and of `partitions`. The TopicPartitions of a member are made when a
    caller first reads this member; later reads reuse them.

    `standby` holds the standby tasks of a streams group, whose active tasks are the partitions of
    this assignment; else it is None. `owned_topics` lists all topics of a member, in order, if one
    of them has no partitions (`Member.owned_topics`).

    >>> print(Assignment.of({"C0": [TopicPartition("t0", 0), TopicPartition("t0", 1)], "C1": []}))
    C0: t0[0, 1]
    C1:
    """

    member_ids: tuple[str, ...]
    topics: tuple[str, ...]
    offsets: Sequence[int]
    topic_ids: Sequence[int]
    partitions: Sequence[int]
    anomalies: tuple[Anomaly, ...]
    standby: "Assignment | None"
    owned_topics: Mapping[str, tuple[str, ...]]
    _group: "_core.Interned | None"
    _index: dict[str, int] | None
    _made: dict[str, tuple[TopicPartition, ...]]
    _whole: dict[str, tuple[TopicPartition, ...]] | None

    __slots__ = (
        "_group", "_index", "_made", "_whole", "anomalies", "member_ids", "offsets", "owned_topics",
        "partitions", "standby", "topic_ids", "topics",
    )  # fmt: skip

    def __init__(
        self,
        member_ids: tuple[str, ...],
        topics: tuple[str, ...],
        offsets: Sequence[int],
        topic_ids: Sequence[int],
        partitions: Sequence[int],
        anomalies: tuple[Anomaly, ...] = (),
        standby: "Assignment | None" = None,
        owned_topics: Mapping[str, tuple[str, ...]] = NO_TOPICS,
    ) -> None:
        values: tuple[object, ...] = (None, None, {}, None, anomalies, member_ids, offsets)
        values += (owned_topics, partitions, standby, topic_ids, topics)
        for name, value in zip(self.__slots__, values, strict=True):
            object.__setattr__(self, name, value)

    @classmethod
    def of(
        cls,
        members: Mapping[str, Iterable[TopicPartition]],
        anomalies: tuple[Anomaly, ...] = (),
        standby: "Assignment | None" = None,
        owned_topics: Mapping[str, tuple[str, ...]] = NO_TOPICS,
    ) -> "Assignment":
        """Makes an assignment from member ids and their partitions; members keep their order.

        Errors   TypeError if `members` is not a mapping, a member id is not a str, or `anomalies`
                 or `standby` is of another type; GroupError at `members["ID"]` for a member whose
                 value is not a list of pairs (topic, partition).
        """
        if not isinstance(members, Mapping):
            raise TypeError(
                f"members: {a_type(members)} is not a mapping; "
                "give {member_id: [TopicPartition(topic, partition), …]}"
            )
        for member_id in members:
            if not isinstance(member_id, str):
                raise TypeError(f"members: {member_id!r} is not a member_id; give a str")
        if not isinstance(standby, Assignment | None):
            raise TypeError(f"standby: {a_type(standby)} is not an Assignment")
        anomalies = tuple(each_of(anomalies, "anomalies", Anomaly, "find_anomalies returns them"))
        topics: dict[str, int] = {}
        offsets, topic_ids, partitions = [0], [], []
        for member_id, owned in members.items():
            try:
                for topic, partition in owned:
                    topic_ids.append(topics.setdefault(topic, len(topics)))
                    partitions.append(partition)
            except (TypeError, ValueError):  # not an iterable, or an entry is not a pair
                raise GroupError(f"members[{quoted(member_id)}]", NO_PAIRS) from None
            offsets.append(len(partitions))
        check_pairs(tuple(members), tuple(topics), offsets, topic_ids, partitions)
        columns = (tuple(offsets), tuple(topic_ids), tuple(partitions))
        return cls(tuple(members), tuple(topics), *columns, anomalies, standby, owned_topics)

    @classmethod
    def owned(cls, group: GroupSpec) -> "Assignment":
        """Returns the partitions that the members of a group claim to own.

        Members of a streams group own tasks. Errors: TypeError for anything but a GroupSpec.
        """
        require_group(group)
        if group.subtopologies is None:
            owned = {member.member_id: member.owned_partitions for member in group.members}
            topics = {one.member_id: one.owned_topics for one in group.members if one.owned_topics}
            return cls.of(owned, owned_topics=topics)
        running = {m.member_id: m.streams for m in group.members if m.streams is not None}
        standby = {member_id: tasks.standby_tasks for member_id, tasks in running.items()}
        active = {member_id: tasks.active_tasks for member_id, tasks in running.items()}
        return cls.of(active, standby=cls.of(standby))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"an Assignment is immutable: {name} cannot be set")

    def __eq__(self, other: object) -> bool:
        """Compares members with their partitions, and with their standby tasks if they have any."""
        if not isinstance(other, Mapping):
            return NotImplemented
        standby = getattr(other, "standby", None)
        return bool(super().__eq__(other)) and self.standby == standby

    def __hash__(self) -> int:
        """Hashes the members without their order, because equality ignores the order."""
        return hash(frozenset(self.items()))

    def __getitem__(self, member_id: str) -> tuple[TopicPartition, ...]:
        made = self._made.get(member_id)
        if made is None:
            # A caller that has read an eighth of the members one by one will probably read all of
            # them; making all partitions at once takes a fifth of the time.
            if len(self._made) * 8 > len(self) and isinstance(self.offsets, memoryview):
                return self._all()[member_id]
            if self._index is None:
                index = {one: m for m, one in enumerate(self.member_ids)}
                object.__setattr__(self, "_index", index)
            assert self._index is not None
            m = self._index[member_id]
            entries = slice(self.offsets[m], self.offsets[m + 1])
            columns = self.topic_ids[entries], self.partitions[entries]
            made = named_partitions(self.topics, *columns, group=self._group)
            self._made[member_id] = made
        return made

    def items(self) -> ItemsView[str, tuple[TopicPartition, ...]]:
        """Returns the members with their partitions, in member order."""
        return self._all().items()

    def values(self) -> ValuesView[tuple[TopicPartition, ...]]:
        """Returns the partitions of each member, in member order."""
        return self._all().values()

    def _all(self) -> dict[str, tuple[TopicPartition, ...]]:
        if self._whole is None:
            if isinstance(self.offsets, memoryview):
                columns = self.offsets, self.topic_ids, self.partitions
                every = _core.owned_partitions(self.topics, *columns, group=self._group)
                whole = dict(zip(self.member_ids, every, strict=True)) | self._made
            else:
                whole = {member_id: self[member_id] for member_id in self.member_ids}
            object.__setattr__(self, "_whole", whole)
            object.__setattr__(self, "_made", whole)
        assert self._whole is not None
        return self._whole

    def __iter__(self) -> Iterator[str]:
        return iter(self.member_ids)

    def __len__(self) -> int:
        return len(self.member_ids)

    def __repr__(self) -> str:
        partitions = counted(len(self.partitions), "partition")
        return f"<Assignment of {partitions} to {counted(len(self), 'member')}>"

    def _repr_html_(self) -> str:
        def row(m: int) -> tuple[object, ...]:
            member_id = self.member_ids[m]
            first = self[member_id][:MOST_CHARACTERS]
            return member_id, self.offsets[m + 1] - self.offsets[m], _runs(first)

        return small_table(repr(self)[1:-1], ("member", "", "partitions"), range(len(self)), row)

    def __str__(self) -> str:
        return "\n".join(f"{member_id}:{_runs(owned)}" for member_id, owned in self.items())

    def __sub__(self, before: "Assignment") -> "Delta":
        """Returns the changes from `before` to this assignment."""
        if not isinstance(before, Mapping):
            return NotImplemented
        return Delta.between(before, self)

    def __reduce__(self) -> tuple[Any, ...]:
        columns = (list(self.offsets), list(self.topic_ids), list(self.partitions))
        more = (self.anomalies, self.standby, dict(self.owned_topics))
        return Assignment, (self.member_ids, self.topics, *columns, *more)

    @property
    def balance(self) -> Balance:
        """Returns how evenly the members share the partitions."""
        return Balance.of(self.counts())

    def counts(self) -> list[int]:
        """Returns the number of partitions of each member, in member order."""
        return [self.offsets[m + 1] - self.offsets[m] for m in range(len(self))]

    def to_dict(self) -> dict[str, list[list[str | int]]]:
        """Returns `{member_id: [[topic, partition], …]}`, as in a result line."""
        return {member_id: [[t, p] for t, p in owned] for member_id, owned in self.items()}


def answer_of(group: "_core.Interned", assignment: Assignment) -> Assignment:
    """Returns the assignment; it now uses the TopicPartition objects that `group` keeps for its
    answers.
    """
    object.__setattr__(assignment, "_group", group)
    return assignment


def _runs(partitions: Sequence[TopicPartition]) -> str:
    return "".join(
        f" {topic}[{', '.join(str(partition) for _, partition in run)}]"
        for topic, run in groupby(partitions, key=lambda tp: tp.topic)
    )


class Delta(Frozen):
    """The difference between two assignments.

    `transferring` lists, by new owner, the gained partitions that another member has revoked.
    """

    kept: Assignment
    revoked: Assignment
    gained: Assignment
    transferring: Assignment

    @classmethod
    def between(cls, before: Assignment, after: Assignment) -> "Delta":
        member_ids = list(dict.fromkeys([*before, *after]))
        nothing = dict.fromkeys(member_ids, ())
        old, new = nothing | dict(before.items()), nothing | dict(after.items())
        revoked = {m: _without(old[m], new[m]) for m in member_ids}
        gained = {m: _without(new[m], old[m]) for m in member_ids}
        given_up = {tp for partitions in revoked.values() for tp in partitions}
        return cls(
            kept=Assignment.of({m: _without(old[m], revoked[m]) for m in member_ids}),
            revoked=Assignment.of(revoked),
            gained=Assignment.of(gained),
            transferring=Assignment.of(
                {m: [tp for tp in gained[m] if tp in given_up] for m in member_ids}
            ),
        )

    @property
    def moves(self) -> int:
        """Returns how many partitions have an owner that did not own them before."""
        return len(self.gained.partitions)

    def __repr__(self) -> str:
        counts = (f"{len(getattr(self, part).partitions)} {part}" for part in vars(self))
        return f"<Delta: {', '.join(counts)}>"

    def _repr_html_(self) -> str:
        def row(member_id: str) -> tuple[object, ...]:
            parts = (part[member_id][:MOST_CHARACTERS] for part in (self.revoked, self.gained))
            return member_id, len(self.kept[member_id]), *map(_runs, parts)

        changed = [one for one in self.kept if self.revoked[one] or self.gained[one]]
        columns = ("member that changes", "kept", "revoked", "gained")
        return small_table(repr(self)[1:-1], columns, changed, row)


def _without(
    partitions: Sequence[TopicPartition], others: Sequence[TopicPartition]
) -> list[TopicPartition]:
    if not others or partitions == others:  # most members keep what they have
        return [] if others else [*partitions]
    gone = set(others)
    return [tp for tp in partitions if tp not in gone]


def find_anomalies(
    group: GroupSpec,
    assignment: Mapping[str, Sequence[TopicPartition]],
    *,
    withholds: bool,
    shares: bool = False,
) -> tuple[Anomaly, ...]:
    """Returns the faults in an assignment.

    `withholds` is True for an assignor that assigns a moving partition only in the next rebalance.
    `shares` is True for a share group: several members can have a partition, and only initialised
    partitions are assigned.

    Order    members in join order with their partitions in order, then unassigned partitions, by
             topic and partition.
    """
    counts = group.partition_counts()
    found: list[Anomaly] = []
    given: set[TopicPartition] = set()
    subscribed: set[str] = set()
    for member in group.members:
        subscribed.update(member.topics)
        for tp in assignment.get(member.member_id, ()):
            if tp.partition >= counts.get(tp.topic, 0):
                found.append(Anomaly("nonexistent", *tp, member.member_id))
            if tp.topic not in member.topics:
                found.append(Anomaly("unsubscribed", *tp, member.member_id))
            if tp in given and not shares:
                found.append(Anomaly("duplicate", *tp, member.member_id))
            given.add(tp)
    if withholds:
        # A claimed partition is not "unassigned": the claimant, however old its claim, may read it.
        given.update(tp for member in group.members for tp in member.owned_partitions)
    waiting = {topic.name: topic.initialized for topic in group.topics if shares}
    for topic, count in counts.items():
        if topic in subscribed:
            ready = waiting.get(topic)
            numbers = range(count) if ready is None else sorted(set(ready))
            every = (TopicPartition(topic, p) for p in numbers)
            found.extend(Anomaly("unassigned", *tp, None) for tp in every if tp not in given)
    return tuple(found)
