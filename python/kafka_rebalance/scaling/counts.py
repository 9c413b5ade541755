# SPDX-License-Identifier: Apache-2.0
"""What each number of members of a group brings, and what the step to it from now costs.

1. For each count, the plan of one change: that many members join or leave in one rebalance. It is
   that of the members that may lead (`plans/leaders.py`), so each library's assignor answers.
2. The plan is played again with other ids of new members; of members that leave, with others that
   leave (`variants.py`). The figures of these plays are the count's `ranges`.
3. A count is *useful* if its fullest member has less to read than that of every smaller count:
   fewer records a second if rates are known, else fewer partitions.

>>> from kafka_rebalance import GroupSpec, Member, Topic
>>> members = tuple(Member(f"C{n}", ("t",)) for n in range(1, 5))
>>> group = GroupSpec("g", topics=(Topic("t", 12),), members=members, assignor="range")
>>> for one in scale(group, range(3, 8)).counts:
...     print(one.members, one.fullest, one.useful)
3 4 True
4 3 True
5 3 False
6 2 True
7 2 False
"""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from typing import Any

from kafka_rebalance.assignors.assigning import assignor_of
from kafka_rebalance.assignors.registry import Engine, shares_partitions
from kafka_rebalance.errors import AssignorThrows, GroupError, NoMembersLeft
from kafka_rebalance.group.field_paths import a_type
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec, partition_or_task_counts, require_group
from kafka_rebalance.notes.leaders import no_answer
from kafka_rebalance.plans import LedPlan, RebalancePlan, best_possible, plan, plans_by_leader
from kafka_rebalance.plans.changes import AddMembers, RemoveMembers
from kafka_rebalance.plans.changes.members import MOST_NEW_MEMBERS
from kafka_rebalance.plans.leaders import has_no_answer

from .load import Given, Load, MemberLoad, load_of
from .sentences import answer, to_read
from .variants import Ranges, Times, range_over, times_of

_FEWEST_SHOWN, _MOST_SHOWN, _NEAR = 12, 48, 8


@dataclass(frozen=True, slots=True)
class Count:
    """A number of members: the group after the step from its present members to this number.

    `fullest`     the most partitions (tasks, in a streams group) of one member.
    `reads`       the same, where a partition that members share counts by their share.
    `possible`    the least that the fullest member could have, under any assignor; proven.
    `moves`       gained partitions, added up over all members and rebalances.
    `rebalances`  rebalances until the group has settled (`settled`).
    `stops`       partitions that no member reads in one rebalance or more.
    `idle`        members without a partition.
    `useful`      whether no smaller count does as well.
    `rate`        records a second of the member with the most; None if no rates are known.
    `lag`         records that wait for the member with the most; None if no lag is known.
    `catch_up_s`  seconds until no record waits; infinite if a member never catches up.
    `ranges`      figure -> its least and most value where it depends on something that is not
                  known, as `depends_on` lists it: the "ids" of new members, which members are
                  "leaving", the "leader", or "timing": a slow member may cause one rebalance more.
                  `draws` more plays were compared.
    `times`       the simulated seconds, or None; `times_missing` is then the reason.
    `error`       why there is no answer; all figures are then None.
    """

    members: int
    replicas: int
    fullest: int | None = None
    reads: float | None = None
    possible: int | None = None
    moves: int | None = None
    rebalances: int | None = None
    stops: int | None = None
    idle: int | None = None
    useful: bool = False
    settled: bool | None = None
    rate: float | None = None
    lag: float | None = None
    catch_up_s: float | None = None
    draws: int = 0
    depends_on: tuple[str, ...] = ()
    ranges: Ranges = field(default_factory=dict, hash=False)
    times: Times | None = None
    times_missing: str | None = None
    error: str | None = None
    loads: tuple[MemberLoad, ...] = field(default=(), repr=False)
    stopped_rate: float = field(default=0.0, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields for JSON, which knows no infinite number: `catch_up_s` is "never"."""
        fields = asdict(self)
        del fields["loads"], fields["stopped_rate"]
        never = self.catch_up_s == math.inf
        return fields | {"catch_up_s": "never"} if never else fields


@dataclass(frozen=True, slots=True)
class Scaled:
    """The counts of one group, in ascending order; that of its `members` now is always there.

    `because` is the answer in words. `worth` lists the useful counts. `assumed` says what the
    simulated times assume; None without times.
    """

    group_id: str
    assignor: str
    members: int
    per_replica: int
    because: str
    counts: tuple[Count, ...]
    assumed: str | None = None
    load: Load = field(default=Load(None, None, None), repr=False)

    @property
    def now(self) -> Count:
        """Returns the present count."""
        return next(one for one in self.counts if one.members == self.members)

    @property
    def worth(self) -> list[int]:
        """Returns the useful numbers of members."""
        return [one.members for one in self.counts if one.useful]

    def to_dict(self) -> dict[str, Any]:
        return {
            "group_id": self.group_id,
            "assignor": self.assignor,
            "members": self.members,
            "per_replica": self.per_replica,
            "because": self.because,
            "worth": self.worth,
            "counts": [one.to_dict() for one in self.counts],
            "times_assumed": self.assumed,
        }


def scale(
    group: GroupSpec,
    counts: Iterable[int] | None = None,
    *,
    assignor: str | None = None,
    per_replica: int = 1,
    rate: Given | None = None,
    lag: Given | None = None,
    capacity: float | None = None,
    samples: int | None = None,
    how_long: bool = False,
    engine: Engine = "rust",
) -> Scaled:
    """Returns what each number of members brings, and what the step to it from now costs.

    `counts` are numbers of replicas, each with `per_replica` members (threads); None means up to
    twice the present number. `rate` and `lag` are records a second that arrive, and records not yet
    read; a member can read `capacity` records a second. `samples` is how often each step is played
    with other ids, or other members that leave (None: 8 to 32 times, as `RebalancePlan.sample`).
    With `how_long`, the simulator plays each step.

    Errors   those of `plan`; GroupError at `counts[i]`, `rate`, `lag`, `capacity`, `per_replica`.
             A step that Kafka's assignor does not answer, or that leaves no member, has an `error`.
    """
    require_group(group)
    name = assignor_of(group, assignor)
    load = load_of(group, rate, lag, capacity)
    now, found, assumed = len(group.members), [], None
    if per_replica < 1:
        raise GroupError("per_replica", f"{per_replica} is not a number of members from 1 on")
    wanted = _default(group, per_replica) if counts is None else checked_counts(counts, per_replica)
    for members in sorted({*wanted, now}):
        replicas = -(-members // per_replica)
        # 1.
        try:
            led = _planned(group, assignor, members - now, engine)
            if has_no_answer(led):
                raise AssignorThrows("assignor", no_answer(led))
        except (AssignorThrows, NoMembersLeft) as error:
            found.append(Count(members, replicas, error=str(error.problem)))
            continue
        played = next((one.plan for one in led if one.plan is not None), None)
        one = _count(group, played, members, replicas, load, engine)
        # 2.
        if played is not None:
            one = replace(one, **range_over(played, led, samples)._asdict())
            if how_long:
                times, why = times_of(played)
                one = replace(one, times=times, times_missing=None if times else why)
                assumed = why if times and assumed is None else assumed
        found.append(one)
    # 3.
    marked = _marked(found)
    because = answer(group, marked, per_replica, knows_owners=_owns(group))
    return Scaled(group.group_id, name, now, per_replica, because, marked, assumed, load)


def _planned(
    group: GroupSpec, assignor: str | None, more: int, engine: Engine
) -> tuple[LedPlan, ...]:
    """Returns the plans of the step by leader; none for the present count, if its owners are known.

    Without known owners, the present count is the group's next rebalance.
    """
    if not more and _owns(group):
        return ()
    changes = [AddMembers(more)] if more > 0 else [RemoveMembers(count=-more)] if more else []
    if assignor is None:
        return plans_by_leader(group, changes, engine=engine)
    return (LedPlan(assignor, (), plan(group, assignor, changes, engine=engine)),)


def _owns(group: GroupSpec) -> bool:
    return any(member.owned_partitions for member in group.members)


def _count(
    group: GroupSpec,
    played: RebalancePlan | None,
    members: int,
    replicas: int,
    load: Load,
    engine: Engine,
) -> Count:
    """Returns the figures of a plan; None stands for the group as it is."""
    after = Assignment.owned(group) if played is None else played.after
    unread = {} if played is None else played.unavailable
    loads = load.of_members(after)
    is_shared = shares_partitions(group.assignor)
    if played is not None:
        possible = played.possible.balance
    elif is_shared:
        possible = after.balance
    else:
        possible = best_possible(group, engine=engine).balance
    return Count(
        members,
        replicas,
        fullest=after.balance.max,
        reads=_reads(after) if is_shared else after.balance.max,
        possible=possible.max,
        moves=0 if played is None else played.moves,
        rebalances=0 if played is None else len(played.rounds),
        stops=len(unread),
        idle=sum(not owned for owned in after.values()),
        settled=played is None or played.settled,
        rate=None if load.rate is None else max((one.rate for one in loads), default=0.0),
        lag=None if load.lag is None else max((one.lag for one in loads), default=0.0),
        catch_up_s=load.catch_up_s(loads),
        loads=loads,
        stopped_rate=math.fsum((load.rate or {}).get(tp, 0.0) for tp in unread),
    )


def _reads(assignment: Assignment) -> float:
    each = Load(dict.fromkeys(chain(*assignment.values()), 1.0), None, None)
    return max((one.rate for one in each.of_members(assignment)), default=0.0)


def _marked(found: list[Count]) -> tuple[Count, ...]:
    """Returns the counts, the useful ones marked; sums of rates are equal if nearly equal."""
    least, marked = math.inf, []
    for one in found:
        useful = one.error is None and to_read(one) < least * (1 - 1e-9)
        least = to_read(one) if useful else least
        marked.append(replace(one, useful=useful))
    return tuple(marked)


def _default(group: GroupSpec, per_replica: int) -> list[int]:
    now, total = len(group.members), sum(partition_or_task_counts(group).values())
    most = max(2 * now, _FEWEST_SHOWN * per_replica)
    if not shares_partitions(group.assignor):
        most = max(now + per_replica, min(most, total + per_replica))
    every = range(per_replica, most + 1, per_replica)
    near = _NEAR * per_replica if len(every) > _MOST_SHOWN else most
    steps = {-(-total // n): n for n in reversed(every)}
    return [n for n in every if abs(n - now) <= near or n in steps.values()]


def checked_counts(counts: Iterable[int], per_replica: int) -> list[int]:
    """Returns numbers of members. Errors: GroupError or TypeError at `counts[i]`."""
    wanted = [*counts]
    for i, one in enumerate(wanted):
        if not isinstance(one, int) or isinstance(one, bool):
            raise TypeError(f"counts[{i}]: {a_type(one)} is not a number of members")
        if not 0 <= one * per_replica <= MOST_NEW_MEMBERS:
            problem = f"{one} is not a number from 0 to {MOST_NEW_MEMBERS // per_replica}"
            raise GroupError(f"counts[{i}]", problem)
    return [one * per_replica for one in wanted]
