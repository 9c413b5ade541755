# SPDX-License-Identifier: Apache-2.0
"""Finds the facts of the general sticky algorithm, in Kafka's version and in librdkafka's."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from kafka_rebalance.assignors.classic import general
from kafka_rebalance.assignors.classic.claims import NO_GENERATION
from kafka_rebalance.assignors.classic.racks import Racks
from kafka_rebalance.assignors.librdkafka import claims as librdkafka_claims
from kafka_rebalance.assignors.librdkafka import cooperative_sticky
from kafka_rebalance.assignors.librdkafka import general as librdkafka
from kafka_rebalance.assignors.librdkafka.subscriptions import members_with_topics
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.spec import GroupSpec

from . import sticky as sticky_facts
from .facts import Fact, holders


class _Watched:
    """Records how a build assigns and moves the partition `watched`."""

    current: dict[str, list[TopicPartition]]

    def watch(self, tp: TopicPartition) -> None:
        self.watched = tp
        self.given: list[Fact] = []
        self.moves: list[sticky_facts.Moved] = []

    def assigned(self, tp: TopicPartition, holder: str | None, *, near: bool) -> None:
        if tp == self.watched:
            holds = 0 if holder is None else len(self.current[holder]) - 1
            among: sticky_facts.Among = "near" if near else "subscribers"
            self.given.append(sticky_facts.Smallest(holder, holds, among))

    @contextmanager
    def moved(
        self,
        tp: TopicPartition,
        destination: str,
        owner: Mapping[TopicPartition, str],
        previous: str | None,
    ) -> Iterator[None]:
        source = owner.get(self.watched)
        sizes = {member_id: len(owned) for member_id, owned in self.current.items()}
        to_previous = previous == destination and sizes[owner[tp]] > sizes[destination] + 1
        yield
        if source is None or owner.get(self.watched) == source:
            return
        why: sticky_facts.MovedWhy = "previous" if to_previous else "smallest"
        instead = None if tp == self.watched else tp
        before = source, sizes[source], destination, sizes[destination]
        self.moves.append(sticky_facts.Moved(*before, "instead" if instead else why, instead))


class WatchedGeneral(_Watched, general.GeneralBuild):
    """Kafka's algorithm; also records the steps of the watched partition."""

    def _assign_smallest(self, tp: TopicPartition, racks: Racks | None) -> bool:
        given = super()._assign_smallest(tp, racks)
        self.assigned(tp, self.owner[tp] if given else None, near=bool(racks))
        return given

    def relocate(self, tp: TopicPartition, destination: str) -> None:
        previous, _ = self.previous.get(tp, (None, 0))
        with self.moved(tp, destination, self.owner, previous):
            super().relocate(tp, destination)


class WatchedLibrdkafka(_Watched, librdkafka.LibrdkafkaBuild):
    """librdkafka's algorithm; also records the steps of the watched partition."""

    @property
    def topics_of(self) -> dict[str, frozenset[str]]:
        return self.topics

    def remember_previous(self) -> None:
        """Does nothing: `general_steps` runs a build whose claims, with the previous owners, are
        settled.
        """

    def _assign_smallest(self, tp: TopicPartition, racks: librdkafka.SentRacks | None) -> bool:
        given = super()._assign_smallest(tp, racks)
        self.assigned(tp, self.holder[tp] if given else None, near=bool(racks))
        return given

    def _move(self, tp: TopicPartition, destination: str) -> None:
        with self.moved(tp, destination, self.holder, self.previous.get(tp)):
            super()._move(tp, destination)


class NewestClaim(Fact):
    """The claims to the partition, as pairs (member, generation). `owner` is the member whose claim
    counts, or None.
    """

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


class SameInstance(Fact):
    member_id: str
    other: str
    step = "instance id"
    text = "{0.member_id} claims it and has the instance id of {0.other}: it gets it"


def librdkafka_steps(group: GroupSpec, tp: TopicPartition) -> Iterator[Fact]:
    """Yields the facts of the steps of librdkafka's cooperative-sticky."""
    members = members_with_topics(group)
    claims = librdkafka_claims.settle(members)
    listed = tuple(
        (one.member_id, librdkafka_claims.sent(one).generation)
        for one in members
        for _ in range(one.owned_partitions.count(tp))
    )
    yield NewestClaim(listed, next(iter(holders(claims.owned, tp)), None))
    build = WatchedLibrdkafka(group, members, claims)
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


def general_steps(build: WatchedGeneral | WatchedLibrdkafka, tp: TopicPartition) -> Iterator[Fact]:
    """Runs a build whose claims are already settled, and yields the facts of its steps."""
    build.watch(tp)
    build.sort_partitions()
    build.remember_previous()
    believed = next(iter(holders(build.current, tp)), None)
    unassigned = build.keep_owned()
    initializing = not any(build.current.values())
    keepers = holders(build.current, tp)
    why_not: sticky_facts.NotHeldWhy = "nobody"
    if believed is not None:
        why_not = "rack" if tp.topic in build.topics_of[believed] else "unsubscribed"
    yield sticky_facts.Held(believed, tp.topic, None if keepers else why_not)
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
