# SPDX-License-Identifier: Apache-2.0
"""Counts how much of a plan depends on the unknown ids of new members.

Member ids break ties: by name for range and roundrobin, in Java's hash order for the sticky
assignors. A plan uses made-up ids for new members. Each *draw* plays the plan again with other ids,
chosen at random from a seed. Then a partition

    is certain   if its last owner is the same member in the plan and in every draw, or always a new
                 member
    depends      if its last owner differs

A draw changes the UUIDs. If the name before a new member's UUID is a guess, a draw changes it too:
the draws spread it over the positions among the sorted names of the other members
(`changes.made_up`). A name that is given, or that all members share, is certain. A draw also lists
the topics of new subscriptions in another order, if the answer can depend on it
(`changes.topic_order`). All new members count as one, because nothing distinguishes them.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from kafka_rebalance.assignors.assigning import partitions_from
from kafka_rebalance.errors import AssignorThrows
from kafka_rebalance.group.model import TopicPartition

if TYPE_CHECKING:
    import kafka_rebalance._core as _core

    from .rebalance_plan import RebalancePlan

NEW = "a new member"
FEWEST_DRAWS, MOST_DRAWS = 8, 32


@dataclass(frozen=True, slots=True)
class Samples:
    """The last owner of each partition in `draws` plays of a plan with other ids.

    `moved[tp]` is the number of draws in which the partition changes its owner. `ends[tp]` counts
    the draws by the last owner: a member id of the given group, or NEW. `planned[tp]` is the last
    owner in the plan itself, which is not among the draws. `moves` lists the moves of each draw.
    `varied` is True if the draws change names before the UUID too, `has_newcomers` if they change
    any id, `places_guessed` if they change racks of new partitions' replicas, `topics_guessed` the
    order of topics in new subscriptions, and `topic_ids_guessed` ids of new topics. `throws` has an
    error for each further draw in which the leader's assignor throws.
    """

    draws: int
    varied: bool
    planned: dict[TopicPartition, str] = field(repr=False, hash=False)
    moved: dict[TopicPartition, int] = field(repr=False, hash=False)
    ends: dict[TopicPartition, Counter[str]] = field(repr=False, hash=False)
    moves: tuple[int, ...]
    has_newcomers: bool = True
    places_guessed: bool = False
    topics_guessed: bool = False
    topic_ids_guessed: bool = False
    throws: tuple[str, ...] = ()

    @property
    def depends(self) -> frozenset[TopicPartition]:
        """Returns the partitions whose last owner is not the same in the plan and all draws."""
        return frozenset(
            tp
            for tp, ends in self.ends.items()
            if len(ends) > 1 or (ends and self.planned.get(tp, "") not in ends)
        )

    def to_dict(self) -> dict[str, Any]:
        depends = self.depends
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
                    "depends_on_ids": tp in depends,
                    "planned": self.planned.get(tp),
                    "ends": dict(sorted(ends.items())),
                }
                for tp, ends in self.ends.items()
            ],
        }


def enough_draws(plan: "RebalancePlan") -> int:
    """Returns how many draws a plan needs.

    It needs 32 if racks are guessed, 8 to 32 if names or the order of topics are guessed, else 8.
    """
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
    return _samples(plan, moves, planned, moved, ends, throws)


def counted_in_core(plan: "RebalancePlan", core: "_core.Ends") -> Samples:
    """Returns the same counts as `count_ends`, for draws that the core has played."""
    names = defaultdict(lambda: NEW, enumerate(one.member_id for one in plan.group.members))
    planned, moved, offsets, owners, draws = (
        memoryview(column).cast("I")
        for column in (core.planned, core.moved, core.offsets, core.owners, core.draws)
    )
    counts = [*zip(map(names.__getitem__, owners), draws, strict=True)]
    partitions = partitions_from(core.partitions)
    ends = {tp: Counter.__new__(Counter) for tp in partitions}  # Counter() takes five times longer
    for each, (start, end) in zip(ends.values(), pairwise(offsets), strict=True):
        dict.update(each, counts[start:end])
    ended = dict(zip(partitions, map(names.__getitem__, planned), strict=False))
    return _samples(plan, core.moves, ended, dict(zip(partitions, moved, strict=True)), ends)


def _samples(
    plan: "RebalancePlan",
    moves: Sequence[int],
    planned: dict[TopicPartition, str],
    moved: dict[TopicPartition, int],
    ends: dict[TopicPartition, Counter[str]],
    throws: Sequence[str] = (),
) -> Samples:
    return Samples(
        len(moves),
        any(newcomer.basis.is_guess for newcomer in plan.newcomers),
        planned,
        moved,
        ends,
        tuple(moves),
        bool(plan.newcomers),
        plan.places_guessed,
        plan.topics_guessed,
        plan.topic_ids_guessed,
        tuple(throws),
    )


def _ends(plan: "RebalancePlan") -> dict[TopicPartition, str]:
    origins = plan.steps[-1].origins
    return {
        tp: origins.get(member_id, NEW) for member_id, owned in plan.after.items() for tp in owned
    }
