# SPDX-License-Identifier: Apache-2.0
"""Assignments as values: which member owns which partitions. `after - before` is a `Delta`:

kept         = before ∩ after
revoked      = before - after
gained       = after - before
transferring = revoked from one member ∩ gained by another
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import groupby, islice
from typing import Any, Literal

from .html_tables import MOST_CHARACTERS, small_table
from .model import TopicPartition
from .spec import GroupSpec

# Makes a pair without the named-tuple constructor, in about a third of the time.
_PAIR: Callable[[tuple[str, int]], TopicPartition] = partial(tuple.__new__, TopicPartition)


@dataclass(frozen=True, slots=True)
class Balance:
    """Partitions per member: the least, the most, the mean, the population standard deviation."""

    min: int
    max: int
    mean: float
    stddev: float

    @classmethod
    def of(cls, counts: Sequence[int]) -> "Balance":
        """Computes with integers up to the last step, so that the order of counts has no effect."""
        if not counts:
            return cls(0, 0, 0.0, 0.0)
        members, total = len(counts), sum(counts)
        squares = members * sum(count * count for count in counts) - total * total
        return cls(min(counts), max(counts), total / members, math.sqrt(squares / members**2))

    @property
    def least_to_most(self) -> str:
        """Returns a text such as 3-4, or 3 if all members own equally many."""
        return str(self.min) if self.min == self.max else f"{self.min}-{self.max}"

    def to_dict(self) -> dict[str, float]:
        return asdict(self)


AnomalyKind = Literal["duplicate", "unsubscribed", "nonexistent", "unassigned"]


@dataclass(frozen=True, slots=True)
class Anomaly:
    """A fault in an assignment. Kafka's own assignors can produce faults, too.

    duplicate     assigned to this member and to an earlier one (or to this member twice)
    unsubscribed  assigned to a member that does not subscribe to the topic
    nonexistent   assigned, but the topic has no such partition
    unassigned    a member subscribes to the topic, but no member gets the partition, and none has
                  to revoke it first
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
    caller reads that member.

    `standby` has the standby tasks of a streams group, whose active tasks are the partitions of
    this assignment; else it is None.

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
    _index: dict[str, int]

    __slots__ = (
        "_index",
        "anomalies",
        "member_ids",
        "offsets",
        "partitions",
        "standby",
        "topic_ids",
        "topics",
    )

    def __init__(
        self,
        member_ids: tuple[str, ...],
        topics: tuple[str, ...],
        offsets: Sequence[int],
        topic_ids: Sequence[int],
        partitions: Sequence[int],
        anomalies: tuple[Anomaly, ...] = (),
        standby: "Assignment | None" = None,
    ) -> None:
        index = {member_id: m for m, member_id in enumerate(member_ids)}
        columns = (index, anomalies, member_ids, offsets, partitions, standby, topic_ids, topics)
        for name, value in zip(self.__slots__, columns, strict=True):
            object.__setattr__(self, name, value)

    @classmethod
    def of(
        cls,
        members: Mapping[str, Iterable[TopicPartition]],
        anomalies: tuple[Anomaly, ...] = (),
        standby: "Assignment | None" = None,
    ) -> "Assignment":
        """Makes an assignment from member ids and their partitions; members keep their order."""
        topics: dict[str, int] = {}
        offsets, topic_ids, partitions = [0], [], []
        for owned in members.values():
            for topic, partition in owned:
                topic_ids.append(topics.setdefault(topic, len(topics)))
                partitions.append(partition)
            offsets.append(len(partitions))
        columns = (tuple(offsets), tuple(topic_ids), tuple(partitions))
        return cls(tuple(members), tuple(topics), *columns, anomalies, standby)

    @classmethod
    def owned(cls, group: GroupSpec) -> "Assignment":
        """Returns the partitions that the members of a group claim to own."""
        return cls.of({member.member_id: member.owned_partitions for member in group.members})

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
        return tuple(self._partitions_of(self._index[member_id]))

    def _partitions_of(self, m: int) -> Iterator[TopicPartition]:
        entries = slice(self.offsets[m], self.offsets[m + 1])
        return named_partitions(self.topics, self.topic_ids[entries], self.partitions[entries])

    def __iter__(self) -> Iterator[str]:
        return iter(self.member_ids)

    def __len__(self) -> int:
        return len(self.member_ids)

    def __repr__(self) -> str:
        return f"<Assignment of {len(self.partitions)} partitions to {len(self)} members>"

    def _repr_html_(self) -> str:
        def row(m: int) -> tuple[object, ...]:
            first = tuple(islice(self._partitions_of(m), MOST_CHARACTERS))
            return self.member_ids[m], self.offsets[m + 1] - self.offsets[m], _runs(first)

        return small_table(repr(self)[1:-1], ("member", "", "partitions"), range(len(self)), row)

    def __str__(self) -> str:
        return "\n".join(f"{member_id}:{_runs(owned)}" for member_id, owned in self.items())

    def __sub__(self, before: "Assignment") -> "Delta":
        """Returns the changes from `before` to this assignment."""
        return Delta.between(before, self)

    def __reduce__(self) -> tuple[Any, ...]:
        columns = (list(self.offsets), list(self.topic_ids), list(self.partitions))
        return Assignment, (self.member_ids, self.topics, *columns, self.anomalies, self.standby)

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


def named_partitions(
    topics: tuple[str, ...], topic_ids: Sequence[int], partitions: Sequence[int]
) -> Iterator[TopicPartition]:
    """Makes partitions from two columns; `topic_ids` has indexes into `topics`."""
    return map(_PAIR, zip(map(topics.__getitem__, topic_ids), partitions, strict=True))


def _runs(partitions: Sequence[TopicPartition]) -> str:
    return "".join(
        f" {topic}[{', '.join(str(partition) for _, partition in run)}]"
        for topic, run in groupby(partitions, key=lambda tp: tp.topic)
    )


@dataclass(frozen=True, slots=True)
class Delta:
    """The difference of two assignments; `transferring` has partitions under their new owners."""

    kept: Assignment
    revoked: Assignment
    gained: Assignment
    transferring: Assignment

    @classmethod
    def between(cls, before: Assignment, after: Assignment) -> "Delta":
        member_ids = list(dict.fromkeys([*before, *after]))
        old = {member_id: before.get(member_id, ()) for member_id in member_ids}
        new = {member_id: after.get(member_id, ()) for member_id in member_ids}
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
        counts = (f"{len(getattr(self, part).partitions)} {part}" for part in self.__slots__)
        return f"<Delta: {', '.join(counts)}>"

    def _repr_html_(self) -> str:
        def row(member_id: str) -> tuple[object, ...]:
            parts = (part[member_id][:MOST_CHARACTERS] for part in (self.revoked, self.gained))
            return member_id, len(self.kept[member_id]), *map(_runs, parts)

        changed = [one for one in self.kept if self.revoked[one] or self.gained[one]]
        columns = ("member that changes", "kept", "revoked", "gained")
        return small_table(repr(self)[1:-1], columns, changed, row)


def _without(
    partitions: Sequence[TopicPartition], others: Iterable[TopicPartition]
) -> list[TopicPartition]:
    gone = set(others)
    return [tp for tp in partitions if tp not in gone]


def find_anomalies(
    group: GroupSpec,
    assignment: Mapping[str, Sequence[TopicPartition]],
    *,
    withholds: bool,
    shares: bool = False,
) -> tuple[Anomaly, ...]:
    """Returns the faults of an assignment.

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
        # A member that claims a partition may still read it, however old the claim is.
        given.update(tp for member in group.members for tp in member.owned_partitions)
    waiting = {topic.name: topic.initialized for topic in group.topics if shares}
    for topic, count in counts.items():
        if topic in subscribed:
            ready = waiting.get(topic)
            numbers = range(count) if ready is None else sorted(set(ready))
            every = (TopicPartition(topic, p) for p in numbers)
            found.extend(Anomaly("unassigned", *tp, None) for tp in every if tp not in given)
    return tuple(found)
