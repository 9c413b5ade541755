# SPDX-License-Identifier: Apache-2.0
"""Draws a random cluster's topics: created, grown, deleted, made again, moved to other racks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random

Command = dict[str, Any]
Partitions = dict[str, list[int]]

NAMES = ("t", "u", "t1", "xt1")
NEVER = "missing"
PATTERNS = ("t.*", "[tu]", "u|t1", "x.*", "t1", "none", "t[", "(?!x).*")
"""Patterns that match different topics; the last two are not patterns of RE2."""
RACKS = ("r0", "r1", "r2")


@dataclass
class RandomTopics:
    """The cluster's topics; a topic that is made again has another id."""

    rng: random.Random
    topics: dict[str, dict[str, Any]] = field(default_factory=dict)
    made: int = 0

    def __post_init__(self) -> None:
        for name in self.rng.sample(NAMES, self.rng.choice((1, 2, 2, 3, 4))):
            self._make(name)

    def command(self) -> Command:
        """Returns the command that makes these the cluster's topics."""
        return {"op": "topics", "topics": {name: dict(one) for name, one in self.topics.items()}}

    def change(self) -> Command:
        """Changes one topic, and returns the command."""
        rng = self.rng
        name = rng.choice(NAMES)
        topic = self.topics.get(name)
        what = rng.choice(("grow", "grow", "delete", "make again", "racks", "nothing"))
        if topic is None:
            self._make(name)
        elif what == "grow":
            topic["partitions"] += rng.choice((1, 1, 3))
        elif what == "delete":
            del self.topics[name]
        elif what == "make again":
            self._make(name)
        elif what == "racks":
            racks = [rng.sample(RACKS, rng.choice((1, 2))) for _ in range(topic["partitions"])]
            topic["racks"] = racks
        return self.command()

    def names(self) -> list[str]:
        """Returns a random subscription; some of its topics may not exist."""
        known = [*NAMES, NEVER]
        return self.rng.sample(known, self.rng.choice((1, 1, 2, 2, 3, 5)))

    def partitions(self) -> Partitions:
        """Returns partitions at random, some of which do not exist."""
        rng = self.rng
        return {
            name: sorted(rng.sample(range(8), rng.randint(0, 3)))
            for name in rng.sample(NAMES, rng.randint(0, 2))
        }

    def existing(self, name: str, partition: int) -> int:
        """Returns `partition` if it exists, else the topic's last one: a broker refuses others."""
        count: int = self.topics.get(name, {"partitions": 1})["partitions"]
        return min(partition, count - 1)

    def _make(self, name: str) -> None:
        self.made += 1
        # Of 24 or 48 partitions, a member can own 12 or 24: a hash set and a map then differ in
        # order.
        count = self.rng.choices((1, 2, 3, 4, 6, 9, 24, 48), (8, 8, 8, 8, 16, 8, 2, 1))[0]
        self.topics[name] = {"partitions": count, "id": f"{name}#{self.made}"}
