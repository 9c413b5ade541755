# SPDX-License-Identifier: Apache-2.0
"""The facts of an explanation; each becomes one line about one step of the reference.

`step` is the number of a step in the docstring of the algorithm. Not every step has a fact, so that
lines are numbered separately. `reasons.py` finds the facts in a run of the reference;
`tests/test_explanations_are_true.py` compares each with another run.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kafka_rebalance.group.model import TopicPartition

from .sticky_facts import (
    Again,
    Algorithm,
    Balanced,
    ClaimFacts,
    Fixed,
    Given,
    Held,
    Kept,
    Moved,
    NotKept,
    Smallest,
    Unassigned,
    Withheld,
    count,
)


@dataclass(frozen=True, slots=True)
class Unknown:
    """The assignor is a custom one, whose steps are not known."""

    assignor: str
    step = "assignor"

    def __str__(self) -> str:
        return f"{self.assignor} is a custom assignor, whose steps are not known"


# Range


@dataclass(frozen=True, slots=True)
class FairShares:
    """The shares of a topic's members."""

    topic: str
    partitions: int
    members: int
    share: int
    extras: int
    step = "shares"

    def __str__(self) -> str:
        extras = f", {self.extras} of them one more" if self.extras else ""
        return (
            f"{self.topic} is shared out by itself: {count(self.partitions, 'partition')} to "
            f"{count(self.members)}, {self.share} each{extras}"
        )


@dataclass(frozen=True, slots=True)
class RackPass:
    """The taker of a partition in the rack pass; `alone` means that no topic is co-partitioned."""

    member_id: str | None
    alone: bool
    step = "rack pass"

    def __str__(self) -> str:
        where = "" if self.alone else ", in all topics that are co-partitioned with it"
        suits = f"near a replica or without a rack{where}"
        if self.member_id is None:
            return f"nobody with room for it is {suits}"
        return f"{self.member_id} is the first with room for it that is {suits}"


@dataclass(frozen=True, slots=True)
class NoRackPass:
    """The topic takes no part in the rack pass."""

    topic: str
    step = "rack pass"

    def __str__(self) -> str:
        return f"{self.topic} takes no part, because racks make no difference to it"


@dataclass(frozen=True, slots=True)
class RangeOf:
    """The member whose range has the partition; `place` counts from 1, `holds` is the range."""

    member_id: str
    place: int
    holds: tuple[TopicPartition, ...]
    step = "ranges"

    def __str__(self) -> str:
        numbers = ", ".join(str(partition) for _, partition in self.holds)
        return (
            f"{self.member_id} is number {self.place} in the order of ids, static members first, "
            f"and has {self.holds[0].topic}[{numbers}]"
        )


# Round-robin


@dataclass(frozen=True, slots=True)
class Dealt:
    """The place of a partition in the row of all partitions; `at` counts from 1."""

    members: int
    at: int
    of: int
    step = "row"

    def __str__(self) -> str:
        return (
            f"{count(self.members)} in a circle, by id, static ones first; partitions in a row, by "
            f"topic and number: this is number {self.at} of {self.of}"
        )


@dataclass(frozen=True, slots=True)
class NextInCircle:
    """The next member of the circle, the one before it, and how many members were skipped."""

    member_id: str
    before: tuple[TopicPartition, str] | None
    passed: int
    topic: str
    step = "circle"

    def __str__(self) -> str:
        went = "the circle begins" if self.before is None else "{} went to {}".format(*self.before)
        over = f", passing over {count(self.passed)} that do not subscribe to {self.topic}"
        return f"{went}; next comes {self.member_id}{over if self.passed else ''}"


Fact = (
    Unknown
    | FairShares
    | RackPass
    | NoRackPass
    | RangeOf
    | Dealt
    | NextInCircle
    | ClaimFacts
    | Algorithm
    | Kept
    | NotKept
    | Unassigned
    | Given
    | Held
    | Again
    | Smallest
    | Fixed
    | Moved
    | Balanced
    | Withheld
)


def lines(facts: Sequence[Fact]) -> list[str]:
    """Returns the text of each fact, with its number and step."""
    return [f"{n}. {fact.step}: {fact}" for n, fact in enumerate(facts, 1)]
