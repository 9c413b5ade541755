# SPDX-License-Identifier: Apache-2.0
"""Finds the facts of the general sticky algorithm, in Kafka's version and in librdkafka's.

librdkafka's cooperative-sticky runs its version for all groups (`librdkafka/general.py`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kafka_rebalance.assignors.classic import general
from kafka_rebalance.assignors.classic.claims import NO_GENERATION, Claims
from kafka_rebalance.assignors.classic.racks import Racks
from kafka_rebalance.assignors.librdkafka import claims as librdkafka_claims
from kafka_rebalance.assignors.librdkafka import cooperative_sticky
from kafka_rebalance.assignors.librdkafka import general as librdkafka
from kafka_rebalance.assignors.librdkafka.claims import Settled
from kafka_rebalance.assignors.librdkafka.subscriptions import members_with_topics
from kafka_rebalance.group.model import Member, TopicPartition
from kafka_rebalance.group.spec import GroupSpec

from . import sticky as sticky_facts
from .facts import Fact


def holders(assignment: Mapping[str, Sequence[TopicPartition]], tp: TopicPartition) -> list[str]:
    return [member_id for member_id, owned in assignment.items() if tp in owned]


class WatchedGeneral(general.GeneralBuild):
    """Kafka's algorithm, which also records how the watched partition is assigned and moved."""

    def __init__(self, name: str, claims: Claims, racks: Racks, watched: TopicPartition) -> None:
        super().__init__(name, claims, racks)
        self.watched = watched
        self.given: list[Fact] = []
        self.moves: list[sticky_facts.Moved] = []

    def _assign_smallest(self, tp: TopicPartition, racks: Racks | None) -> bool:
        sizes = {member_id: len(owned) for member_id, owned in self.current.items()}
        given = super()._assign_smallest(tp, racks)
        if tp == self.watched:
            among: sticky_facts.Among = "near" if racks else "subscribers"
            holder = self.owner[tp] if given else None
            holds = 0 if holder is None else sizes[holder]
            self.given.append(sticky_facts.Smallest(holder, holds, among))
        return given

    def relocate(self, tp: TopicPartition, destination: str) -> None:
        source = self.owner.get(self.watched)
        sizes = {member_id: len(owned) for member_id, owned in self.current.items()}
        previous, _ = self.previous.get(tp, (None, 0))
        to_previous = previous == destination and sizes[self.owner[tp]] > sizes[destination] + 1
        super().relocate(tp, destination)
        if source is None or self.owner.get(self.watched) == source:
            return
        why: sticky_facts.MovedWhy = "previous" if to_previous else "smallest"
        instead = None if tp == self.watched else tp
        if instead is not None:
            why = "instead"
        self.moves.append(
            sticky_facts.Moved(source, sizes[source], destination, sizes[destination], why, instead)
        )


class WatchedLibrdkafka(librdkafka.LibrdkafkaBuild):
    """librdkafka's algorithm, which also records what happens to the watched partition."""

    def __init__(
        self, group: GroupSpec, members: Sequence[Member], claims: Settled, watched: TopicPartition
    ) -> None:
        super().__init__(group, members, claims)
        self.watched = watched
        self.topics_of = self.topics
        self.given: list[Fact] = []
        self.moves: list[sticky_facts.Moved] = []

    def remember_previous(self) -> None:
        """Does nothing: the claims already contain the previous owners."""

    def _assign_smallest(self, tp: TopicPartition, racks: librdkafka.SentRacks | None) -> bool:
        sizes = {member_id: len(owned) for member_id, owned in self.current.items()}
        given = super()._assign_smallest(tp, racks)
        if tp == self.watched:
            among: sticky_facts.Among = "near" if racks else "subscribers"
            holder = self.holder[tp] if given else None
            self.given.append(
                sticky_facts.Smallest(holder, 0 if holder is None else sizes[holder], among)
            )
        return given

    def _move(self, tp: TopicPartition, destination: str) -> None:
        source = self.holder.get(self.watched)
        sizes = {member_id: len(owned) for member_id, owned in self.current.items()}
        to_previous = (
            self.previous.get(tp) == destination and sizes[self.holder[tp]] > sizes[destination] + 1
        )
        super()._move(tp, destination)
        if source is None or self.holder.get(self.watched) == source:
            return
        why: sticky_facts.MovedWhy = "previous" if to_previous else "smallest"
        instead = None if tp == self.watched else tp
        self.moves.append(
            sticky_facts.Moved(
                source,
                sizes[source],
                destination,
                sizes[destination],
                why if instead is None else "instead",
                instead,
            )
        )


@dataclass(frozen=True, slots=True)
class NewestClaim:
    """The claims to the partition as pairs (member, generation); `owner` is None without one."""

    claims: tuple[tuple[str, int], ...]
    owner: str | None
    step = "claims"

    def __str__(self) -> str:
        each = ", ".join(
            f"{member_id} ({'no generation' if n == NO_GENERATION else f'generation {n}'})"
            for member_id, n in self.claims
        )
        if len(self.claims) < 2:
            return f"{each} claims it" if each else "nobody claims it"
        if self.owner is None:
            return f"claimed by {each}: two claims of one generation, so nobody owns it"
        return f"claimed by {each}: the newest claim is believed, that of {self.owner}"


@dataclass(frozen=True, slots=True)
class SameInstance:
    """The claimant, which counts as `other`: both have one instance id."""

    member_id: str
    other: str
    step = "instance id"

    def __str__(self) -> str:
        return f"{self.member_id} claims it and has the instance id of {self.other}: it gets it"


def librdkafka_steps(group: GroupSpec, tp: TopicPartition) -> Iterator[Fact]:
    """Yields the steps of librdkafka's cooperative-sticky."""
    members = members_with_topics(group)
    claims = librdkafka_claims.settle(members)
    listed = tuple(
        (one.member_id, librdkafka_claims.sent(one).generation)
        for one in members
        for _ in range(one.owned_partitions.count(tp))
    )
    yield NewestClaim(listed, next(iter(holders(claims.owned, tp)), None))
    build = WatchedLibrdkafka(group, members, claims, tp)
    yield from general_steps(build, tp)
    answer = cooperative_sticky.assign(group)
    for member_id in holders(build.current | build.fixed, tp):
        if tp in answer[member_id]:
            continue
        if got := holders(answer, tp):
            yield SameInstance(got[0], member_id)
        else:
            others = tuple(dict.fromkeys(one for one, _ in listed if one != member_id))
            yield sticky_facts.Withheld(member_id, others)


def general_steps(
    build: "WatchedGeneral | WatchedLibrdkafka", tp: TopicPartition
) -> Iterator[Fact]:
    """Yields the facts of a build whose claims are settled."""
    build.sort_partitions()
    build.remember_previous()
    believed = next(iter(holders(build.current, tp)), None)
    unassigned = build.keep_owned()
    initializing = not any(build.current.values())
    keepers = holders(build.current, tp)
    if keepers or believed is None:
        yield sticky_facts.Held(believed, tp.topic, None if keepers else "nobody")
    elif tp.topic not in build.topics_of[believed]:
        yield sticky_facts.Held(believed, tp.topic, "unsubscribed")
    else:
        yield sticky_facts.Held(believed, tp.topic, "rack")
    if keepers and tp in unassigned:
        yield sticky_facts.Again()
    build.assign_unassigned(unassigned)
    yield from build.given
    build.take_out_fixed()
    for member_id in holders(build.fixed, tp):
        yield sticky_facts.Fixed(member_id, len(build.fixed[member_id]))
    before = build.current
    build.balance(unassigned, initializing=initializing)
    yield from build.moves
    undone = build.current is not before
    arrived = build.moves[-1].destination if build.moves and not undone else None
    for member_id in holders(build.current, tp):
        if member_id != arrived:
            yield sticky_facts.Balanced(member_id, undone=undone and bool(build.moves))
