# SPDX-License-Identifier: Apache-2.0
"""Plays a step again: with what nobody knows before it, for ranges; in virtual time, for seconds.

Unknown are the ids of new members, which members leave, and sometimes which member leads. A plan
lets the members leave that joined last. Kubernetes takes the highest numbers of a StatefulSet, and
any pods of a Deployment: so other sets of members leave in the plays, all of them if they are few.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from random import Random
from typing import NamedTuple

from kafka_rebalance.errors import AssignorThrows, GroupError
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.notes.extra_rebalances import extra_rebalances
from kafka_rebalance.notes.may_happen import may_happen
from kafka_rebalance.plans import LedPlan, RebalancePlan
from kafka_rebalance.plans.changes import Change, RemoveMembers
from kafka_rebalance.plans.changes.made_up import PLANNED, Draw
from kafka_rebalance.plans.rebalance_plan import replay
from kafka_rebalance.plans.samples import enough_draws

_LEAVES = "leaves"
"""The client id of members that leave together, and of no other; no assignor reads client ids."""

Ranges = dict[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Times:
    """Medians in seconds: until the group has settled, and of partitions without a reader.

    `settled_s` is None if the group had not settled at the end of the median run.
    """

    settled_s: float | None
    unread_partition_s: float


class Varied(NamedTuple):
    """The plays that differ: their number, what they depend on, and the ranges of the figures."""

    draws: int
    depends_on: tuple[str, ...]
    ranges: Ranges


def range_over(planned: RebalancePlan, led: Sequence[LedPlan], samples: int | None) -> Varied:
    """Returns how the figures of a step vary over `samples` plays, and over its leaders."""
    leads = [one.plan for one in led if one.plan is not None]
    draws = enough_draws(planned) if samples is None else samples
    why, plays = _plays(planned, draws)
    again = []
    for group, changes, ids in plays:
        with suppress(AssignorThrows):  # on the group of this play alone
            again.append(replay(group, changes, planned.engine, ids, planned.possible))
    sources: dict[str, Ranges] = {why: _ranges([planned, *again]), "leader": _ranges(leads)}
    ranges = _ranges([planned, *again, *leads])
    if _may_be_late(planned):
        rounds = len(planned.rounds)
        least, most = ranges.get("rebalances", (rounds, rounds))
        sources["timing"] = {"rebalances": (least, most + 1)}
        ranges |= sources["timing"]
    return Varied(len(again), tuple(why for why, found in sources.items() if found), ranges)


def _may_be_late(planned: RebalancePlan) -> bool:
    """Returns whether a slow member, or one that joins again, may cause one rebalance more."""
    if any(note.kind == "missed" for note in may_happen(planned)):
        return True
    return bool(planned.rounds) and extra_rebalances(planned.group, planned.changes) is not None


_Play = tuple[GroupSpec, tuple[Change, ...], Draw]


def _plays(planned: RebalancePlan, draws: int) -> tuple[str, Iterator[_Play]]:
    """Returns what the plays vary, and each play's group, changes and ids."""
    group, changes = planned.group, planned.changes
    gone = sum(one.count or 0 for one in changes if isinstance(one, RemoveMembers))
    if gone:
        leaves = (RemoveMembers(client_id=_LEAVES),)
        return "leaving", ((one, leaves, PLANNED) for one in _leaving(group, gone, draws))
    numbers = range(1, draws + 1) if planned.has_guesses else ()
    ids = (Draw(number, draws, planned.newcomers) for number in numbers)
    return "ids", ((group, changes, one) for one in ids)


def _leaving(group: GroupSpec, count: int, draws: int) -> Iterator[GroupSpec]:
    """Yields the group with `count` members marked, `draws` times or every choice of them."""
    places = range(len(group.members))
    chosen: Iterable[Sequence[int]] = combinations(places, count)
    if comb(len(places), count) > draws:
        random = Random(f"{group.group_id}/{count}")
        chosen = (random.sample(places, count) for _ in range(draws))
    for gone in chosen:
        marked = [
            replace(one, client_id=_LEAVES if i in gone else None)
            for i, one in enumerate(group.members)
        ]
        yield group.edited(members=tuple(marked))


def _ranges(plays: Sequence[RebalancePlan]) -> Ranges:
    """Returns each figure that is not equal in all plays, with its least and most value."""
    if len(plays) < 2:
        return {}
    figures = {
        "fullest": [one.after.balance.max for one in plays],
        "moves": [one.moves for one in plays],
        "rebalances": [len(one.rounds) for one in plays],
        "stops": [len(one.unavailable) for one in plays],
        "idle": [sum(not owned for owned in one.after.values()) for one in plays],
    }
    return {
        name: (min(values), max(values)) for name, values in figures.items() if len({*values}) > 1
    }


def times_of(step: RebalancePlan) -> tuple[Times | None, str]:
    """Returns the times and the assumptions of the simulator, or None and why it has no answer."""
    from kafka_rebalance.simulator.timing import assumed, timed, why_untimed

    try:
        found = timed(step.group, step.changes, step.assignor)
    except GroupError as error:
        return None, why_untimed(error)
    settled, unread = found.settled.median, found.unread.median
    times = Times(None if settled is None else settled / 1000, (unread or 0) / 1000)
    return times, assumed(step.group, step.changes, [step.assignor])
