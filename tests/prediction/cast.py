# SPDX-License-Identifier: Apache-2.0
"""Makes random groups and members for a run, from a seed.

The kinds of groups follow in a cycle: for each library of a leader and each of its assignors, a
group of that library only, and a group of several libraries. kafka-python and aiokafka are two
libraries each: with our plug-ins, and with their own assignors (then no group has other libraries).
Names, subscriptions, patterns, racks, static members and client ids are random.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

JAVA, KAFKA_PYTHON, AIOKAFKA, LIBRDKAFKA, OWN_KAFKA_PYTHON, OWN_AIOKAFKA = LIBRARIES = (
    "java",
    "kafka-python",
    "aiokafka",
    "librdkafka",
    "kafka-python's own",
    "aiokafka's own",
)
OWN = {OWN_KAFKA_PYTHON: "kafka-python/", OWN_AIOKAFKA: "aiokafka/", LIBRDKAFKA: "librdkafka/"}
"""Library -> the beginning of its dialects' names; the other libraries answer as Kafka does."""
ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
RACKS = "abc"
SESSION_MS = 10_000
_ALONE = (OWN_KAFKA_PYTHON, OWN_AIOKAFKA)

_WORDS = ("orders", "refunds", "payments", "clicks", "stock", "a", "t", "audit-log")
_NUMBER = re.compile(r"(.*?)(\d*)")


@dataclass(frozen=True)
class Part:
    """The configuration of a member's client.

    `number` is unique in the group, and part of the session timeout in ms. Records contain the
    session timeout of each member, so it identifies the member even under a new member id.
    """

    number: int
    library: str
    group_id: str
    assignor: str
    client_id: str
    topics: tuple[str, ...]
    group_instance_id: str | None = None
    rack_id: str | None = None
    pattern: str | None = None
    also: str | None = None

    @property
    def assignors(self) -> tuple[str, ...]:
        """Returns the list of assignors; `also` is the assignor that a switch replaces."""
        return (self.assignor,) if self.also is None else (self.assignor, self.also)

    @property
    def subscription(self) -> tuple[str, ...]:
        """Returns the topics, or the pattern that matches them."""
        return self.topics if self.pattern is None else (self.pattern,)

    @property
    def name(self) -> str:
        return f"{self.group_id}/{self.number}"

    @property
    def session_timeout_ms(self) -> int:
        return SESSION_MS + self.number


@dataclass
class Cast:
    """A group: its topics, the brokers of their replicas, and its present members."""

    group_id: str
    leader: str
    assignor: str
    is_mixed: bool
    topics: dict[str, list[list[int]]]
    parts: list[Part]
    random: Random
    numbers: Iterator[int] = field(repr=False)

    def subscribed(self) -> list[str]:
        """Returns the topics with a subscriber; a snapshot has only those."""
        return sorted({topic for part in self.parts for topic in part.topics})

    def like(self, model: Part) -> Part:
        """Returns a new member with the model's configuration and the next number in its ids."""
        clients = {part.client_id for part in self.parts}
        instances = {part.group_instance_id or "" for part in self.parts}
        instance = model.group_instance_id
        return replace(
            model,
            number=next(self.numbers),
            client_id=next_name(model.client_id, clients),
            group_instance_id=instance and next_name(instance, instances),
        )


def casts(seed: int | str, leaders: Sequence[str], brokers: int) -> Iterator[Cast]:
    """Yields groups without end, each with its own source of random numbers."""
    kinds = [
        (leader, assignor, is_mixed)
        for is_mixed in (False, True)
        for leader in leaders
        for assignor in ASSIGNORS
        if assignor in assignors_of(leader) and not (is_mixed and leader in _ALONE)
    ]
    Random(f"{seed}/order").shuffle(kinds)
    for n, (leader, assignor, is_mixed) in enumerate(itertools.cycle(kinds)):
        yield _cast(Random(f"{seed}/{n}"), n, leader, assignor, is_mixed, brokers)


def assignors_of(library: str) -> tuple[str, ...]:
    """Returns a library's assignors; aiokafka has no cooperative assignor, librdkafka no sticky
    one.
    """
    if library == LIBRDKAFKA:
        return tuple(name for name in ASSIGNORS if name != "sticky")
    return ASSIGNORS[:3] if library in (AIOKAFKA, OWN_AIOKAFKA) else ASSIGNORS


def next_name(name: str, taken: Collection[str]) -> str:
    """Returns the next unused name in a deployment's numbering: pod-2 after pod-1.

    A name without a number at its end is returned unchanged.
    """
    match = _NUMBER.fullmatch(name)
    assert match
    if not match[2]:
        return name
    return next(
        candidate
        for n in itertools.count(int(match[2]) + 1)
        if (candidate := f"{match[1]}{n}") not in taken
    )


def _cast(random: Random, n: int, leader: str, assignor: str, is_mixed: bool, brokers: int) -> Cast:
    group_id = f"{random.choice(_WORDS)}-{n}"
    words = random.sample(_WORDS, random.randint(1, 4))
    replicas = random.randint(1, min(2, brokers))
    topics = {
        f"{word}.{n}": [
            random.sample(range(brokers), replicas) for _ in range(random.randint(1, 6))
        ]
        for word in words
    }
    libraries = [leader] * random.randint(2, 4)
    if is_mixed:
        others = [
            one
            for one in LIBRARIES
            if one != leader and one not in _ALONE and assignor in assignors_of(one)
        ]
        libraries += random.choices(others, k=random.randint(1, 2))
    is_counted, is_racked, is_alike = (random.random() < 0.5 for _ in range(3))
    # With different subscriptions, kafka-python's class raises KeyError (docs/reports).
    is_alike = is_alike or (leader, assignor) == (OWN_KAFKA_PYTHON, "roundrobin")
    stem, pod = random.choice(_WORDS), random.choice(_WORDS)
    pattern = f"^.*[.]{n}$" if random.random() < 0.3 else None
    is_alike = is_alike or pattern is not None
    parts = []
    for number, library in enumerate(libraries, 1):
        some = random.sample(sorted(topics), random.randint(1, len(topics)))
        parts.append(
            Part(
                number,
                library,
                group_id,
                assignor,
                client_id=f"{stem}-{number}" if is_counted else stem,
                topics=tuple(topics if is_alike else some),
                group_instance_id=f"{pod}-{number}" if random.random() < 0.35 else None,
                rack_id=random.choice(RACKS[: max(brokers, 2)]) if is_racked else None,
                pattern=pattern,
            )
        )
    numbers = itertools.count(len(parts) + 1)
    return Cast(group_id, leader, assignor, is_mixed, topics, parts, random, numbers)
