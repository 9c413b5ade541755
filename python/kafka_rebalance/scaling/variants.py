# SPDX-License-Identifier: Apache-2.0
"""Plays a step again: with what nobody knows before it, for ranges; in virtual time, for seconds.

Unknown are the ids of new members, which members leave, and sometimes which member leads. A plan
lets the members leave that joined last. Kubernetes takes the highest numbers of a StatefulSet, and
any pods of a Deployment: so other sets of members leave in the plays, all of them if they are few.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from random import Random
from typing import NamedTuple, Self

from kafka_rebalance.errors import AssignorThrows, GroupError
from kafka_rebalance.group.spec import GroupSpec, counted
from kafka_rebalance.notes.extra_rebalances import extra_rebalances
from kafka_rebalance.notes.may_happen import may_happen
from kafka_rebalance.plans import LedPlan, RebalancePlan
from kafka_rebalance.plans.changes import Change, RemoveMembers
from kafka_rebalance.plans.changes.edits import Edited, GroupEvent, without
from kafka_rebalance.plans.changes.made_up import PLANNED, Draw
from kafka_rebalance.plans.rebalance_plan import replay
from kafka_rebalance.plans.samples import enough_draws

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


@dataclass(frozen=True, slots=True)
class _Leave(Change):
    """These members leave, in one rebalance. Only Python plays it: no text of a change names it."""

    members: tuple[str, ...]

    VERBS = ()

    @classmethod
    def parse(cls, verb: str, value: str) -> Self:
        raise NotImplementedError(verb, value)

    def __str__(self) -> str:
        return f"remove-members={len(self.members)}"

    def events(self, group: GroupSpec) -> list[GroupEvent]:
        del group
        cause = f"{counted(len(self.members))} leave"
        return [GroupEvent(cause, lambda group, _: Edited(without(group, {*self.members})))]


def range_over(planned: RebalancePlan, led: Sequence[LedPlan], samples: int | None) -> Varied:
    """Returns how the figures of a step vary over `samples` plays, and over its leaders."""
    leads = [one.plan for one in led if one.plan is not None]
    draws = enough_draws(planned) if samples is None else samples
    why, plays = _plays(planned, draws)
    again = [*_answered(plays)]
    sources: dict[str, object] = {why: _ranges([planned, *again]), "leader": _ranges(leads)}
    ranges = _ranges([planned, *again, *leads])
    if _may_be_late(planned):
        planned_rounds = len(planned.rounds)
        least, most = ranges.get("rebalances", (planned_rounds, planned_rounds))
        sources["timing"] = ranges["rebalances"] = (least, most + 1)
    depends_on = tuple(source for source, found in sources.items() if found)
    return Varied(len(again), depends_on, ranges)


def _may_be_late(planned: RebalancePlan) -> bool:
    """Returns whether a slow member, or one that joins again, may cause one rebalance more."""
    if any(note.kind == "missed" for note in may_happen(planned)):
        return True
    return bool(planned.rounds) and extra_rebalances(planned.group, planned.changes) is not None


def _plays(planned: RebalancePlan, draws: int) -> "tuple[str, Iterator[RebalancePlan | None]]":
    leaves = next((one for one in planned.changes if isinstance(one, RemoveMembers)), None)
    if leaves is not None and leaves.count:
        chosen = _leaving(planned.group, leaves.count, draws)
        return "leaving", (_replay(planned, (one,), PLANNED) for one in chosen)
    ids = range(1, draws + 1) if planned.has_guesses else ()
    guesses = (Draw(number, draws, planned.newcomers) for number in ids)
    return "ids", (_replay(planned, planned.changes, one) for one in guesses)


def _replay(planned: RebalancePlan, changes: tuple[Change, ...], ids: Draw) -> RebalancePlan | None:
    try:
        return replay(planned.group, changes, planned.engine, ids, planned.possible)
    except AssignorThrows:  # on the group of this play alone
        return None


def _answered(plays: Iterable[RebalancePlan | None]) -> Iterator[RebalancePlan]:
    return (one for one in plays if one is not None)


def _leaving(group: GroupSpec, count: int, draws: int) -> Iterator[_Leave]:
    """Yields `draws` random sets of members that leave, or every set; equal in every run."""
    ids = [member.member_id for member in group.members]
    if comb(len(ids), count) <= draws:
        return map(_Leave, combinations(ids, count))
    random = Random(f"{group.group_id}/{count}")
    return (_Leave(tuple(random.sample(ids, count))) for _ in range(draws))


def _ranges(plays: Sequence[RebalancePlan]) -> Ranges:
    """Returns each figure that is not equal in all plays, with its least and most value."""
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
