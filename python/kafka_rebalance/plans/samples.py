# SPDX-License-Identifier: Apache-2.0
"""Measures how much of a plan depends on the unknown ids of new members.

Member ids break ties: by name for range and roundrobin, in Java's hash order for the sticky
assignors. A plan uses made-up ids for new members. Each *draw* plays the plan again with other ids,
chosen at random from a seed. Then a partition

    is certain   if its last owner in the plan and in every draw is one member, or always a new
                 member
    depends      if its last owner differs

A draw changes the UUIDs. If the name before a new member's UUID is a guess, a draw also changes
this name: the draws spread it over the positions among the sorted names of the other members
(`changes.made_up`). A name that is given, or that all members share, is certain. A draw also lists
the topics of new subscriptions in another order, if the answer can depend on it
(`changes.edits`). All new members count as one, because nothing distinguishes them.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from kafka_rebalance.assignors.assigning import partitions_from
from kafka_rebalance.errors import AssignorThrows
from kafka_rebalance.group.html_tables import small_table
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.spec import counted

from .rounds import LazyFields

if TYPE_CHECKING:
    import kafka_rebalance._core as _core

    from .rebalance_plan import RebalancePlan

NEW = "a new member"
FEWEST_DRAWS, MOST_DRAWS = 8, 32


@dataclass(frozen=True, slots=True)
class Samples(LazyFields):
    """The last owner of each partition in `draws` runs of a plan with other ids.

    `moved[tp]` is the number of draws in which the partition changes its owner. `ends[tp]` counts
    the draws by the partition's last owner: a member id of the given group, or NEW. `planned[tp]`
    is the partition's last owner in the plan itself, which is not among the draws. `depends` holds
    the partitions whose last owner is not the same in the plan and all draws. `moves` lists the
    moves of each draw. `varied` is True if the draws also change names before the UUID,
    `has_newcomers` if they change an id of any new member. `places_guessed` is True if they change
    racks of new partitions' replicas, `topics_guessed` if they change the order of topics in
    subscriptions, `topic_ids_guessed` if they change ids of new topics. `throws` lists the errors
    of further draws, in which the leader's assignor throws; `draws` does not count these.
    """

    draws: int
    varied: bool
    planned: dict[TopicPartition, str] = field(repr=False, hash=False)
    moved: dict[TopicPartition, int] = field(repr=False, hash=False)
    ends: dict[TopicPartition, Counter[str]] = field(repr=False, hash=False)
    depends: frozenset[TopicPartition] = field(repr=False)
    moves: tuple[int, ...]
    has_newcomers: bool = True
    places_guessed: bool = False
    topics_guessed: bool = False
    topic_ids_guessed: bool = False
    throws: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """Returns a sentence: how much of the plan depends on its guesses."""
        samples = f"{counted(self.draws, 'sample')} of {' and '.join(self._guessed())}"
        depends, moves = len(self.depends), sorted(self.moves)
        if not self.draws:
            return f"All {counted(len(self.throws), 'sample')} fail: {self.throws[0]}."
        if not depends:
            alike = " (all new members count as one)" if self.has_newcomers else ""
            return f"In {samples}, every partition ends at one and the same member{alike}."
        between = f"{moves[0]} to {counted(moves[-1], 'move')}" if moves[0] < moves[-1] else ""
        ends = "ends" if depends == 1 else "end"
        return (
            f"In {samples}: {between or counted(moves[-1], 'move')}; {depends} of "
            f"{counted(len(self.moved), 'partition')} {ends} at different members."
        )

    def with_ends(self, tp: TopicPartition, before: str, outcome: str) -> str:
        """Returns the plan's `outcome` for a partition, and how many samples agree with it.

        If the samples most often have another outcome, the result begins with that outcome.
        """
        guessed = " and ".join(self._guessed()).replace("UUIDs", "UUIDs of new members (*)")
        samples = counted(self.draws, "sample")
        if tp not in self.depends:
            return f"{outcome} With other {guessed}, it ends there too, in {samples}."
        common = self.ends[tp].most_common(3)
        ends = ", ".join(f"{who} {counted(each, 'time')}" for who, each in common)
        who, most = common[0]
        if most == self.ends[tp][self.planned.get(tp, "")]:
            return f"{outcome} This is not certain: in {samples} of {guessed}, it ends with {ends}."
        verb = "stays" if who == before else "ends"
        others = "".join(f", with {other} in {each}" for other, each in common[1:])
        return (
            f"{tp} most often {verb} with {who}: in {most} of {samples} of {guessed}{others}. "
            f"With the guesses of this plan, {outcome}"
        )

    def _guessed(self) -> list[str]:
        """Returns the names of the guessed facts in which the samples differ."""
        guessed = ["racks of new replicas"] if self.places_guessed else []
        if self.has_newcomers:
            guessed += ["client ids", "UUIDs"] if self.varied else ["UUIDs"]
        guessed += ["topic ids"] if self.topic_ids_guessed else []
        return [*guessed, "the order of topics"] if self.topics_guessed else guessed

    def _repr_html_(self) -> str:
        def row(tp: TopicPartition) -> tuple[object, ...]:
            ends = ", ".join(f"{who} {count}" for who, count in self.ends[tp].most_common())
            return tp, self.moved[tp], ends

        columns = ("partition", "moves", "ends")
        return small_table("", columns, sorted(self.depends), row, self.summary)

    def to_dict(self) -> dict[str, Any]:
        return {
            "draws": self.draws,
            "varied": [
                what
                for what, is_drawn in (
                    ("uuid", self.has_newcomers),
                    ("name", self.varied),
                    ("racks", self.places_guessed),
                    ("topic_order", self.topics_guessed),
                    ("topic_ids", self.topic_ids_guessed),
                )
                if is_drawn
            ],
            "throws": list(self.throws),
            "moves": list(self.moves),
            "partitions": [
                {
                    "topic": tp.topic,
                    "partition": tp.partition,
                    "moved": self.moved[tp],
                    "depends_on_ids": tp in self.depends,
                    "planned": self.planned.get(tp),
                    "ends": dict(sorted(ends.items())),
                }
                for tp, ends in self.ends.items()
            ],
        }


def enough_draws(plan: "RebalancePlan") -> int:
    """Returns how many draws a plan needs: 32 for racks, 8 to 32 for names or topics, else 8."""
    if plan.places_guessed:
        return MOST_DRAWS
    if not plan.topics_guessed and not any(one.basis.is_guess for one in plan.newcomers):
        return FEWEST_DRAWS
    return max(FEWEST_DRAWS, min(MOST_DRAWS, len(plan.group.members) + 1))


def count_ends(plan: "RebalancePlan", draws: Iterable["Callable[[], RebalancePlan]"]) -> Samples:
    """Counts the last owners of partitions; each of `draws` plays the plan with other ids."""
    ends: dict[TopicPartition, Counter[str]] = {}
    moves, throws = [], []
    for play in draws:
        try:
            played = play()
        except AssignorThrows as error:
            throws.append(error.problem)
            continue
        moves.append(played.moves)
        for tp, end in _ends(played).items():
            ends.setdefault(tp, Counter())[end] += 1
    planned = _ends(plan)
    ends = {tp: ends.get(tp, Counter()) for tp in (planned | ends)}
    began = {tp: member_id for member_id, owned in plan.before.items() for tp in owned}
    moved = {tp: sum(each.values()) - each.get(began.get(tp, ""), 0) for tp, each in ends.items()}
    depends = [
        tp
        for tp, each in ends.items()
        if len(each) > 1 or (each and planned.get(tp, "") not in each)
    ]
    return _samples(
        plan,
        moves,
        throws,
        planned=lambda: planned,
        moved=lambda: moved,
        ends=lambda: ends,
        depends=lambda: frozenset(depends),
    )


def counted_in_core(plan: "RebalancePlan", core: "_core.Ends") -> Samples:
    """Returns the result of `count_ends`, for draws that the core has played."""
    names = defaultdict(lambda: NEW, enumerate(one.member_id for one in plan.group.members))

    @cache
    def partitions() -> tuple[TopicPartition, ...]:
        return partitions_from(core.partitions)

    def numbers(column: bytes) -> Sequence[int]:
        return memoryview(column).cast("I")

    def ends() -> dict[TopicPartition, Counter[str]]:
        owners = map(names.__getitem__, numbers(core.owners))
        counts = [*zip(owners, numbers(core.draws), strict=True)]
        # A call of Counter() would take five times longer.
        ends = {tp: Counter.__new__(Counter) for tp in partitions()}
        for each, (start, end) in zip(ends.values(), pairwise(numbers(core.offsets)), strict=True):
            dict.update(each, counts[start:end])
        return ends

    def planned() -> dict[TopicPartition, str]:
        owners = map(names.__getitem__, numbers(core.planned))
        return dict(zip(partitions(), owners, strict=False))

    return _samples(
        plan,
        core.moves,
        planned=planned,
        moved=lambda: dict(zip(partitions(), numbers(core.moved), strict=True)),
        ends=ends,
        depends=lambda: frozenset(partitions_from(core.depends)),
    )


def _samples(
    plan: "RebalancePlan",
    moves: Sequence[int],
    throws: Sequence[str] = (),
    **counts: Callable[[], Any],
) -> Samples:
    return Samples.lazy(
        draws=lambda: len(moves),
        varied=lambda: any(newcomer.basis.is_guess for newcomer in plan.newcomers),
        moves=lambda: tuple(moves),
        has_newcomers=lambda: bool(plan.newcomers),
        places_guessed=lambda: plan.places_guessed,
        topics_guessed=lambda: plan.topics_guessed,
        topic_ids_guessed=lambda: plan.topic_ids_guessed,
        throws=lambda: tuple(throws),
        **counts,
    )


def _ends(plan: "RebalancePlan") -> dict[TopicPartition, str]:
    origins = plan.steps[-1].origins
    return {
        tp: origins.get(member_id, NEW) for member_id, owned in plan.after.items() for tp in owned
    }
