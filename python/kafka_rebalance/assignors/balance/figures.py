# SPDX-License-Identifier: Apache-2.0
"""Measures how good an answer of `balanced` or `weighted` is: the field `balance` of result lines.

Mirror: `src/assignors/balance/figures.rs`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.spec import GroupSpec

from .balanced import OBJECTIVE, Objective, spreads_exactly
from .classes import Classes, classify
from .levels import levels
from .weighted import Options, assignment_of, solve
from .weights import loads_of


def balance_figures(
    group: GroupSpec,
    assignment: Mapping[str, Sequence[TopicPartition]],
    objective: Objective = OBJECTIVE,
) -> dict[str, Any]:
    """Returns the figures of an answer that `balanced` computed with this objective.

    greatest     the largest number of partitions of a member (for `weighted`, the largest sum of
                 weights / capacity, in thousandths); `bound` is the least possible value, within
                 the budget if there is one, and `gap` is greatest / bound
    taken        partitions with a present owner that go to another member
    moves        `taken` and the partitions without a present owner
    in_rack      partitions with a replica in their reader's rack
    topic_pairs  pairs of partitions of one topic at one member
    exact        whether each criterion is proven to be best, given those before it
    kept_because "budget" if a larger budget allows a more even load
    """
    classes = classify(group)
    counts = _counts(group, classes, assignment)
    greatest = max(map(len, assignment.values()), default=0)
    within = objective.budget is not None and _is_less_even(classes, assignment)
    is_spread = objective.prefer[-1] == "topics" and counts["topic_pairs"] == _least_pairs(
        group, classes
    )
    return {
        "greatest": greatest,
        "bound": greatest,
        "gap": 1.0,
        **counts,
        "exact": not within and (spreads_exactly(classes) or is_spread),
        "exhausted": False,
        "kept_because": "budget" if within else None,
    }


def weighted_answer(
    group: GroupSpec, options: Options
) -> tuple[dict[str, list[TopicPartition]], dict[str, Any]]:
    """Returns the answer of `weighted` with these options, and its figures: the fields of
    `balance_figures`. `exact` means that `greatest` is the least within the budget.

    exhausted     whether the search stopped at its limit of work
    kept_because  why no more partitions are taken: "tolerance", "min_gain", "budget" or None
    """
    loads = loads_of(group)
    found = solve(group, loads, options)
    answer = assignment_of(group, loads, found.where)

    def shown(level: int) -> float:
        return _thousandths(level * 1000 // loads.scale << loads.shift)

    figures = {
        "greatest": shown(found.greatest),
        "bound": shown(found.bound),
        "gap": _thousandths(found.greatest * 1000 // found.bound if found.bound else 1000),
        **_counts(group, loads.classes, answer),
        "exact": found.exact,
        "exhausted": found.exhausted,
        "kept_because": found.kept_because,
    }
    return answer, figures


def _thousandths(number: int) -> float:
    return number / 1000 if number < 2**53 else number // 1000


def _counts(
    group: GroupSpec, classes: Classes, assignment: Mapping[str, Sequence[TopicPartition]]
) -> dict[str, int]:
    """Returns the counts `taken`, `moves`, `in_rack` and `topic_pairs` of an assignment."""
    racks = {topic.name: topic.racks for topic in group.topics if topic.racks}
    taken = moves = in_rack = topic_pairs = 0
    for m, member in enumerate(group.members):
        owned = assignment[member.member_id]
        for tp in owned:
            owner = classes.owner.get(tp, m)
            moves += classes.owner.get(tp) != m
            taken += owner != m
            near = racks[tp.topic][tp.partition] if tp.topic in racks else ()
            in_rack += member.rack is not None and member.rack in near
        topic_pairs += sum(map(_pairs, Counter(tp.topic for tp in owned).values()))
    return {"taken": taken, "moves": moves, "in_rack": in_rack, "topic_pairs": topic_pairs}


def _is_less_even(classes: Classes, assignment: Mapping[str, Sequence[TopicPartition]]) -> bool:
    squares = sum(len(owned) ** 2 for owned in assignment.values())
    least = 0
    for level in levels(classes):
        members = sum(len(classes.members[k]) for k in level.members)
        least += level.extra * level.load**2 + (members - level.extra) * max(level.load - 1, 0) ** 2
    return squares > least


def _pairs(count: int) -> int:
    return count * (count - 1) // 2


def _least_pairs(group: GroupSpec, classes: Classes) -> int:
    """Returns a lower bound for `topic_pairs`: as if each topic could be spread evenly alone."""
    least = 0
    for topic, count in group.partition_counts().items():
        if topic in classes.class_of_topic:
            sharers = classes.subscribers[classes.class_of_topic[topic]]
            each, more = divmod(count, members := sum(len(classes.members[k]) for k in sharers))
            least += members * _pairs(each) + more * each
    return least
