# SPDX-License-Identifier: Apache-2.0
"""How long it takes: the changes of a comparison, played in virtual time under each assignor.

Seconds do not follow from rounds: an eager round stops everything, until the last member has heard
of it at its heartbeat; cooperative ones stop only what moves, but until the second round. Both
stand side by side, and `simulate --from FILE --seeds 5` prints the same figures.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.plans.changes import Change

from .from_group import Pace, scenario_from_group
from .seeds import Part, Spread, simulate_seeds

SEEDS = range(1, 6)
MOST_WORK = 20_000
"""Members times partitions of a group that is still played beside its plan."""


@dataclass(frozen=True, slots=True)
class Timed:
    """Over SEEDS: `unread` in partition-ms; `settled` is the longest time, in ms, from a change to
    the end of what it led to.
    """

    unread: Spread
    settled: Spread

    def to_dict(self) -> dict[str, Any]:
        return {
            "unread_partition_ms": _spread(self.unread),
            "settled_ms": _spread(self.settled),
        }


def timed(group: GroupSpec, changes: Sequence[Change], assignor: str) -> Timed:
    """The changes under an assignor, with the settings that the simulator has by default.

    Errors   GroupError for what cannot be played: no change, another subscription, too large.
    """
    partitions = sum(topic.partitions for topic in group.topics)
    if not changes:
        raise GroupError("changes", "without a change there is nothing to time")
    if len(group.members) * partitions > MOST_WORK:
        problem = f"{len(group.members)} members times {partitions} partitions are too many"
        raise GroupError("members", f"{problem} to be played beside a plan")
    runs = simulate_seeds(scenario_from_group(group, changes, assignor=assignor), SEEDS)
    return Timed(
        Spread.of(one.unavailable_ms for one in runs.totals),
        Spread.of(map(_longest, runs.parts)),
    )


def assumed(group: GroupSpec, changes: Sequence[Change], assignor: str) -> str:
    """What the times go by, in a line."""
    scenario = scenario_from_group(group, changes, assignor=assignor)
    config = scenario.members[0].config
    return (
        f"medians of {len(SEEDS)} seeds (--json has the ranges), from each assignor's own first "
        "assignment, "
        f"{scenario.assumed().removeprefix('assumed: ')}, members that restart are away for "
        f"{Pace().down_ms // 1000} s, heartbeats every {config.heartbeat_interval_ms / 1000:g} s, "
        f"sessions of {config.session_timeout_ms / 1000:g} s"
    )


def _longest(parts: Sequence[Part]) -> int | None:
    """A static member's stop is over only when that member is back: it lasts into the next part."""
    longest, since = 0, None
    for part in parts:
        since = part.at_ms if since is None else since
        if part.settled_in_ms is not None:
            longest = max(longest, part.at_ms + part.settled_in_ms - since)
            since = None
    return longest if since is None else None


def _spread(spread: Spread) -> dict[str, int | None]:
    return {"least": spread.least, "median": spread.median, "most": spread.most}
