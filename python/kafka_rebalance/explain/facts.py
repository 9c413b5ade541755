# SPDX-License-Identifier: Apache-2.0
"""The facts of an explanation: each is one sentence about a step, which `step` names.

`reasons.py` finds them; `tests/test_explanations_are_true.py` checks each by another run.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.spec import counted


class Fact(Frozen):
    """One step of an algorithm.

    `text` is a format string for the sentence, unless the subclass has its own `__str__`.
    """

    text: ClassVar[str]

    @property
    def step(self) -> str:
        raise NotImplementedError

    def __str__(self) -> str:
        return self.text.format(self)


class Unknown(Fact):
    """The assignor's steps are unknown, and no other assignor's steps are shown instead.

    `page` is the page that describes the assignor, or "". `kafkas` is Kafka's assignor of this
    name, if its answer can be explained; `agrees` is True if both assignors choose the same member.
    """

    assignor: str
    page: str = ""
    kafkas: str | None = None
    agrees: bool = False
    step = "assignor"

    def __str__(self) -> str:
        text = f"the steps of {self.assignor} are not explained here"
        if self.page:
            text += f"; {self.page} describes them"
        if self.kafkas is None:
            return text
        text += f"; Kafka's {self.kafkas} gives it to"
        if self.agrees:
            return f"{text} the same member, and --assignor {self.kafkas} shows its steps"
        return f"{text} another member, so its steps (--assignor {self.kafkas}) are not these"


class Remembered(Fact):
    """The leader computes nothing in this round: it assigns what it withheld before."""

    assignor: str
    step = "assignor"

    text = "the leader, {0.assignor}, gives what it withheld until nobody claimed it"


class Alike(Fact):
    """The steps are unknown. Kafka's assignor `kafkas` returns an equal answer; its facts follow.

    `reads_other_claims` is True for a class that reads its own library's user data.
    """

    assignor: str
    kafkas: str
    reads_other_claims: bool = False
    step = "assignor"

    def __str__(self) -> str:
        given = (
            ", from the claims that this class reads (without generations, which the line lacks),"
            if self.reads_other_claims
            else ""
        )
        return (
            f"{self.assignor} has steps of its own; for this group, Kafka's {self.kafkas}{given} "
            "gives every member the same partitions in this round, by these steps"
        )


class NotAlike(Fact):
    """The steps are unknown, and `kafkas`, the most similar assignor, returns another answer.

    `where` is the page that describes the assignor, in brackets, or "".
    """

    assignor: str
    where: str
    kafkas: str
    step = "assignor"

    text = (
        "{0.assignor} has steps of its own{0.where}, and for this group Kafka's {0.kafkas} makes "
        "another assignment, so its steps (--assignor {0.kafkas}) do not explain this owner"
    )


class Outcome(Fact):
    """The facts that the answer itself shows, if no steps are known.

    `had` are the members that claimed the partition. `claimed` and `holds` count the owner's
    partitions before and after. `fewer` of the topic's `subscribers` claimed fewer partitions than
    the owner.
    """

    member_id: str
    had: tuple[str, ...]
    claimed: int
    holds: int
    fewer: int
    subscribers: int
    step = "outcome"

    def __str__(self) -> str:
        if self.member_id in self.had:
            return f"{self.member_id} claimed it, and keeps it"
        before = f"{' and '.join(self.had)} claimed it" if self.had else "nobody claimed it"
        less = f"{self.fewer} of {self.subscribers} subscribers claimed fewer"
        if not self.fewer:
            less = f"none of the {self.subscribers} subscribers claimed fewer"
        return (
            f"{before}; {self.member_id}, which claimed {counted(self.claimed, 'partition')}, gets "
            f"it, and holds {self.holds} afterwards; {less}"
        )


class GivenToNobody(Fact):
    """The steps are unknown, and no member gets the partition, because it is withheld."""

    assignor: str
    where: str
    step = "assignor"

    text = (
        "{0.assignor} has steps of its own{0.where}; it gives the partition to nobody in this "
        "round, because the member that is to lose it may still be reading it, and the next round "
        "assigns again"
    )


# Range ------------------------------------------------------------------------------------------


class FairShares(Fact):
    topic: str
    partitions: int
    members: int
    share: int
    extras: int
    step = "shares"

    def __str__(self) -> str:
        extras = f", {self.extras} of them one more" if self.extras else ""
        return (
            f"{self.topic} is shared out by itself: {counted(self.partitions, 'partition')} to "
            f"{counted(self.members)}, {self.share} each{extras}"
        )


class RackPass(Fact):
    """The member that the rack pass chose, or None. `alone` is True if the topic is not
    co-partitioned.
    """

    member_id: str | None
    alone: bool
    step = "rack pass"

    def __str__(self) -> str:
        where = "" if self.alone else ", in all topics that are co-partitioned with it"
        suits = f"near a replica or without a rack{where}"
        if self.member_id is None:
            return f"nobody with room for it is {suits}"
        return f"{self.member_id} is the first with room for it that is {suits}"


class NoRackPass(Fact):
    topic: str
    step = "rack pass"
    text = "{0.topic} takes no part, because racks make no difference to it"


class RangeOf(Fact):
    """The member whose range holds the partition. `place` is the member's number in the order, from
    1.
    """

    member_id: str
    place: int
    holds: tuple[TopicPartition, ...]
    step = "ranges"

    def __str__(self) -> str:
        numbers = ", ".join(str(partition) for _, partition in self.holds)
        several = f"{self.holds[0].topic}[{numbers}]"
        return (
            f"{self.member_id} is number {self.place} in the order of ids, static members first, "
            f"and has {self.holds[0] if len(self.holds) == 1 else several}"
        )


# Round-robin ------------------------------------------------------------------------------------


class Dealt(Fact):
    """The partition's place `at` (from 1 on) in the sorted list of all partitions, of which there
    are `of`.
    """

    members: int
    at: int
    of: int
    step = "row"

    def __str__(self) -> str:
        return (
            f"{counted(self.members)} in a circle, by id, static ones first; partitions in a row, "
            f"by topic and number: this is number {self.at} of {self.of}"
        )


class NextInCircle(Fact):
    """The member that gets the partition; the circle passed over `passed` members before it.

    `before` is the previous partition in the sorted list, with its member; None for the first
    partition.
    """

    member_id: str
    before: tuple[TopicPartition, str] | None
    passed: int
    topic: str
    step = "circle"

    def __str__(self) -> str:
        went = "the circle begins" if self.before is None else "{} went to {}".format(*self.before)
        do = "it does" if self.passed == 1 else "they do"
        over = f", passing over {counted(self.passed)}: {do} not subscribe to {self.topic}"
        return f"{went}; next comes {self.member_id}{over if self.passed else ''}"


def holders(assignment: Mapping[str, Sequence[TopicPartition]], tp: TopicPartition) -> list[str]:
    return [member_id for member_id, owned in assignment.items() if tp in owned]


def lines(facts: Sequence[Fact]) -> list[str]:
    """Returns a line for each fact: its number, the name of its step and its sentence."""
    return [f"{n}. {fact.step}: {fact}" for n, fact in enumerate(facts, 1)]
