# SPDX-License-Identifier: Apache-2.0
"""Facts about the steps of the sticky assignors; `Balanced` and `Held` also serve `broker.py`."""

from typing import Literal

from kafka_rebalance.assignors.classic.claims import NO_GENERATION
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.spec import counted

from .facts import Fact

Outcome = Literal["first", "newer", "equal", "older"]


class Claim(Frozen):
    """A claim to the partition. `outcome` compares its generation with `against`, the generation of
    the claim believed before it.
    """

    member_id: str
    generation: int
    against: int | None
    outcome: Outcome

    def __str__(self) -> str:
        generations = (_generation(self.generation), _generation(self.against))
        return f"{self.member_id} claims it {_CLAIMED[self.outcome].format(*generations)}"


_CLAIMED: dict[Outcome, str] = {
    "first": "({})",
    "newer": "({}, newer than {}) and is believed",
    "equal": "({}, too), so that neither is believed",
    "older": "({}, older than {}), not believed",
}


class ClaimFacts(Fact):
    """All claims to the partition, in the order in which the leader's assignor reads them."""

    claims: tuple[Claim, ...]
    step = "claims"

    def __str__(self) -> str:
        return "; ".join(map(str, self.claims)) or "nobody claims it"


def _generation(generation: int | None) -> str:
    return "no generation" if generation in (None, NO_GENERATION) else f"generation {generation}"


class Algorithm(Fact):
    """The algorithm that runs. `found_equal` is the result of Kafka's test for equal subscriptions,
    which counts a topic that a member lists twice as two; `equal` is True if they are equal.
    """

    found_equal: bool
    equal: bool
    step = "subscriptions"

    def __str__(self) -> str:
        return _ALGORITHM[self.found_equal, self.equal]


_ALGORITHM = {
    (True, True): "all subscribe to the same topics: the constrained algorithm",
    (True, False): "Kafka's test finds unequal subscriptions equal: the constrained algorithm",
    (False, True): "all subscribe to the same topics, but some list a topic twice: the general "
    "algorithm",
    (False, False): "members subscribe to different topics: the general algorithm",
}


class Share(Frozen):
    """The numbers of partitions that a member may have in the constrained algorithm."""

    partitions: int
    members: int
    least: int
    most: int

    def __str__(self) -> str:
        each = str(self.least) if self.least == self.most else f"{self.least} or {self.most}"
        return f"{counted(self.partitions, 'partition')} to {counted(self.members)}: {each} each"


class Kept(Fact):
    share: Share
    member_id: str
    kept: int
    could: int
    step = "keep"
    text = (
        "{0.share}; {0.member_id} keeps it, one of the first {0.kept} by number of {0.could} that "
        "it could keep"
    )


NotKeptWhy = Literal["nobody", "contested", "rack", "share"]


class NotKept(Fact):
    share: Share
    why: NotKeptWhy
    member_id: str | None = None
    kept: int = 0
    could: int = 0
    step = "keep"

    def __str__(self) -> str:
        return f"{self.share}; {_GIVEN_UP[self.why].format(self)}"


_GIVEN_UP = {
    "nobody": "it has no owner that could keep it",
    "contested": "nobody keeps a partition that is claimed twice in one generation",
    "rack": "{0.member_id} gives it up: no replica is in its rack",
    "share": "{0.member_id} could keep {0.could} and keeps the first {0.kept} by number; this is "
    "not one of them",
    "unsubscribed": "{0.member_id} gives it up: it does not subscribe to {0.topic}",
}


class Unassigned(Fact):
    """The partition is one of `unassigned` partitions. `again` is True if a member also keeps it.

    `short` members have fewer than `least` partitions, and `one_more` members may have one more
    than that.
    """

    unassigned: int
    least: int
    short: int
    one_more: int
    again: bool
    step = "to hand out"

    def __str__(self) -> str:
        which = f"{_AGAIN}, and this is" if self.again else "it is"
        room = [f"{counted(self.short)} with fewer than {self.least}"] if self.short else []
        room += [f"{counted(self.one_more)} that may have one more"] if self.one_more else []
        return f"{which} one of {self.unassigned}, for {' and '.join(room) or 'nobody with room'}"


_AGAIN = "a kept partition that does not exist stops the search for unassigned ones"


class Given(Fact):
    """The member that gets the partition; None if the rack pass (`near`) finds no member."""

    member_id: str | None
    near: bool
    was_short: bool = False

    @property
    def step(self) -> str:
        return "rack pass" if self.near else "in turn"

    def __str__(self) -> str:
        what = "had too few" if self.was_short else "may have one more"
        if self.member_id is None:
            return "nobody with room is near a replica"
        if self.near:
            return f"{self.member_id} is the next near a replica of those that {what}"
        return f"by id, the next is {self.member_id}, which {what}"


NotHeldWhy = Literal["nobody", "rack", "unsubscribed"]


class Held(Fact):
    """The owner according to the claims keeps the partition until balancing, unless `why_not` is
    set.
    """

    member_id: str | None
    topic: str
    why_not: NotHeldWhy | None = None
    step = "keep"

    def __str__(self) -> str:
        if self.why_not is None:
            return f"{self.member_id} keeps it for now"
        return _GIVEN_UP[self.why_not].format(self)


class Again(Fact):
    step = "keep"
    text = f"{_AGAIN}: this one is handed out a second time"


Among = Literal["subscribers", "near"]


class Smallest(Fact):
    member_id: str | None
    holds: int
    among: Among
    step = "fewest first"

    def __str__(self) -> str:
        if self.member_id is None:
            return "no subscriber is near a replica or without a rack"
        of = "its subscribers"
        if self.among == "near":
            of += " near a replica or without a rack"
        return f"{self.member_id} has the fewest ({self.holds}) of {of}, ties by id"


class Fixed(Fact):
    member_id: str
    holds: int
    step = "fixed"
    text = (
        "{0.member_id} takes no part in balancing: it has all that it can have "
        "({0.holds}), and nothing of a topic that another subscribes to"
    )


MovedWhy = Literal["previous", "smallest", "instead"]


class Moved(Fact):
    """A move during balancing, with its reason; the `…_holds` are both members' numbers of
    partitions before it.

    `instead` is the partition that should have moved, if this one moved back in its place.
    """

    source: str
    source_holds: int
    destination: str
    destination_holds: int
    why: MovedWhy
    instead: TopicPartition | None = None
    step = "balance"

    def __str__(self) -> str:
        sizes = "{0.source} has {0.source_holds}, {0.destination} {0.destination_holds}"
        return f"{sizes}{_MOVED[self.why]}".format(self)


_MOVED: dict[MovedWhy, str] = {
    "previous": ": it goes to {0.destination}, which had it before",
    "smallest": ", the fewest of its subscribers that take part: it moves to {0.destination}",
    "instead": ": it came from there, and goes back to {0.destination} in place of {0.instead}",
}


class Balanced(Fact):
    member_id: str
    undone: bool

    @property
    def step(self) -> str:
        return "undo" if self.undone else "balance"

    def __str__(self) -> str:
        if self.undone:
            return f"balancing did not lower the score and is undone: {self.member_id} has it"
        return f"balancing leaves it with {self.member_id}"


class Withheld(Fact):
    member_id: str
    claimants: tuple[str, ...]
    step = "withhold"

    def __str__(self) -> str:
        return (
            f"{' and '.join(self.claimants)} may still be reading it: it is withheld from "
            f"{self.member_id} in this round, and the next round assigns again"
        )
