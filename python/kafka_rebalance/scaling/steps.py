# SPDX-License-Identifier: Apache-2.0
"""What a step to another number of members does, how much of that varies, and what members read.

Unknown before a step are the ids of new members, which members leave, and sometimes which member
leads. A plan lets the members leave that joined last. Kubernetes takes the highest numbers of a
StatefulSet, and any pods of a Deployment: so `varied` also lets other sets of members leave.

A partition that several members share counts for each of them with an equal part.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, combinations
from random import Random
from typing import Any, NamedTuple

from kafka_rebalance.errors import AssignorThrows, GroupError
from kafka_rebalance.group.field_paths import a_type
from kafka_rebalance.group.model import TopicPartition, quoted
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec, partition_or_task_counts
from kafka_rebalance.notes.extra_rebalances import extra_rebalances
from kafka_rebalance.notes.may_happen import may_happen
from kafka_rebalance.plans import RebalancePlan
from kafka_rebalance.plans.changes import RemoveMembers
from kafka_rebalance.plans.changes.made_up import PLANNED, Draw
from kafka_rebalance.plans.rebalance_plan import replay
from kafka_rebalance.plans.samples import enough_draws

Given = Mapping[TopicPartition, float] | Mapping[str, float] | Mapping[TopicPartition | str, float]
"""Partition (also as "orders-3") or topic -> a number; a topic's is spread over its partitions."""

Numbers = Mapping[TopicPartition, float] | None
"""Partition -> a number, 0 for those that are not there; None if nothing is known."""

Ranges = dict[str, tuple[int, int]]


class MemberLoad(NamedTuple):
    """The partitions of a member, the records that arrive in a second, and those that wait."""

    partitions: float
    rate: float
    lag: float


def figures_of(plan: RebalancePlan, present: Assignment | None = None) -> dict[str, int]:
    """Returns the figures of a step; `present`: nothing happens, and members own this."""
    after = plan.after if present is None else present
    happens = present is None
    return {
        "fullest": after.balance.max,
        "moves": plan.moves * happens,
        "rebalances": len(plan.rounds) * happens,
        "stops": len(plan.unavailable) * happens,
        "idle": sum(not owned for owned in after.values()),
    }


def varied(
    planned: RebalancePlan, led: Sequence[RebalancePlan], samples: int | None
) -> dict[str, Any]:
    """Returns the fields of a Count on `samples` more plays, and on the plans of other leaders."""
    draws = enough_draws(planned) if samples is None else samples
    gone = sum(one.count or 0 for one in planned.changes if isinstance(one, RemoveMembers))
    plays = [*(_other_leaving(planned, gone, draws) if gone else _other_ids(planned, draws))]
    sources = {"leaving" if gone else "ids": _ranges([planned, *plays]), "leader": _ranges(led)}
    ranges = _ranges([planned, *plays, *led])
    missed = any(note.kind == "missed" for note in may_happen(planned))
    if planned.rounds and (missed or extra_rebalances(planned.group, planned.changes)):
        rounds = len(planned.rounds)
        least, most = ranges.get("rebalances", (rounds, rounds))
        sources["timing"] = {"rebalances": (least, most + 1)}
        ranges |= sources["timing"]
    depends_on = tuple(why for why, found in sources.items() if found)
    return {"draws": len(plays), "depends_on": depends_on, "ranges": ranges}


def _ranges(plays: Sequence[RebalancePlan]) -> Ranges:
    """Returns each figure that is not equal in all plays, with its least and most value."""
    rows = [figures_of(one) for one in plays]
    each = {name: [row[name] for row in rows] for name in rows[0]}
    return {name: (min(of), max(of)) for name, of in each.items() if min(of) < max(of)}


def _other_ids(planned: RebalancePlan, draws: int) -> Iterator[RebalancePlan]:
    for number in range(1, draws + 1) if planned.has_guesses else ():
        ids = Draw(number, draws, planned.newcomers)
        with suppress(AssignorThrows):  # with the ids of this play alone
            yield replay(planned.group, planned.changes, planned.engine, ids, planned.possible)


_LEAVES = "leaves"
"""The client id of members that leave together, and of no other; no assignor reads client ids."""


def _other_leaving(planned: RebalancePlan, count: int, draws: int) -> Iterator[RebalancePlan]:
    """Yields the plans in which `count` other members leave: all of them, or `draws` at random."""
    group, places = planned.group, range(len(planned.group.members))
    chosen: Iterable[Sequence[int]] = combinations(places, count)
    if math.comb(len(places), count) > draws:
        random = Random(f"{group.group_id}/{count}")
        chosen = (random.sample(places, count) for _ in range(draws))
    for gone in chosen:
        marked = (
            replace(one, client_id=_LEAVES if i in gone else None)
            for i, one in enumerate(group.members)
        )
        other, leave = group.edited(members=tuple(marked)), RemoveMembers(client_id=_LEAVES)
        with suppress(AssignorThrows):  # on the group of this play alone
            yield replay(other, (leave,), planned.engine, PLANNED, planned.possible)


def loads_of(assignment: Assignment, rates: Numbers, lags: Numbers) -> tuple[MemberLoad, ...]:
    """Returns the load of each member; what is not known is 0."""
    readers = Counter(chain.from_iterable(assignment.values()))
    weights = (dict.fromkeys(readers, 1.0), rates or {}, lags or {})
    return tuple(
        MemberLoad(*(math.fsum(w.get(tp, 0.0) / readers[tp] for tp in owned) for w in weights))
        for owned in assignment.values()
    )


def spread(group: GroupSpec, path: str, given: Given | None) -> Numbers:
    """Returns partition -> number. The number of a partition replaces that of its topic.

    Errors   GroupError at `path` for an unknown name or a number below 0; TypeError.
    """
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise TypeError(f"{path}: {a_type(given)} is not a mapping; give {{topic: number}}")
    counts = partition_or_task_counts(group)
    of_topics: dict[TopicPartition, float] = {}
    own: dict[TopicPartition, float] = {}
    for name, number in given.items():
        if not isinstance(number, int | float) or not 0 <= number < math.inf:
            raise GroupError(path, f"{number!r} is not a number from 0 on")
        topic, _, digits = str(name).rpartition("-")
        if isinstance(name, str) and name in counts:
            each = number / counts[name]
            of_topics |= {TopicPartition(name, p): each for p in range(counts[name])}
        elif digits.isdecimal() and len(digits) < 11 and int(digits) < counts.get(topic, 0):
            own[TopicPartition(topic, int(digits))] = number
        else:
            raise GroupError(path, f"the group has no topic or partition {quoted(str(name))}")
    return of_topics | own
