# SPDX-License-Identifier: Apache-2.0
"""The result of a run: its rebalances, and the intervals in which members held partitions.

A rebalance begins when the group becomes PreparingRebalance, and ends when it becomes Stable, Empty
or Dead. Each round of it creates a generation. `measure` computes figures of a run.

The start-up of a group is the first ten seconds, in which its first members start. A later member
joins a group that is running, so its start is one of the scenario's events.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from .intervals import Gap, Hold
from .scenario import Happening, Kind, Scenario


@dataclass(slots=True)
class Rebalance:
    """One rebalance; with `is_cut_off`, the coordinator moved before the rebalance had ended.

    In a consumer group, `generation_id` is the group epoch, and `untargeted_ms` the time in which
    no heartbeat had computed a target for it.
    """

    number: int
    causes: list[str]
    from_ms: int
    generation_id: int = 0
    rounds: int = 0
    to_ms: int | None = None
    is_cut_off: bool = False
    untargeted_ms: int = 0

    @property
    def duration_ms(self) -> int | None:
        return None if self.to_ms is None else self.to_ms - self.from_ms


class Absence(NamedTuple):
    """An interval in which a member's process was down, stuck, or unable to read its partitions."""

    member: str
    from_ms: int
    to_ms: int


@dataclass(frozen=True, slots=True)
class Run:
    """A finished run. Times are in ms from the start of the scenario.

    `held` is the noun for the things that members hold: partition, or task. `assumed` is a line of
    text with the assumed costs. `empty_handed` lists (member, time) of each empty assignment.
    `joined_ms` is when the last member of the start-up joined, with the consumer protocol; else 0.
    """

    title: str
    until_ms: int
    held: str
    assumed: str
    members: tuple[str, ...]
    happenings: tuple[Happening, ...]
    holds: tuple[Hold, ...]
    gaps: tuple[Gap, ...]
    rebalances: tuple[Rebalance, ...]
    absences: tuple[Absence, ...]
    empty_handed: tuple[tuple[str, int], ...]
    crashed: Mapping[str, str]
    events: int
    joined_ms: int = 0
    rates: Mapping[str, float] = field(default_factory=dict)  # records per second, by partition

    @property
    def has_epochs(self) -> bool:
        """Returns whether a member joined with the consumer protocol."""
        return self.joined_ms > 0


_START_UP_MS = 10_000


def start_up_until_ms(scenario: Scenario) -> int:
    """Returns the last moment of the start-up, which begins with the start of the first member."""
    return min(one.start_ms for one in scenario.members) + _START_UP_MS


def joined_ms(scenario: Scenario, first_joins: Mapping[str, int]) -> int:
    """Returns when the last member of the start-up joined, with the consumer protocol; else 0.

    `first_joins` maps each member to the time at which it first got an answer to a join.
    """
    if not scenario.has_consumer_protocol:
        return 0
    until = start_up_until_ms(scenario)
    early = {one.name for one in scenario.members if one.start_ms <= until}
    return max((at for name, at in first_joins.items() if name in early), default=0)


def happenings_with_late_starts(scenario: Scenario) -> tuple[Happening, ...]:
    """Returns the scenario's events, and the starts of members after the start-up, by time."""
    until = start_up_until_ms(scenario)
    starts = (
        Happening(at_ms=plan.start_ms, kind=Kind.START, member=plan.name)
        for plan in scenario.members
        if plan.start_ms > until
    )
    return tuple(sorted((*scenario.happenings, *starts), key=lambda one: one.at_ms))
