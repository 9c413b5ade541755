# SPDX-License-Identifier: Apache-2.0
"""The effects of each number of members, and the cost of the step to it from the present number.

Each step is a plan in which members join or leave at once, under each assignor that a possible
leader runs. A count is *useful* if its busiest member reads less than with every smaller number of
members.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import field, fields, replace
from itertools import chain, takewhile
from operator import attrgetter
from typing import Any

from kafka_rebalance.assignors.assigning import assignor_of
from kafka_rebalance.assignors.registry import Engine, shares_partitions
from kafka_rebalance.errors import AssignorThrows, GroupError, NoMembersLeft
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.field_paths import integer
from kafka_rebalance.group.html_tables import small_table
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec, counted, partition_or_task_counts
from kafka_rebalance.notes.leaders import no_answer
from kafka_rebalance.plans.changes.members import MOST_NEW_MEMBERS, AddMembers, RemoveMembers
from kafka_rebalance.plans.leaders import has_no_answer, plans_by_leader
from kafka_rebalance.plans.rebalance_plan import RebalancePlan
from kafka_rebalance.simulator.timing import Timed, timed_or_why

from .steps import Given, KnownLoad, Loads, Ranges, figures_of, loads_of, ranges_of, spread

_FEWEST_SHOWN, _NEAR, _MOST_BEYOND = 12, 8, 100


class Count(Frozen):
    """A number of members: the group after the step from its present members to this number.

    `fullest`     the largest number of partitions (tasks, in a streams group) of one member;
                  `possible` is the least `fullest` under any assignor, with a proof.
    `moves`, `rebalances`, `stops`, `settled`  the plan's moves, rounds and unavailable
                  partitions, and whether it ends stable.
    `idle`        members without a partition.
    `unsubscribed`  partitions that nobody reads: their topics have lost their last subscriber.
    `busiest`     the load of the busiest member: records a second if rates are known, else
                  partitions; a partition that n members share counts as 1 / n.
    `lag`         the largest number of records that wait for one member; None if no lag is known.
    `catch_up_s`  seconds until no record waits, "never" in JSON if infinite; None if not known.
    `ranges`      figure -> its least and greatest value, if it depends on unknown facts: the ids of
                  new members, which members leave, or which member leads.
    `times`       the simulated times, if `how_long`.
    """

    members: int
    fullest: int
    possible: int
    moves: int
    rebalances: int
    settled: bool
    stops: int
    idle: int
    unsubscribed: int
    busiest: float
    lag: float | None
    catch_up_s: float | None
    useful: bool = False
    ranges: Ranges = field(default_factory=dict, hash=False)
    times: Timed | None = None
    loads: Loads = field(default=(), repr=False)
    stopped_rate: float = field(default=0.0, repr=False)
    may_lose: bool = field(default=False, repr=False)
    """Whether so many members leave that these could be all subscribers of a topic."""

    def to_dict(self) -> dict[str, Any]:
        row = {one.name: getattr(self, one.name) for one in fields(self) if one.repr}
        never = {"catch_up_s": "never"} if self.catch_up_s == math.inf else {}
        return row | never | {"times": self.times and self.times.to_dict()}


class Scaled(Frozen):
    """The counts of one group, in ascending order; its present number of `members` is one of them.

    `summary` is the result in words, `worth` lists the useful counts, and `errors` maps the other
    numbers of members to the reason why they have no result. `times_assumed` names the assumptions
    of simulated times, or the reason why there are none.
    """

    group_id: str
    assignor: str
    members: int
    summary: str
    counts: tuple[Count, ...]
    errors: dict[int, str] = field(hash=False)
    times_assumed: str

    @property
    def now(self) -> Count:
        return next(one for one in self.counts if one.members == self.members)

    @property
    def worth(self) -> list[int]:
        return _worth(self.counts)

    def __str__(self) -> str:
        return f"{self.group_id}: {self.summary}."

    def _repr_html_(self) -> str:
        columns = ("members", "fullest", "possible", "moves", "stops", "idle")
        row = attrgetter(*columns)
        return small_table(self.group_id, columns, self.counts, row, f"{self.summary}.")

    def to_dict(self) -> dict[str, Any]:
        row = {one.name: getattr(self, one.name) for one in fields(self)}
        return row | {"worth": self.worth, "counts": [one.to_dict() for one in self.counts]}


def scale(
    group: GroupSpec,
    counts: Iterable[int] | None = None,
    *,
    rate: Given | None = None,
    lag: Given | None = None,
    capacity: float | None = None,
    samples: int | None = None,
    how_long: bool = False,
    engine: Engine = "rust",
) -> Scaled:
    """Returns the effects of each number of members, and the cost of the step to it from now.

    `counts` are numbers of members; None means a choice of numbers up to twice the present one, or
    12. The number just below the first one is played too: only a comparison with it shows whether
    the first one is useful. `rate` is the records that arrive per second, `lag` the records not yet
    read; a member can read `capacity` records a second. `samples` is how often each step is played
    for its ranges (None: as often as `RebalancePlan.sample` does). With `how_long`, the simulator
    plays each step.

    Errors   those of `plan`; GroupError at `counts[i]`, `rate`, `lag` or `capacity`.
    """
    name, now = assignor_of(group, None), len(group.members)
    rates, lags = spread(group, "rate", rate), spread(group, "lag", lag)
    if capacity is not None and (capacity <= 0 or (rates is None and lags is None)):
        raise GroupError("capacity", "give records a second above 0, and the rate or the lag")
    owns, found, assumed = any(Assignment.owned(group).values()), list[Count](), ""
    errors: dict[int, str] = {}
    wanted = sorted({*(_default(group) if counts is None else checked(counts)), now})
    for members in [wanted[0] - 1, *wanted] if wanted[0] > 1 else wanted:
        try:
            plans = _plans(group, members - now, engine)
        except (AssignorThrows, NoMembersLeft) as error:
            if members == now:
                raise
            errors |= {members: error.problem} if members in wanted else {}
            continue
        stays = owns and members == now
        one = _count(members, plans[0], (rates, lags, capacity), stays=stays)
        one = one if stays else replace(one, ranges=ranges_of(plans, samples))
        if how_long and plans[0].changes:
            times, text = timed_or_why(plans[0])
            first_timed = times is not None and not any(each.times for each in found)
            one, assumed = replace(one, times=times), text if first_timed else assumed or text
        one = replace(one, may_lose=now - members >= _fewest_subscribers(group))
        useful = not one.may_lose and all(
            _is_less(one, other) for other in found if not other.may_lose
        )
        found.append(replace(one, useful=useful))
    noun = "task" if group.subtopologies is not None else "partition"
    shown = tuple(one for one in found if one.members in wanted)
    noun = noun if rates is None else "record"
    more = _beyond(group, wanted[-1], (rates, lags, capacity), engine)
    summary = _summary(shown, more, now, noun, capacity, knows_owners=owns)
    return Scaled(group.group_id, name, now, summary, shown, errors, assumed)


def _plans(group: GroupSpec, more: int, engine: Engine) -> list[RebalancePlan]:
    """Returns a step's plans, one for each assignor that may lead. Errors: those of `plan`."""
    changes = [AddMembers(more)] if more > 0 else [RemoveMembers(count=-more)] if more else []
    led = plans_by_leader(group, changes, engine=engine)
    if has_no_answer(led):
        raise AssignorThrows("assignor", no_answer(led))
    return [one.plan for one in led if one.plan is not None]


def _count(members: int, step: RebalancePlan, load: KnownLoad, *, stays: bool) -> Count:
    """Returns the figures of the group after a step or, if it `stays` as it is, its present
    figures.
    """
    rates, lags, capacity = load
    loads = loads_of(step.before if stays else step.after, rates, lags)
    parts, rate, lag = map(max, zip(*loads, strict=True))
    free = ((lag, (capacity or 0.0) - rate) for _, rate, lag in loads)
    waits_s = (lag / rest if rest > 0 else math.inf for lag, rest in free if lag or rest < 0)
    return Count(
        members,
        possible=step.possible.balance.max,
        settled=stays or step.settled,
        busiest=parts if rates is None else rate,
        lag=None if lags is None else lag,
        catch_up_s=None if capacity is None else max(waits_s, default=0.0),
        loads=loads,
        stopped_rate=math.fsum((rates or {}).get(tp, 0.0) for tp in step.unavailable) * (not stays),
        **figures_of(step, stays=stays),
    )


def _default(group: GroupSpec) -> list[int]:
    now, total = len(group.members), sum(partition_or_task_counts(group).values())
    most = max(2 * now, _FEWEST_SHOWN)
    if not shares_partitions(group.assignor):
        most = min(most, max(now, total) + 1)
    steps = _steps(total, most)
    return [n for n in range(1, most + 1) if abs(n - now) <= _NEAR or n in steps]


def _steps(total: int, most: int) -> set[int]:
    """Returns the numbers of members up to `most` whose fair share of `total` is less than with
    one member fewer.
    """
    return {*{-(-total // n): n for n in range(most, 0, -1)}.values()}


def _beyond(group: GroupSpec, last: int, load: KnownLoad, engine: Engine) -> Iterator[Count]:
    """Yields counts above `last` up to one member per partition: all or, if these are many, only
    the numbers at which the fair share of a topic, or of all partitions, falls.
    """
    totals = [*partition_or_task_counts(group).values()]
    most = sum(totals)
    numbers: Sequence[int] = range(last + 1, most + 1)
    if len(numbers) > _MOST_BEYOND:
        steps = set[int]().union(*(_steps(total, most) for total in {*totals, most}))
        numbers = sorted(n for n in steps if n > last)
    for n in numbers:
        with suppress(AssignorThrows):
            yield _count(n, _plans(group, n - len(group.members), engine)[0], load, stays=False)


def checked(counts: Iterable[int]) -> list[int]:
    """Checks the counts, and returns them as a list. Errors: GroupError at `counts[i]`."""
    return [integer(n, f"counts[{i}]", "number", 0, MOST_NEW_MEMBERS) for i, n in enumerate(counts)]


# In words ---------------------------------------------------------------------------------------


def _summary(
    counts: Sequence[Count],
    more: Iterator[Count],
    members: int,
    noun: str,
    capacity: float | None,
    *,
    knows_owners: bool,
) -> str:
    """Returns the result in words; `members` is the present number, `noun` what members read, and
    `more` are larger counts, which are computed when needed.
    """
    now = next(one for one in counts if one.members == members)
    known = capacity if noun == "record" else None
    said = [] if capacity is None else _kept_up(counts, more, now, known)
    if now.catch_up_s != math.inf:
        said += _compared(counts, now, noun)
    if now.idle:
        said.append(f"{now.idle} of the {counted(members)} have nothing to read")
    if now.possible < now.fullest and noun != "record":
        could = f"could give the fullest member {now.possible} instead of {now.fullest}"
        at = len(said) if any(one.useful for one in counts if one.members > members) else 0
        said.insert(at, f"another assignor {could} (see compare)")
    if len(worth := _worth(counts)) > 1:
        span = f"useful numbers of {counts[0].members} to {counts[-1].members} members"
        said.append(f"{span}: {', '.join(map(str, worth))}")
    if not knows_owners:
        said.append("who owns what now is not known, so every partition counts as a move")
    return "; ".join(said)


def _kept_up(
    counts: Sequence[Count], more: Iterator[Count], now: Count, capacity: float | None
) -> list[str]:
    """Returns clauses: whether the members keep up or, if not, the next number of members that
    would.

    `capacity` is None if no rate is known.
    """
    up = [one for one in counts if not one.may_lose and one.catch_up_s != math.inf]
    best = now if now in up else next((one for one in up if one.members > now.members), None)
    load = reserve = ""
    if best and capacity:
        load = f" ({best.busiest:,.0f} of {capacity:,.0f} records a second)"
        if best.busiest >= capacity:
            freer = next((one.members for one in chain(counts, more) if _is_less(one, best)), None)
            where = f"below {freer} members" if freer else "with any number of members"
            reserve = f", without reserve {where}"
    if best is now:
        verb = "keeps" if now.members == 1 else "keep"
        return [f"{counted(now.members)} {verb} up{load}{reserve}"]
    said = [f"{counted(now.members)} {'does' if now.members == 1 else 'do'} not keep up"]
    if best is None:
        far = next((one.members for one in more if one.catch_up_s != math.inf), None)
        none = f"no number up to {counts[-1].members} does"
        return [*said, f"{none}, {far} do" if far else f"{none}, nor would one for each partition"]
    price = f"{counted(best.moves, 'move')}, {best.stops} without a reader"
    said.append(f"{best.members} are enough{load}{reserve}; the way there: {price}")
    less = [one.members for one in counts if now.members < one.members < best.members]
    if less:
        span = f"{less[0]} to {less[-1]} are" if len(less) > 1 else f"{less[0]} is"
        said.append(f"{span} not enough")
    return said


def _worth(counts: Iterable[Count]) -> list[int]:
    """Returns the useful numbers of members, except those with which the lag grows forever."""
    return [one.members for one in counts if one.useful and one.catch_up_s != math.inf]


def _fewest_subscribers(group: GroupSpec) -> float:
    """Returns the number of subscribers of the topic with the fewest; inf without topics."""
    return min(Counter(t for one in group.members for t in one.topics).values(), default=math.inf)


def _is_less(one: Count, other: Count) -> bool:
    """Returns whether the busiest member of `one` reads less than that of `other`; nearly equal
    sums of rates count as equal.
    """
    return one.busiest < other.busiest * (1 - 1e-9)


def _compared(counts: Sequence[Count], now: Count, noun: str) -> list[str]:
    """Returns clauses: the smallest number of members that does as well as now, the next larger
    ones that bring nothing, and the first one that helps.
    """
    more = [one for one in counts if one.members > now.members]
    useless = [*takewhile(lambda one: not one.useful, more)]
    as_well = next(one for one in counts if not one.may_lose and not _is_less(now, one))
    alike = []
    if as_well is not now:
        fewest = " (the fewest asked about)" * (as_well is counts[0] and as_well.members > 1)
        alike.append(f"{counted(as_well.members)}{fewest} would do as well as {now.members}")
    if useless:
        first, last = useless[0].members, useless[-1].members
        alike.append(f"{first}{f' to {last}' * (first < last)} members bring nothing")
    has = f"the fullest member has {_reads(now, noun)}"
    or_more = " or more" * any(_is_less(now, one) for one in useless)
    said = [f"{', and '.join(alike)}: {has}{or_more} either way"] if alike else []
    if len(useless) < len(more):
        step = more[len(useless)]
        helps = f"{step.members} is the next step" if useless else f"{counted(step.members)} help"
        cost = f"{counted(step.moves, 'move')}, {step.stops} without a reader on the way"
        said.append(f"{helps}: the fullest member then has {_reads(step, noun)} ({cost})")
    return said or [f"{counted(now.members)} now: {has}"]


def _reads(one: Count, noun: str) -> str:
    """Returns text such as `3 partitions`, `6 to 7 partitions` or `1,200 records a second`."""
    number = f"{one.busiest:,.0f}" if one.busiest >= 10 else f"{one.busiest:.3g}"
    if noun != "record" and "fullest" in one.ranges and one.busiest == one.fullest:
        number = " to ".join(map(str, one.ranges["fullest"]))
    return f"{number} {noun}{'s' * (number != '1')}{' a second' * (noun == 'record')}"
