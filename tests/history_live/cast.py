# SPDX-License-Identifier: Apache-2.0
"""The groups of a run and their members.

A group has members of one library; `mixed` has two. A run has one group of each of `KINDS`.
The topics of a quiet group have no new records for longer than the sessions, again and again, and
librdkafka then commits nothing.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

JAVA, OWN_JVM, KAFKA_PYTHON, AIOKAFKA, LIBRDKAFKA = LIBRARIES = (
    "java", "java-own", "kafka-python", "aiokafka", "librdkafka"
)  # fmt: skip
"""`java-own` is a Java member in a JVM of its own, so that it can be killed."""

SESSION_MS = 5_000
HEARTBEAT_MS = 500
COMMIT_MS = 1_000
MOST_POLL_MS = 20_000
START_MEMBERS, MOST_MEMBERS = 3, 4
TOPICS = {"a": 6, "b": 3}
MOST_PARTITIONS = 14


class Kind(NamedTuple):
    name: str
    libraries: tuple[str, ...]
    assignor: str
    is_static: bool = False
    commits: bool = True
    is_quiet: bool = False

    @property
    def is_cooperative(self) -> bool:
        return self.assignor == "cooperative-sticky"


KINDS = (
    Kind("java-range", (JAVA,), "range"),
    Kind("java-cooperative", (JAVA,), "cooperative-sticky"),
    Kind("java-static", (JAVA,), "sticky", is_static=True),
    Kind("java-killed", (OWN_JVM,), "cooperative-sticky"),
    Kind("mixed", (JAVA, KAFKA_PYTHON), "roundrobin"),
    Kind("kafka-python", (KAFKA_PYTHON,), "cooperative-sticky"),
    Kind("kafka-python-static", (KAFKA_PYTHON,), "range", is_static=True),
    Kind("aiokafka", (AIOKAFKA,), "sticky"),
    Kind("librdkafka", (LIBRDKAFKA,), "cooperative-sticky"),
    Kind("librdkafka-static", (LIBRDKAFKA,), "range", is_static=True),
    Kind("silent", (JAVA,), "range", commits=False),
    Kind("quiet-range", (LIBRDKAFKA,), "range", is_quiet=True),
    Kind("quiet-cooperative", (LIBRDKAFKA,), "cooperative-sticky", is_quiet=True),
)


@dataclass(frozen=True)
class Part:
    """A member's client. Its session timeout contains its number, and so identifies it in a record.

    A member id changes with each start.
    """

    number: int
    library: str
    group_id: str
    assignor: str
    topics: tuple[str, ...]
    is_static: bool
    commits: bool

    @property
    def client_id(self) -> str:
        return f"{self.group_id}-{self.number}"

    @property
    def group_instance_id(self) -> str | None:
        return f"{self.client_id}-i" if self.is_static else None

    @property
    def session_timeout_ms(self) -> int:
        return SESSION_MS + self.number


@dataclass
class Cast:
    """A group: its topics with their partitions, and the members that it should have."""

    group_id: str
    kind: Kind
    topics: dict[str, int]
    random: Random
    parts: dict[int, Part] = field(default_factory=dict)
    away: list[Part] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1), repr=False)

    def new(self) -> Part:
        """Returns a member that has not been in the group before."""
        number = next(self._numbers)
        kind = self.kind
        library = kind.libraries[number % len(kind.libraries)]
        topics = sorted(self.topics)[: self.random.choice((1, 2))]
        return Part(
            number, library, self.group_id, kind.assignor, tuple(topics), kind.is_static,
            kind.commits,
        )  # fmt: skip

    def subscribed(self) -> list[str]:
        return sorted({topic for part in self.parts.values() for topic in part.topics})
