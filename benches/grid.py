# SPDX-License-Identifier: Apache-2.0
"""The benchmark grid: the cases of Kafka's own client-side assignor benchmark, and more.

Kafka's benchmark covers only range and cooperative-sticky; the other assignors get the same cases.

A case has M members, P partitions for each member, and T topics of M * P / T partitions each. It
has four more parameters; the star marks values that Kafka's benchmark does not have:

    subscriptions   same        every member subscribes to all topics
                    buckets     five sets of members, each subscribed to its own topics
                    shuffled *  every member subscribes to all topics, each in its own order
                    three *     each member subscribes to 3 random topics
                    tenth *     each member subscribes to a random tenth of the topics
                    sevenths *  each member subscribes to one topic, 12 members to each
                    nested +    a fifth of the members subscribes to a fifth of the topics, another
                                one to these and as many more, and so on
    kind            full        no member owns a partition yet
                    joins       every member owns its partitions of an earlier assignment, except
                                one that has just joined
                    EVENTS +    every member owns its partitions of an assignment before the event
    racks           racks       every partition has replicas in all three racks; the assignors then
                                ignore racks
                    two racks + every partition has replicas in two of three racks
    topology        equal       all topics have as many partitions
                    skewed +    a tenth of the topics has four fifths of the partitions

The plus marks what only Kafka's benchmark of the brokers' assignors has (`shapes`).
"""

from __future__ import annotations

import base64
import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import kafka_rebalance as kr

ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")


class Event(NamedTuple):
    """What happened since the members got what they own: how many joined, how many left, and
    whether each topic had a tenth less partitions.
    """

    joined: int = 0
    left: int = 0
    grows: bool = False


EVENTS = {
    "stable": Event(),
    "one joins": Event(joined=1),
    "many join": Event(joined=100),
    "one leaves": Event(left=1),
    "many leave": Event(left=100),
    "partitions added": Event(grows=True),
}


@dataclass(frozen=True)
class Case:
    """One cell of the grid: a group and the assignor to measure."""

    assignor: str
    members: int
    per_member: int
    topics: int
    subscriptions: str = "same"
    kind: str = "full"
    racks: str = "none"
    topology: str = "equal"
    title: str = ""

    @property
    def partitions(self) -> int:
        return self.members * self.per_member // self.topics * self.topics

    def __str__(self) -> str:
        if self.title:
            return f"{self.title}, {self.assignor}, {self.kind}"
        racks = "" if self.racks == "none" else f", {self.racks}"
        size = f"{self.members} x {self.per_member} / {self.topics}"
        skewed = "" if self.topology == "equal" else f", {self.topology} topics"
        return f"{size}{skewed}, {self.subscriptions}, {self.kind}{racks}, {self.assignor}"

    def group(self) -> kr.GroupSpec:
        """Makes the group to assign."""
        if self.kind in EVENTS:
            return _after_event(self)
        present = self.members - (self.kind == "joins")
        group = _group(self, present)
        if self.kind == "full":
            return group
        before = kr.assign(group, self.assignor)
        # As in Kafka's benchmark, members send a generation only with the sticky assignor.
        generation = 1 if self.assignor == "sticky" else None
        members = tuple(
            replace(m, owned_partitions=before[m.member_id], generation_id=generation)
            for m in group.members
        )
        topics = group.topics
        like = members[-1].topics
        rack = _rack(self, self.members - 1)
        return kr.GroupSpec(
            "grid",
            topics,
            (*members, kr.Member("newMember", like, rack_id=rack)),
            self.assignor,
            max_partitions=10**8,
        )


def _group(case: Case, present: int, *, grown: bool = True) -> kr.GroupSpec:
    names = [f"topic{t}" for t in range(case.topics)]
    at_broker = case.assignor.startswith("consumer/")
    sizes = [size if grown else -(-9 * size // 10) for size in _sizes(case)]
    topics = tuple(
        kr.Topic(name, size, _racks(case, size), topic_id=_topic_id(name) if at_broker else None)
        for name, size in zip(names, sizes, strict=True)
    )
    members = tuple(
        kr.Member(f"member{m}", subscribed, rack_id=_rack(case, m))
        for m, subscribed in enumerate(_subscriptions(case, names, present))
    )
    return kr.GroupSpec("grid", topics, members, case.assignor, max_partitions=10**8)


def _sizes(case: Case) -> list[int]:
    """Returns each topic's partitions; of skewed topics, a tenth has four fifths of them all."""
    each = case.members * case.per_member // case.topics
    if case.topology == "equal":
        return [each] * case.topics
    large = max(1, case.topics // 10)
    small = max(1, each * case.topics // 5 // (case.topics - large))
    return [(each * case.topics - small * (case.topics - large)) // large] * large + [small] * (
        case.topics - large
    )


def _racks(case: Case, size: int) -> tuple[tuple[str, ...], ...] | None:
    if case.racks == "none":
        return None
    copies = 3 if case.racks == "racks" else 2
    return tuple(tuple(f"rack{(p + copy) % 3}" for copy in range(copies)) for p in range(size))


def _after_event(case: Case) -> kr.GroupSpec:
    """Returns a group of `members` members, which own what they had before the event."""
    group, event = _group(case, case.members), EVENTS[case.kind]
    left = [replace(one, member_id=f"left-{one.member_id}") for one in group.members[: event.left]]
    stayed = group.members[: case.members - event.joined]
    earlier = _group(case, case.members, grown=not event.grows)
    most = 10**8
    before = kr.assign(
        kr.GroupSpec("grid", earlier.topics, (*stayed, *left), case.assignor, max_partitions=most)
    )
    members = tuple(replace(one, owned_partitions=before[one.member_id]) for one in stayed)
    members += group.members[len(stayed) :]
    return kr.GroupSpec("grid", group.topics, members, case.assignor, max_partitions=most)


def _topic_id(name: str) -> str:
    digest = hashlib.md5(name.encode(), usedforsecurity=False).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _rack(case: Case, member: int) -> str | None:
    return None if case.racks == "none" else f"rack{member % 3}"


def _subscriptions(case: Case, names: list[str], present: int) -> Iterator[tuple[str, ...]]:
    if case.subscriptions == "same":
        yield from [tuple(names)] * present
    elif case.subscriptions == "buckets":
        buckets = min(5, present)
        topics, members = -(-len(names) // buckets), -(-present // buckets)
        for m in range(present):
            start = m // members * topics
            yield tuple(names[start : start + topics])
    elif case.subscriptions == "nested":
        for m in range(present):
            yield tuple(names[: len(names) * (m % 5 + 1) // 5])
    elif case.subscriptions == "sevenths":
        for m in range(present):
            yield (names[m // 12],)
    else:
        rng = random.Random(f"{case.members}/{case.topics}/{case.subscriptions}")
        parts = {"three": 3, "tenth": max(1, len(names) // 10), "shuffled": len(names)}
        count = parts[case.subscriptions]
        for _ in range(present):
            yield tuple(rng.sample(names, min(count, len(names))))


def grid(assignors: Sequence[str] = ASSIGNORS) -> Iterator[Case]:
    """Yields all combinations that give each topic a partition; only `two racks` is not Kafka's."""
    for racks in ("none", "racks", "two racks"):
        for members in (100, 500, 1000, 5000, 10_000):
            for per_member in (5, 10, 50):
                for topics in (10, 100, 1000):
                    if members * per_member < topics:
                        continue
                    for subscriptions in ("same", "buckets"):
                        for kind in ("full", "joins"):
                            for assignor in assignors:
                                yield Case(
                                    *(assignor, members, per_member, topics),
                                    *(subscriptions, kind, racks),
                                )


def shapes(assignors: Sequence[str]) -> Iterator[Case]:
    """Yields the shapes of Kafka's ConsumerAssignorBenchmark (apache/kafka#23491)."""
    for topology in ("equal", "skewed"):
        for subscriptions in ("same", "buckets", "nested"):
            for racks in ("none", "two racks"):
                for kind in ("full", *EVENTS):
                    for assignor in assignors:
                        rest = subscriptions, kind, racks, topology
                        yield Case(assignor, 1000, 10, 100, *rest)


def shuffled() -> Iterator[Case]:
    """Yields cases outside Kafka's grid: equal subscriptions, but no two lists are in one order.

    Lists in equal order need no hash of a name; these lists need the hashes of all names.
    """
    for members, per_member, topics in (
        (100, 5, 10),
        (100, 50, 100),
        (1000, 5, 100),
        (1000, 50, 100),
        (1000, 50, 1000),
        (10_000, 10, 100),
    ):
        for kind in ("full", "joins"):
            for assignor in ASSIGNORS:
                yield Case(assignor, members, per_member, topics, "shuffled", kind)


def overlapping() -> Iterator[Case]:
    """Yields cases outside Kafka's grid: overlapping subscriptions, the hardest to balance."""
    for members, per_member, topics in ((100, 10, 100), (1000, 10, 100), (1000, 50, 1000)):
        for subscriptions in ("three", "tenth"):
            for kind in ("full", "joins"):
                for assignor in ("sticky", "cooperative-sticky"):
                    yield Case(assignor, members, per_member, topics, subscriptions, kind)


def reported() -> Iterator[Case]:
    """Yields cases that users have reported as slow."""
    for kind in ("full", "joins"):
        for assignor in ASSIGNORS:
            # aiokafka issue 1176: seven topics, each with 12 of the 84 members as subscribers.
            yield Case(assignor, 84, 10, 7, "sevenths", kind, title="84 members, 7 topics")
            yield Case(assignor, 450, 7, 45, "same", kind, title="450 members, 3,150 partitions")
            yield Case(assignor, 20, 10, 10, "three", kind, title="20 members, 200 partitions")
            yield Case(assignor, 2000, 500, 100, "same", kind, title="a million partitions")
