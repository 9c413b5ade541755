# SPDX-License-Identifier: Apache-2.0
"""How much of a plan hangs on ids that nobody knows yet.

Member ids break ties: in the order of names for range and roundrobin, in Java's hash order for the
sticky assignors. A plan names new members by made-up ids; here the same plan is played again with
others, drawn at random from a seed, and the outcomes are counted.

    certain     ends the same way in every draw: with the same member, or with some new one
    depends     ends differently in some draws

Drawn are the UUIDs, and of newcomers whose name before the UUID is a guess also that name: over the
draws it stands in every place among the names of the others (`changes.made_up`). What is not drawn
is assumed: names that are given, or shared by all. New members that join alike cannot be told
apart, so that "some new member" is one outcome.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from kafka_rebalance.group.model import TopicPartition

from .rebalance_plan import Draw, RebalancePlan, replay

NEW = "a new member"
FEWEST_DRAWS, MOST_DRAWS = 8, 32


@dataclass(frozen=True, slots=True)
class Samples:
    """`moved[tp]`: in how many draws the partition ends elsewhere than it began.

    `ends[tp]` counts with whom: a member id of the group as it is, or NEW; `planned[tp]` is where
    the plan itself has it, which no draw counts. `moves` are all moves of each draw. `varied` says
    whether names before the UUID were drawn, too; `has_newcomers` whether any id was, and
    `places_guessed` whether the racks of new partitions' replicas were.
    """

    draws: int
    varied: bool
    planned: dict[TopicPartition, str]
    moved: dict[TopicPartition, int]
    ends: dict[TopicPartition, Counter[str]]
    moves: tuple[int, ...]
    has_newcomers: bool = True
    places_guessed: bool = False

    @property
    def depends(self) -> frozenset[TopicPartition]:
        """What does not end the same way in every draw and in the plan."""
        return frozenset(
            tp for tp, ends in self.ends.items() if len({*ends, self.planned.get(tp, "")}) > 1
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
                )
                if is_drawn
            ],
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


def enough_draws(plan: RebalancePlan) -> int:
    """As many as a guessed name has places among the members, from 8 up to 32; 32 for racks."""
    if plan.places_guessed:
        return MOST_DRAWS
    if not any(newcomer.basis.is_guess for newcomer in plan.newcomers):
        return FEWEST_DRAWS
    return max(FEWEST_DRAWS, min(MOST_DRAWS, len(plan.group.members) + 1))


def sample(plan: RebalancePlan, draws: int) -> Samples:
    """Plays a plan again `draws` times, each with other ids for the members that are not there yet.

    Draw i of n of a group always has the same ids. Errors: those of `plan`.
    """
    began = {tp: member_id for member_id, owned in plan.before.items() for tp in owned}
    planned = _ends(plan)
    moved: Counter[TopicPartition] = Counter()
    ends: dict[TopicPartition, Counter[str]] = {tp: Counter() for tp in planned}
    moves = []
    for draw in range(1, draws + 1):
        drawn = Draw(draw, draws, plan.newcomers)
        played = replay(plan.group, plan.changes, plan.engine, drawn, plan.possible)
        moves.append(played.moves)
        for tp, end in _ends(played).items():
            ends.setdefault(tp, Counter())[end] += 1
            moved[tp] += began.get(tp) != end
    return Samples(
        draws,
        any(newcomer.basis.is_guess for newcomer in plan.newcomers),
        planned,
        {tp: moved[tp] for tp in ends},
        ends,
        tuple(moves),
        bool(plan.newcomers),
        plan.places_guessed,
    )


def _ends(plan: RebalancePlan) -> dict[TopicPartition, str]:
    origins = plan.steps[-1].origins
    return {
        tp: origins.get(member_id, NEW) for member_id, owned in plan.after.items() for tp in owned
    }
