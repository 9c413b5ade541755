# SPDX-License-Identifier: Apache-2.0
"""Plays changes in virtual time, to find how long a group stops under each assignor.

The number of rounds does not determine the time. An eager round stops all partitions until the last
member has rejoined, and members rejoin at their next heartbeat. A cooperative rebalance stops only
the partitions that move, but until the second round ends. `simulate --from FILE --seeds 5` also
prints these figures.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from kafka_rebalance.errors import GroupError
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.member.config import CLASSIC, CONSUMER
from kafka_rebalance.plans.changes.bounces import BounceMembers
from kafka_rebalance.plans.changes.change import Change
from kafka_rebalance.plans.changes.members import RemoveMembers
from kafka_rebalance.plans.changes.topics import RemoveTopics
from kafka_rebalance.plans.rebalance_plan import RebalancePlan

from .from_group import Pace, check_playable, scenario_from_group
from .measure import totals
from .run import Run
from .scenario import Scenario
from .seeds import Part, Spread, of_seed, parts_of
from .simulation import Simulation
from .twins import Twins, twins_of

SEEDS = range(1, 6)
MOST_WORK = 20_000
"""The largest product of members and partitions in a group whose changes are also simulated."""


class Timed(Frozen):
    """The simulated times of changes, as ranges over the runs with SEEDS.

    `unread` is the number of partition-ms without a reader. `settled` is the longest time, in ms,
    from an event until the group had settled.
    """

    unread: Spread
    settled: Spread

    def to_dict(self) -> dict[str, Any]:
        spreads = {"unread_partition_ms": self.unread, "settled_ms": self.settled}
        figures = ("least", "median", "most")
        return {
            name: {one: getattr(spread, one) for one in figures} for name, spread in spreads.items()
        }


def timed(group: GroupSpec, changes: Sequence[Change], assignor: str) -> Timed:
    """Times the changes with default settings. Errors: GroupError if they cannot be played."""
    return timed_each(group, changes, [assignor])[0][assignor]


def timed_each(
    group: GroupSpec, changes: Sequence[Change], assignors: Iterable[str]
) -> tuple[dict[str, Timed], str]:
    """Returns the times under each assignor, and the assumptions as text. Errors: see `timed`."""
    partitions = sum(topic.partitions for topic in group.topics)
    scenarios: dict[str, Scenario] = {}
    for assignor in assignors:
        check_playable(assignor)
        if not changes:
            raise GroupError("changes", "none is given, and only a change is timed")
        if len(group.members) * partitions > MOST_WORK:
            problem = f"{len(group.members)} members times {partitions} partitions are too many"
            raise GroupError("members", f"{problem} to be played beside a plan")
        scenarios[assignor] = scenario_from_group(group, changes, assignor=assignor)
    found: dict[str, Timed] = {}
    for assignor, scenario in scenarios.items():
        if assignor in found:
            continue
        others = [one for one in scenarios if one not in found and one != assignor]
        found |= _played(scenario, assignor, list(twins_of(scenario, assignor, others)))
    return {one: found[one] for one in scenarios}, _assumed(group, changes, [*scenarios.values()])


def _played(scenario: Scenario, assignor: str, names: list[str]) -> dict[str, Timed]:
    """Returns the times under `assignor`, and under those of `names` that stay its twins."""
    runs: dict[str, list[Run]] = {name: [] for name in (assignor, *names)}
    for seed in SEEDS:
        twins = Twins(names)
        run = Simulation(of_seed(scenario, seed, SEEDS[0]), twins=twins).run()
        runs[assignor].append(run)
        for name, holds in twins.holds.items():
            held = holds.finish(run.until_ms)
            gaps = tuple(holds.gaps(held, run.until_ms))
            runs[name].append(replace(run, holds=tuple(held), gaps=gaps))
        names = list(twins.holds)
    times = {}
    for name in (assignor, *names):
        unread = Spread.of(totals(one).unavailable_ms for one in runs[name])
        times[name] = Timed(unread, Spread.of(_longest(tuple(parts_of(one))) for one in runs[name]))
    return times


def timed_or_why(plan: RebalancePlan) -> tuple[Timed | None, str]:
    """Returns the times of a plan and their assumptions as text, or None and why there are none."""
    group, changes, assignor = plan.group, plan.changes, plan.assignor
    try:
        times, text = timed_each(group, changes, [assignor])
        return times[assignor], text
    except GroupError as error:
        return None, why_untimed(error)


def why_untimed(error: GroupError) -> str:
    """Returns the text of an error of `timed`; a simpler text if no change is given."""
    return "no change is given" if error.path == "changes" else str(error)


def _assumed(group: GroupSpec, changes: Sequence[Change], played: Sequence[Scenario]) -> str:
    each = {CONSUMER if one.has_consumer_protocol else CLASSIC: _heartbeats(one) for one in played}
    heartbeats = "; ".join(
        text if len(each) == 1 else f"{text} ({protocol} protocol)"
        for protocol, text in each.items()
    )
    deletes = any(isinstance(change, RemoveTopics) for change in changes)
    if deletes and not played[0].has_consumer_protocol:
        most_s = played[0].members[0].config.rebalance_timeout_ms // 1000
        heartbeats += f", automatic commits of Java members, max.poll.interval.ms of {most_s} s"
    return (
        f"medians of {len(SEEDS)} seeds, from the assignor's own first assignment, "
        f"{played[0].assumed().removeprefix('assumed: ')}, members that restart are away for "
        f"{_away(changes)}, {heartbeats}{_static_leavers(group, changes)}"
    )


def _static_leavers(group: GroupSpec, changes: Sequence[Change]) -> str:
    if not any(isinstance(change, RemoveMembers) for change in changes):
        return ""
    if not any(member.group_instance_id for member in group.members):
        return ""
    return " (a static member that stops is missed only when its session ends)"


def _away(changes: Sequence[Change]) -> str:
    bounces = [one for one in changes if isinstance(one, BounceMembers)] or [BounceMembers()]
    given = (Pace().down_ms if one.away_ms is None else one.away_ms for one in bounces)
    return ", ".join(dict.fromkeys(f"{ms / 1000:g} s" for ms in given))


def _heartbeats(scenario: Scenario) -> str:
    """Returns the heartbeat interval and the session timeout of members as text."""
    config = scenario.members[0].config
    session_ms = config.session_timeout_ms
    if scenario.has_consumer_protocol:
        session_ms = scenario.broker.group_consumer_session_timeout_ms
    every = f"heartbeats every {scenario.heartbeat_interval_ms / 1000:g} s"
    return f"{every}, sessions of {session_ms / 1000:g} s"


def _longest(parts: Sequence[Part[int | None]]) -> int | None:
    """Returns the longest time until the group settled; None if it had not settled at the end.

    If the next event comes before the group has settled, the time keeps running. So the stop of a
    static member, after which the group does not settle, counts until the member is back and the
    group has settled.
    """
    longest, since = 0, None
    for part in parts:
        since = part.at_ms if since is None else since
        if part.settled_in_ms is not None:
            longest = max(longest, part.at_ms + part.settled_in_ms - since)
            since = None
    return longest if since is None else None
