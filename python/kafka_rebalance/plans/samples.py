"""How much of a plan hangs on ids that nobody knows yet.

Member ids break ties: in the order of names for range and roundrobin, in Java's hash order for the
sticky assignors. A plan names new members by made-up ids; here the same plan is played again with
others, drawn at random from a seed, and what comes out is counted.

    certain     ends the same way in every draw: with the same member, or with some new one
    depends     ends differently in some draws

New members that join alike cannot be told apart, so that "some new member" is one outcome.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from kafka_rebalance.changes.made_up import MadeUp
from kafka_rebalance.model import TopicPartition

from .plan import RebalancePlan, replay

NEW = "a new member"


@dataclass(frozen=True, slots=True)
class Samples:
    """`moved[tp]`: in how many draws the partition ends elsewhere than it began.

    `ends[tp]` counts with whom: a member id of the group as it is, or NEW. `draws` does not count
    the plan's own, which `ends` does.
    """

    draws: int
    moved: dict[TopicPartition, int]
    ends: dict[TopicPartition, Counter[str]]

    @property
    def depends(self) -> frozenset[TopicPartition]:
        """What does not end the same way in every draw."""
        return frozenset(tp for tp, ends in self.ends.items() if len(ends) > 1)

    def to_dict(self) -> dict[str, Any]:
        return {
            "draws": self.draws,
            "partitions": [
                {
                    "topic": tp.topic,
                    "partition": tp.partition,
                    "moved": self.moved[tp],
                    "depends_on_ids": len(ends) > 1,
                    "ends": dict(sorted(ends.items())),
                }
                for tp, ends in self.ends.items()
            ],
        }


def sample(plan: RebalancePlan, draws: int) -> Samples:
    """Plays a plan again `draws` times, each with other ids for the members that are not there yet.

    Draw i of a group always has the same ids. Errors: those of `plan`.
    """
    began = {tp: member_id for member_id, owned in plan.before.items() for tp in owned}
    moved: Counter[TopicPartition] = Counter()
    ends: dict[TopicPartition, Counter[str]] = {}
    for draw in range(draws + 1):
        played = plan if draw == 0 else _again(plan, draw)
        for tp, end in _ends(played).items():
            ends.setdefault(tp, Counter())[end] += 1
            moved[tp] += draw > 0 and began.get(tp) != end
    return Samples(draws, {tp: moved[tp] for tp in ends}, ends)


def _again(plan: RebalancePlan, draw: int) -> RebalancePlan:
    ids = MadeUp(plan.group.group_id, draw, instead_of=plan.made_up)
    return replay(plan.group, plan.changes, plan.engine, ids)


def _ends(plan: RebalancePlan) -> dict[TopicPartition, str]:
    origins = plan.steps[-1].origins
    return {
        tp: origins.get(member_id, NEW) for member_id, owned in plan.after.items() for tp in owned
    }
