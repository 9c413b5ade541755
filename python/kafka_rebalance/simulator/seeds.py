# SPDX-License-Identifier: Apache-2.0
"""Plays a scenario with several seeds, to find which figures depend on random choices.

A seed decides member ids, network delays, each member's progress in its records, the age of
metadata, and back-offs. With all seeds but the first, the scenario's events are also delayed, by up
to a heartbeat interval. The times in a scenario are round, so without these delays every run would
wait equally long for the next heartbeat. Each figure becomes a range with its median.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.spec import counted

from .measure import (
    Totals,
    rebalances_text,
    settlings,
    stops,
    stops_text,
    totals,
    unavailability,
    without_reader,
)
from .run import Run, start_up_until_ms
from .scenario import Scenario
from .simulation import simulate

_Figure = TypeVar("_Figure")
MEDIAN_OF = 5
"""The number of seeds of `median_seed`."""


class Spread(Frozen):
    """A figure's range (None if no run has the figure). `never` counts runs without it."""

    least: int | None
    median: int | None
    most: int | None
    never: int = 0

    @classmethod
    def of(cls, values: Iterable[int | None]) -> "Spread":
        """Returns the range of the values that are not None; the median is one of the values."""
        values = list(values)
        there = sorted(one for one in values if one is not None)
        never = len(values) - len(there)
        if not there:
            return cls(None, None, None, never)
        return cls(there[0], there[(len(there) - 1) // 2], there[-1], never)

    @property
    def is_one(self) -> bool:
        """Returns whether the figure is equal in all runs."""
        return self.least == self.most and (self.never == 0 or self.least is None)


class Part(NamedTuple, Generic[_Figure]):
    """The figures from one scenario event to the next, of one run or as ranges over all seeds.

    `settled_in_ms` is None if the group did not settle in that time. `stopped` is the number of
    members that worked on nothing for a while; `longest_stop_ms` is the longest such time.
    """

    at_ms: int
    what: str
    settled_in_ms: _Figure
    rebalances: _Figure
    unavailable_ms: _Figure
    stopped: _Figure
    longest_stop_ms: _Figure


class SeedRuns(Frozen):
    """The results of all runs, in the order of the seeds."""

    title: str
    held: str
    assumed: str
    seeds: tuple[int, ...]
    totals: tuple[Totals, ...]
    parts: tuple[tuple[Part[int | None], ...], ...]
    crashed: tuple[dict[str, str], ...]

    def spreads(self) -> dict[str, Spread]:
        return {
            one.name: Spread.of(getattr(each, one.name) for each in self.totals)
            for one in fields(Totals)
        }

    @property
    def summary(self) -> str:
        """Returns one sentence for all runs, with medians and ranges over the seeds."""
        spreads = self.spreads()
        count, unread = spreads["rebalances"], spreads["unavailable_ms"]
        rebalances = f"{count.least} to {count.most} rebalances"
        if count.is_one:
            rebalances = rebalances_text(count.least or 0, spreads["rounds"].median or 0)
        least, most = (f"{(ms or 0) / 1000:,.1f}" for ms in (unread.least, unread.most))
        between = "" if unread.is_one else f" ({least} to {most} with other seeds)"
        idle = f"{(unread.median or 0) / 1000:,.1f} {self.held}-seconds "
        idle += f"{without_reader(self.held)}{between}"
        parts = self.part_spreads()
        stopped = [one.stopped.median or 0 for one in parts]
        longest_ms = max((one.longest_stop_ms.median or 0 for one in parts), default=0)
        stops = stops_text(sum(stopped), max(stopped, default=0), longest_ms)
        moves = counted(spreads["moves"].median or 0, "move")
        return f"{rebalances}; {moves}{stops}; {idle}."

    def part_spreads(self) -> list[Part[Spread]]:
        """Returns the parts with ranges over all seeds; every seed has the same number of parts."""
        return [_over(parts) for parts in zip(*self.parts, strict=True)]


def simulate_seeds(
    scenario: Scenario, seeds: Iterable[int], *, progress: Callable[[int, int], None] | None = None
) -> SeedRuns:
    """Plays a scenario for each seed; calls `progress(number of finished runs, ms in this run)`."""
    sums, parts, crashed, first = [], [], [], None
    seeds = tuple(seeds)
    for place, seed in enumerate(seeds):
        shown = None if progress is None else partial(progress, place)
        run = simulate(of_seed(scenario, seed, seeds[0]), progress=shown)
        first = first or run
        sums.append(totals(run))
        parts.append(tuple(parts_of(run)))
        crashed.append(dict(run.crashed))
    if first is None:
        raise ValueError("seeds: is empty")
    return SeedRuns(
        first.title, first.held, first.assumed, seeds, tuple(sums), tuple(parts), tuple(crashed)
    )


def of_seed(scenario: Scenario, seed: int, first: int) -> Scenario:
    """Returns the scenario with this seed; unless it is the first seed, its events are `shifted`.

    So a table for the first seed shows the times that are written in the scenario.
    """
    one = replace(scenario, seed=seed)
    return one if seed == first else shifted(one)


def median_seed(
    scenario: Scenario, *, progress: Callable[[int, int], None] | None = None
) -> tuple[int, str]:
    """Returns which of MEDIAN_OF seeds has the median time without a reader, and text about it.

    Any other seed may be an extreme case. For `progress`, see `simulate_seeds`.
    """
    seeds = range(scenario.seed, scenario.seed + MEDIAN_OF)
    runs = simulate_seeds(scenario, seeds, progress=progress)
    unread = runs.spreads()["unavailable_ms"]
    places = (i for i, one in enumerate(runs.totals) if one.unavailable_ms == unread.median)
    least, most = (f"{(ms or 0) / 1000:,.1f}" for ms in (unread.least, unread.most))
    between = least if unread.is_one else f"{least} to {most}"
    seed = seeds[next(places)]
    text = f"seed {seed}, the median of {MEDIAN_OF}, which have {between} {runs.held}-seconds"
    return seed, f"{text} {without_reader(runs.held)}"


def shifted(scenario: Scenario) -> Scenario:
    """Returns the scenario with later events: random delays of up to a heartbeat interval.

    Events that belong together share one delay: all events of a member, and events that follow each
    other within the interval. Starts of members in the start-up are not delayed.
    """
    interval = scenario.heartbeat_interval_ms
    start_up = start_up_until_ms(scenario)
    late = [one for one in scenario.members if one.start_ms > start_up]
    times = [(one.at_ms, one.member) for one in scenario.happenings]
    times += [(one.start_ms, one.name) for one in late]
    by = _delays(times, interval, random.Random(f"{scenario.seed} shifts"))

    def later(at: int) -> int:
        return min(at + by[at], scenario.until_ms)

    happenings = tuple(replace(one, at_ms=later(one.at_ms)) for one in scenario.happenings)
    members = tuple(
        replace(one, start_ms=later(one.start_ms)) if one.start_ms > start_up else one
        for one in scenario.members
    )
    return replace(scenario, happenings=happenings, members=members)


def _delays(
    times: Iterable[tuple[int, str]], interval_ms: int, rng: random.Random
) -> dict[int, int]:
    """Returns the delay at each time; `times` lists the (time, member) of each event.

    `leader` links times that belong together; all take the delay of one of them (union-find).
    """
    leader: dict[int, int] = {}
    first_of: dict[str, int] = {}

    def lead(at: int) -> int:
        while leader[at] != at:
            at = leader[at]
        return at

    before: int | None = None
    for at, member in sorted(times):
        leader.setdefault(at, at)
        if before is not None and at - before < interval_ms:
            leader[lead(at)] = lead(before)
        if member:
            leader[lead(at)] = lead(first_of.setdefault(member, at))
        before = at
    drawn = {at: rng.randrange(interval_ms) for at in leader}
    return {at: drawn[lead(at)] for at in leader}


def parts_of(run: Run) -> Iterable[Part[int | None]]:
    """Yields a part for each time with events, from that time to the next one."""
    unread, stopped = unavailability(run), stops(run)
    all_of = settlings(run)
    ends = [*(one.at_ms for one in all_of[1:]), run.until_ms]
    for one, end in zip(all_of, ends, strict=bool(all_of)):
        within = [each for each in stopped if one.at_ms <= each.from_ms < end]
        yield Part(
            one.at_ms,
            one.what,
            None if one.settled_ms is None else one.settled_ms - one.at_ms,
            sum(one.at_ms <= each.from_ms < end for each in run.rebalances),
            unread(one.at_ms, end),
            len({each.member for each in within}),
            max((each.to_ms - each.from_ms for each in within), default=0),
        )


def _over(parts: Sequence[Part[int | None]]) -> Part[Spread]:
    figures: Any = (Spread.of(each) for each in list(zip(*parts, strict=True))[2:])
    return Part(parts[0].at_ms, parts[0].what, *figures)
