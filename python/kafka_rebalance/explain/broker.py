# SPDX-License-Identifier: Apache-2.0
"""The facts of an explanation if the broker assigns: uniform, range, or the assignor of Streams.

For uniform with unequal subscriptions, the facts are recorded while uniform runs. The other facts
follow from the group and the answer.
"""

from collections.abc import Iterator, Sequence

from kafka_rebalance.assignors.assigning import assign
from kafka_rebalance.assignors.consumer import range as ranges
from kafka_rebalance.assignors.consumer import uniform
from kafka_rebalance.assignors.consumer.heterogeneous import HeterogeneousBuild
from kafka_rebalance.assignors.consumer.targets import View, view_of
from kafka_rebalance.assignors.streams import sticky
from kafka_rebalance.group.model import TopicPartition, static_first
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec, counted
from kafka_rebalance.group.streams import all_tasks
from kafka_rebalance.java.hash_map import Uuid

from .facts import Fact, FairShares, RangeOf, holders
from .sticky import Balanced, Held, NotHeldWhy


class Quotas(Fact):
    total: int
    members: int
    step = "quotas"

    def __str__(self) -> str:
        least, extras = divmod(self.total, self.members)
        each = f"{least} each" if not extras else f"{least} or {least + 1} each"
        return f"{counted(self.total, 'partition')} to {counted(self.members)}: {each}"


class Keeps(Fact):
    """The partition's present owner (None: no owner) keeps `kept` of its `owned` partitions.

    `is_kept` is True if the explained partition is one of the kept ones.
    """

    owner: str | None
    owned: int
    kept: int
    is_kept: bool
    step = "keep"

    def __str__(self) -> str:
        if self.owner is None:
            return "it has no owner that could keep it"
        if self.is_kept:
            return f"{self.owner} keeps {self.kept} of its {self.owned}, and this is one of them"
        return f"{self.owner} has {self.owned} and may keep {self.kept}; this is not one of them"


class Fills(Fact):
    member_id: str
    kept: int
    holds: int
    step = "fill"

    def __str__(self) -> str:
        return (
            f"members below their quota get the free partitions, in the broker's order: "
            f"{self.member_id} kept {self.kept}, gets {self.holds - self.kept}, and this is one of "
            "them"
        )


class Fewest(Fact):
    member_id: str
    holds: int
    subscribers: int
    step = "fewest first"

    def __str__(self) -> str:
        of = f"its {counted(self.subscribers, 'subscriber')}, ties in the broker's order"
        return f"{self.member_id} has the fewest ({self.holds}) of {of}"


class Evened(Fact):
    """A move to a member with fewer partitions; `…_holds` are both members' numbers of partitions
    before the move.
    """

    source: str
    source_holds: int
    destination: str
    destination_holds: int
    topic: str
    step = "balance"
    text = (
        "{0.source} has the most ({0.source_holds}) of the members with partitions of "
        "{0.topic}, {0.destination} the fewest ({0.destination_holds}) of the "
        "subscribers: it moves to {0.destination}"
    )


class GivenTask(Fact):
    tasks: int
    members: int
    owner: str | None
    member_id: str
    step = "task"

    def __str__(self) -> str:
        text = (
            f"{counted(self.tasks, 'task')} to {counted(self.members)}: a member keeps its "
            f"tasks up to a quota, at first {-(-self.tasks // self.members)}; "
        )
        if self.owner == self.member_id:
            return f"{text}{self.owner} had it, and keeps it"
        had = f"{self.owner} had it, but is full" if self.owner else "no member had it"
        return (
            f"{text}{had}, so {self.member_id} gets it: the best candidate with its state, or else "
            "the least loaded"
        )


def uniform_steps(group: GroupSpec, tp: TopicPartition) -> list[Fact] | None:
    """Returns the facts of uniform's steps; None if `tp` has several owners."""
    view = view_of(group, uniform.NAME)
    owners = holders(Assignment.owned(group), tp)
    if len(owners) > 1:
        return None
    if not view.homogeneous:
        return list(_unequal(group, _Watched(view, uniform.NAME, tp), owners))
    answer = assign(group, uniform.NAME)
    (holder,) = holders(answer, tp)
    return list(_uniform(group, answer, owners, holder))


def _uniform(
    group: GroupSpec, answer: Assignment, owners: Sequence[str], holder: str
) -> Iterator[Fact]:
    before = {member.member_id: {*member.owned_partitions} for member in group.members}

    def kept(member_id: str) -> int:
        return len(before[member_id].intersection(answer[member_id]))

    counts = group.partition_counts()
    total = sum(counts.get(topic, 0) for topic in {*group.members[0].topics})
    yield Quotas(total, len(group.members))
    if not owners:
        yield Keeps(None, 0, 0, is_kept=False)
    else:
        (owner,) = owners
        yield Keeps(owner, len(before[owner]), kept(owner), is_kept=owner == holder)
    if holder not in owners:
        yield Fills(holder, kept(holder), len(answer[holder]))


class _Watched(HeterogeneousBuild):
    """Runs uniform for unequal subscriptions, and records each step that assigns `watched`."""

    def __init__(self, view: View, assignor: str, watched: TopicPartition) -> None:
        super().__init__(view, assignor)
        self.watched = watched
        self.found: list[Fewest | Evened] = []

    def _give(self, topic: Uuid, partition: int, m: int) -> None:
        if (self.view.names[topic], partition) == self.watched:
            ids = [one.member.member_id for one in self.view.members]
            source, subscribers = self.owners[topic][partition], self.subscribers[topic]
            if source is None:
                self.found.append(Fewest(ids[m], self.sizes[m], len(subscribers)))
            else:  # the loser's entry in `sizes` no longer counts this partition
                had = self.sizes[source] + 1
                name = self.view.names[topic]
                self.found.append(Evened(ids[source], had, ids[m], self.sizes[m], name))
        super()._give(topic, partition, m)


def _unequal(group: GroupSpec, build: _Watched, owners: Sequence[str]) -> Iterator[Fact]:
    tp = build.watched
    subscribers = [one.member_id for one in group.members if tp.topic in one.topics]
    owner = owners[0] if owners else None
    why_not: NotHeldWhy | None = "nobody" if owner is None else None
    if owner is not None and owner not in subscribers:
        why_not = "unsubscribed"
    yield Held(owner, tp.topic, why_not)
    build.keep()
    build.assign_rest()
    build.balance()
    yield from build.found
    moved = build.found and isinstance(build.found[-1], Evened)
    if not moved and len(subscribers) > 1:
        (holder,) = holders(assign(group, uniform.NAME), tp)
        yield Balanced(holder, undone=False)


def range_steps(group: GroupSpec, tp: TopicPartition) -> list[Fact]:
    """Returns the facts of the brokers' range, which ignores racks and present owners."""
    members = static_first(one.member for one in view_of(group, ranges.NAME).members)
    order = [one.member_id for one in members if tp.topic in one.topics]
    share, extras = divmod(partitions := group.partition_counts()[tp.topic], len(order))
    answer = assign(group, ranges.NAME)
    (holder,) = holders(answer, tp)
    holds = tuple(sorted(one for one in answer[holder] if one.topic == tp.topic))
    return [
        FairShares(tp.topic, partitions, len(order), share, extras),
        RangeOf(holder, order.index(holder) + 1, holds),
    ]


def task_steps(group: GroupSpec, tp: TopicPartition) -> list[Fact]:
    """Returns the single fact that explains why an active task is assigned to its member."""
    owner = next(reversed(holders(Assignment.owned(group), tp)), None)
    (holder,) = holders(assign(group, sticky.NAME), tp)
    return [GivenTask(all_tasks(group.subtopologies or (), 0), len(group.members), owner, holder)]
