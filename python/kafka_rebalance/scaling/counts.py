# SPDX-License-Identifier: Apache-2.0
"""What each number of members brings, and what the step to it from now costs.

1. For each count, the plan of one change: that many members join or leave in one rebalance. It is
   that of the members that may lead (`plans/leaders.py`), so each library's assignor answers.
2. The plan is played again with other ids of new members, or with other members that leave
   (`steps.py`). The figures of these plays are the count's `ranges`.
3. A count is *useful* if its busiest member has less to read than with every smaller count.

>>> from kafka_rebalance import GroupSpec, Member, Topic
>>> members = tuple(Member(f"C{n}", ("t",)) for n in range(1, 5))
>>> group = GroupSpec("g", topics=(Topic("t", 12),), members=members, assignor="range")
>>> [(one.members, one.fullest, one.useful) for one in scale(group, range(4, 7)).counts]
[(4, 3, True), (5, 3, False), (6, 2, True)]
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any

from kafka_rebalance.assignors.assigning import assignor_of
from kafka_rebalance.assignors.registry import Engine, shares_partitions
from kafka_rebalance.errors import AssignorThrows, GroupError, NoMembersLeft
from kafka_rebalance.group.field_paths import integer
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec, partition_or_task_counts, require_group
from kafka_rebalance.notes.leaders import no_answer
from kafka_rebalance.plans import RebalancePlan, plans_by_leader
from kafka_rebalance.plans.changes import AddMembers, RemoveMembers
from kafka_rebalance.plans.changes.members import MOST_NEW_MEMBERS
from kafka_rebalance.plans.leaders import has_no_answer
from kafka_rebalance.simulator.timing import Timed, timed_or_why

from .sentences import answer
from .steps import Given, MemberLoad, Numbers, Ranges, figures_of, loads_of, spread, varied

_FEWEST_SHOWN, _NEAR = 12, 8


@dataclass(frozen=True, slots=True)
class Count:
    """A number of members: the group after the step from its present members to this number.

    `fullest`     the most partitions (tasks, in a streams group) of one member.
    `possible`    the least that the fullest member could have, under any assignor; proven.
    `moves`, `rebalances`, `stops`  the plan's moves, rounds, and unavailable partitions.
    `idle`        members without a partition.
    `busiest`     what the member with the most has to read: records a second if rates are known,
                  else partitions, where one that n members share counts 1 / n.
    `lag`         records that wait for the member with the most; None if no lag is known.
    `catch_up_s`  seconds until no record waits, in JSON "never" in place of infinity; None without
                  `capacity`.
    `ranges`      figure -> its least and most value in `draws` more plays, where it depends on
                  something unknown. `depends_on` lists that: the "ids" of new members, which are
                  "leaving", the "leader", or "timing": a slow member may cause one rebalance more.
    `times`       the simulated times, if `how_long`.
    `error`       why there is no answer; all figures are then None.
    """

    members: int
    fullest: int | None = None
    possible: int | None = None
    moves: int | None = None
    rebalances: int | None = None
    settled: bool | None = None
    stops: int | None = None
    idle: int | None = None
    busiest: float | None = None
    useful: bool = False
    lag: float | None = None
    catch_up_s: float | None = None
    draws: int = 0
    depends_on: tuple[str, ...] = ()
    ranges: Ranges = field(default_factory=dict, hash=False)
    times: Timed | None = None
    error: str | None = None
    loads: tuple[MemberLoad, ...] = field(default=(), repr=False)
    stopped_rate: float = field(default=0.0, repr=False)

    def to_dict(self) -> dict[str, Any]:
        row = {one.name: getattr(self, one.name) for one in fields(self) if one.repr}
        never = {"catch_up_s": "never"} if self.catch_up_s == math.inf else {}
        return row | never | {"times": None if self.times is None else self.times.to_dict()}


@dataclass(frozen=True, slots=True)
class Scaled:
    """The counts of one group, in ascending order; that of its `members` now is always there.

    `because` is the answer in words. `times_assumed` says what simulated times assume, and
    `times_missing` why some are missing.
    """

    group_id: str
    assignor: str
    members: int
    because: str
    counts: tuple[Count, ...]
    times_assumed: str | None = None
    times_missing: str | None = None

    @property
    def now(self) -> Count:
        """Returns the present count."""
        return next(one for one in self.counts if one.members == self.members)

    @property
    def worth(self) -> list[int]:
        """Returns the useful numbers of members."""
        return [one.members for one in self.counts if one.useful]

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
    """Returns what each number of members brings, and what the step to it from now costs.

    `counts` are numbers of members; None means up to twice the present number. `rate` and `lag` are
    records a second that arrive, and records not yet read; a member can read `capacity` records a
    second. `samples` is how often each step is played with other ids, or other members that leave
    (None: 8 to 32 times, as `RebalancePlan.sample`). With `how_long`, the simulator plays each
    step.

    Errors   those of `plan`; GroupError at `counts[i]`, `rate`, `lag`, `capacity`. A step that
             Kafka's assignor does not answer, or that leaves no member, has an `error`.
    """
    require_group(group)
    name, present = assignor_of(group, None), Assignment.owned(group)
    rates, lags = spread(group, "rate", rate), spread(group, "lag", lag)
    if capacity is not None and (capacity <= 0 or (rates is None and lags is None)):
        raise GroupError("capacity", "give records a second above 0, and the rate or the lag")
    now, owns, least, found = len(group.members), any(present.values()), math.inf, list[Count]()
    why: dict[bool, str] = {}
    for members in sorted({*(_default(group) if counts is None else checked(counts)), now}):
        # 1.
        try:
            plans = _plans(group, members - now, engine)
        except (AssignorThrows, NoMembersLeft) as error:
            found.append(Count(members, error=str(error.problem)))
            continue
        stays = members == now and owns
        one = _count(members, plans[0], present if stays else None, rates, lags, capacity)
        assert one.busiest is not None
        # 2.
        if not stays:
            one = replace(one, **varied(plans[0], plans, samples))
        if how_long and plans[0].changes:
            times, text = timed_or_why(plans[0].group, plans[0].changes, plans[0].assignor)
            one, why = replace(one, times=times), {times is not None: text} | why
        # 3.
        useful = one.busiest < least * (1 - 1e-9)  # rates are sums of floats
        least = min(least, one.busiest)
        found.append(replace(one, useful=useful))
    noun = "task" if group.subtopologies is not None else "partition"
    because = answer(found, now, noun if rates is None else "record", knows_owners=owns)
    names = group.group_id, name, now, because
    return Scaled(*names, tuple(found), why.get(True), why.get(False))


def _plans(group: GroupSpec, more: int, engine: Engine) -> list[RebalancePlan]:
    """Returns the plans of the step, one for each assignor that may lead; without `more`, those of
    the next rebalance. Errors: those of `plan`, and AssignorThrows if no leader has an answer.
    """
    changes = [AddMembers(more)] if more > 0 else [RemoveMembers(count=-more)] if more else []
    led = plans_by_leader(group, changes, engine=engine)
    if has_no_answer(led):
        raise AssignorThrows("assignor", no_answer(led))
    return [one.plan for one in led if one.plan is not None]


def _count(
    members: int,
    played: RebalancePlan,
    present: Assignment | None,
    rates: Numbers,
    lags: Numbers,
    capacity: float | None,
) -> Count:
    """Returns the figures of a plan; `present` is the assignment if nothing happens."""
    loads = loads_of(played.after if present is None else present, rates, lags)
    parts, rate, lag = (max(each) for each in zip(*loads, strict=True))
    unread = played.unavailable if present is None and rates else ()
    free = [(one.lag, (capacity or 0.0) - one.rate) for one in loads]
    waits_s = (lag / rest if rest > 0 else math.inf for lag, rest in free if lag or rest < 0)
    return Count(
        members,
        **figures_of(played, present),
        possible=played.possible.balance.max,
        settled=present is not None or played.settled,
        busiest=parts if rates is None else rate,
        lag=None if lags is None else lag,
        catch_up_s=None if capacity is None else max(waits_s, default=0.0),
        loads=loads,
        stopped_rate=math.fsum((rates or {}).get(tp, 0.0) for tp in unread),
    )


def _default(group: GroupSpec) -> list[int]:
    """Returns the counts near now, and up to twice of it those with fewer partitions a member."""
    now, total = len(group.members), sum(partition_or_task_counts(group).values())
    most = max(2 * now, _FEWEST_SHOWN)
    if not shares_partitions(group.assignor):
        most = min(most, max(now, total) + 1)
    steps = {-(-total // n): n for n in range(most, 0, -1)}.values()
    return [n for n in range(1, most + 1) if abs(n - now) <= _NEAR or n in steps]


def checked(counts: Iterable[int]) -> list[int]:
    """Returns the counts. Errors: GroupError at `counts[i]`."""
    return [integer(n, f"counts[{i}]", "number", 0, MOST_NEW_MEMBERS) for i, n in enumerate(counts)]
