# SPDX-License-Identifier: Apache-2.0
"""The effects of a step to another number of members: figures with ranges, and members' loads.

Before a step, some facts are unknown: the ids of new members, which members leave (a plan removes
those that joined last, a Deployment any pods), and sometimes the leader: see `ranges_of`.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, combinations
from random import Random
from typing import Any

from kafka_rebalance.errors import AssignorThrows, GroupError
from kafka_rebalance.group.field_paths import a_type
from kafka_rebalance.group.model import TopicPartition, quoted
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec, partition_or_task_counts
from kafka_rebalance.plans.changes.made_up import PLANNED, Draw
from kafka_rebalance.plans.changes.members import RemoveMembers
from kafka_rebalance.plans.rebalance_plan import RebalancePlan, replay
from kafka_rebalance.plans.samples import enough_draws

Given = Mapping[TopicPartition, float] | Mapping[str, float] | Mapping[TopicPartition | str, float]
"""Partition or topic -> a number; a topic's number is spread evenly over its partitions."""

Numbers = Mapping[TopicPartition, float] | None
"""Partition -> a number, 0 for partitions not in the mapping; None if nothing is known."""

KnownLoad = tuple[Numbers, Numbers, float | None]
"""Records a second that arrive, records that wait, and records a second that a member can read."""

Ranges = dict[str, tuple[int, int]]

Loads = tuple[tuple[float, float, float], ...]
"""For each member: partitions, records a second, records that wait; a partition that n members
share counts as 1 / n.
"""


def figures_of(plan: RebalancePlan, *, stays: bool = False) -> dict[str, Any]:
    """Returns the figures of a step; if the group `stays` as it is, nothing moves or stops."""
    after = plan.before if stays else plan.after
    return {
        "fullest": after.balance.max,
        "moves": plan.moves * (not stays),
        "rebalances": len(plan.rounds) * (not stays),
        "stops": len(plan.unavailable) * (not stays),
        "idle": sum(not owned for owned in after.values()),
        "unsubscribed": len(plan.unsubscribed),
    }


def ranges_of(led: Sequence[RebalancePlan], samples: int | None) -> Ranges:
    """Returns figure -> its least and greatest value, for the figures that vary: over the plans
    `led` by all possible leaders, and over `samples` plays of the first of these plans.
    """
    draws = enough_draws(led[0]) if samples is None else samples
    gone = sum(one.count or 0 for one in led[0].changes if isinstance(one, RemoveMembers))
    plays = _other_leaving(led[0], gone, draws) if gone else _other_ids(led[0], draws)
    rows = [figures_of(one) for one in (*led, *plays)]
    each = {name: [row[name] for row in rows] for name in rows[0]}
    return {name: (min(of), max(of)) for name, of in each.items() if min(of) < max(of)}


def _other_ids(planned: RebalancePlan, draws: int) -> Iterator[RebalancePlan]:
    for number in range(1, draws + 1) if planned.has_guesses else ():
        ids = Draw(number, draws, planned.newcomers)
        with suppress(AssignorThrows):  # it may throw only with these ids
            yield replay(planned.group, planned.changes, planned.engine, ids, planned.possible)


def _other_leaving(planned: RebalancePlan, count: int, draws: int) -> Iterator[RebalancePlan]:
    """Yields plans in which other members leave, `count` at a time: all choices, or `draws` random
    ones.
    """
    group, places = planned.group, range(len(planned.group.members))
    chosen: Iterable[Sequence[int]] = combinations(places, count)
    if math.comb(len(places), count) > draws:
        random = Random(f"{group.group_id}/{count}")
        chosen = (random.sample(places, count) for _ in range(draws))
    leave = RemoveMembers(client_id="leaves")  # an id that marks members: no assignor reads it
    for gone in chosen:
        marked = (
            replace(one, client_id=leave.client_id if i in gone else None)
            for i, one in enumerate(group.members)
        )
        other = group.edited(members=tuple(marked))
        with suppress(AssignorThrows):  # it may throw only in this play
            yield replay(other, (leave,), planned.engine, PLANNED, planned.possible)


def loads_of(assignment: Assignment, rates: Numbers, lags: Numbers) -> Loads:
    """Returns each member's load; a partition without a known rate or lag counts as 0."""
    readers = Counter(chain.from_iterable(assignment.values()))

    def load(owned: Sequence[TopicPartition]) -> tuple[float, float, float]:
        def of(numbers: Numbers) -> float:
            return math.fsum((numbers or {}).get(tp, 0.0) / readers[tp] for tp in owned)

        return math.fsum(1 / readers[tp] for tp in owned), of(rates), of(lags)

    return tuple(map(load, assignment.values()))


def spread(group: GroupSpec, path: str, given: Given | None) -> Numbers:
    """Returns partition -> number; a partition's own number replaces the one from its topic.

    Errors   GroupError at `path` for an unknown name or a number below 0; TypeError.
    """
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise TypeError(f"{path}: {a_type(given)} is not a mapping; give {{topic: number}}")
    counts, found = partition_or_task_counts(group), dict[TopicPartition, float]()
    for name, number in sorted(given.items(), key=lambda one: isinstance(one[0], TopicPartition)):
        if not isinstance(number, int | float) or not 0 <= number < math.inf:
            raise GroupError(path, f"{number!r} is not a number from 0 on")
        whole = [TopicPartition(str(name), p) for p in range(counts.get(str(name), 0))]
        each = [name] if isinstance(name, TopicPartition) else whole
        if not each or each[-1].partition >= counts.get(each[-1].topic, 0):
            raise GroupError(path, f"the group has no topic or partition {quoted(str(name))}")
        found |= dict.fromkeys(each, number / len(each))
    return found
