# SPDX-License-Identifier: Apache-2.0
"""The facts of an explanation in a share group: who reads a partition, and why.

The assignor itself runs (`assignors/share/simple.py`), in the pool of the partition: its topic, or
the whole group if all members subscribe to the same topics.
"""

from collections.abc import Iterator
from typing import Literal

from kafka_rebalance.assignors.consumer.targets import View, view_of
from kafka_rebalance.assignors.share import simple
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.spec import GroupSpec, counted

from .facts import Fact

Outcome = Literal["kept", "given up", "crowded"]


class Shared(Fact):
    """The pool of the partitions of `topic` (None: of all topics); each member wants `least` to
    `most` of them.
    """

    topic: str | None
    partitions: int
    members: int
    least: int
    most: int
    step = "share"

    def __str__(self) -> str:
        each = -(-self.members // self.partitions)
        wants = f"{self.least}" if self.least == self.most else f"{self.least} or {self.most}"
        return (
            f"{counted(self.members)} for {counted(self.partitions, 'partition')} of "
            f"{self.topic or 'all topics'}: each partition is to have {counted(each, 'reader')}, "
            f"so each member wants {wants}"
        )


class FormerReader(Fact):
    """The outcome for a former reader of the partition: it had `had` partitions of the pool `topic`
    (None: all topics), and now wants `wants`.
    """

    member_id: str
    topic: str | None
    had: int
    wants: int
    outcome: Outcome
    readers: int
    step = "keep"

    def __str__(self) -> str:
        of = f" of {self.topic}" if self.topic else ""
        who = f"{self.member_id} read {counted(self.had, 'partition')}{of} and wants {self.wants}"
        if self.outcome == "crowded":
            return f"{who}; it loses this one, because more than {self.readers} had it"
        more = self.had - self.wants
        if self.outcome == "given up":
            return f"{who}; it gives {more} up, and this is one of them"
        others = f", and gives up {counted(more, 'other')}" if more > 0 else ""
        return f"{who}; it keeps this one{others}"


class Unread(Fact):
    step = "keep"
    text = "no member read it before"


class Filled(Fact):
    member_id: str
    held: int
    wants: int
    lacking: int
    step = "fill"

    def __str__(self) -> str:
        return (
            f"it lacks {counted(self.lacking, 'reader')}; the next in the circle of members with "
            f"too few is {self.member_id}, which holds {self.held} of the {self.wants} that it "
            f"wants"
        )


class TooFew(Fact):
    """The partition gets fewer readers than `wanted`: the circle came back to the member `again`,
    which had just got it. `again` is None if no other member with too few partitions was left.
    """

    readers: int
    wanted: int
    again: str | None
    step = "fill"

    def __str__(self) -> str:
        why = (
            "no other member with too few was left"
            if self.again is None
            else f"the circle came back to {self.again}, which had just got it"
        )
        return f"it has {counted(self.readers, 'reader')} instead of {self.wanted}: {why}"


def share_steps(group: GroupSpec, tp: TopicPartition) -> list[Fact] | None:
    """Returns the facts about a partition; None if uninitialised. Errors: AssignorThrows."""
    view = view_of(group, simple.NAME)
    assignable = simple.assignable_of(view, group)
    topic = next(uuid for uuid, name in view.names.items() if name == tp.topic)
    if tp.partition not in assignable.get(topic, ()):
        return None
    targets = [one.target for one in view.members]
    pool: _Homogeneous | _OfTopic
    if view.homogeneous:
        pool = _Homogeneous(view, targets, assignable)
    else:
        pool = _OfTopic(view, targets, assignable, topic)
    pool.watch((topic, tp.partition))
    topics = view.members[0].topics if view.homogeneous else {topic}
    had = [  # each member's partitions of the pool's topics, uninitialised ones too
        sum(len(numbers) for uuid, numbers in one.target.items() if uuid in topics)
        for one in view.members
    ]
    pool.share()
    return list(_facts(view, pool, had))


class _Watched(simple.Pool):
    """A pool that records changes to the watched partition: the members that lose it, and why; the
    members that gain it, and how many partitions they held before. Members are numbers here.
    """

    reason: Outcome = "given up"
    fills = False
    again: int | None = None

    def watch(self, tp: simple.IdPartition) -> None:
        self.watched = tp
        self.lost: dict[int, Outcome] = {}
        self.gained: dict[int, int] = {}

    def take_from_crowded(self) -> Iterator[int]:
        self.reason = "crowded"
        yield from super().take_from_crowded()

    def take(self, m: int, tp: simple.IdPartition) -> None:
        if tp == self.watched:
            self.lost[m] = self.reason
        super().take(m, tp)

    def fill(self) -> None:
        self.fills = True
        super().fill()

    def add_to_held(self, m: int, tp: simple.IdPartition) -> None:
        if self.fills and tp == self.watched:
            if m in self.gained:
                self.again = m
            else:
                held = self.held.get(m)
                self.gained[m] = 0 if held is None else len(held)
        super().add_to_held(m, tp)


class _Homogeneous(_Watched, simple.HomogeneousPool):
    pass


class _OfTopic(_Watched, simple.TopicPool):
    pass


def _facts(view: View, pool: _Watched, had: list[int]) -> Iterator[Fact]:
    wanted = [pool.wanted[m] for m in pool.subscribers]
    topic, partition = pool.watched
    name = None if view.homogeneous else view.names[topic]
    yield Shared(name, len(pool.partitions), len(wanted), min(wanted), max(wanted))
    readers = [
        m for m, one in enumerate(view.members) if partition in (one.target.get(topic) or ())
    ]
    ids = [one.member.member_id for one in view.members]
    for m in readers:
        outcome = pool.lost.get(m, "kept")
        yield FormerReader(ids[m], name, had[m], pool.wanted[m], outcome, pool.shared_by)
    if not readers:
        yield Unread()
    there = len(readers) - len(pool.lost)
    for m, held in pool.gained.items():
        yield Filled(ids[m], held, pool.wanted[m], pool.shared_by - there)
        there += 1
    if there < pool.shared_by:
        again = None if pool.again is None else ids[pool.again]
        yield TooFew(there, pool.shared_by, again)
