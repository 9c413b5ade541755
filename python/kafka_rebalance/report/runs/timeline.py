# SPDX-License-Identifier: Apache-2.0
"""Computes a run's picture: bars for the holders, and how many partitions nobody works on.

There is a row for each partition. If there are too many partitions, there is a row for each member,
with the number of partitions that it holds.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from kafka_rebalance.errors import shown
from kafka_rebalance.simulator import Run
from kafka_rebalance.simulator.intervals import partition_key
from kafka_rebalance.simulator.measure import unheld, unworked

from .time_axis import TimeAxis

MOST_ROWS = 60


class Look(Enum):
    """The meaning of a bar."""

    HELD = "held"
    STUCK = "held, but stuck: the member or its broker is away"
    GAP = "nobody works on it"


class Bar(NamedTuple):
    """An interval in one row; `member` is the holder's index, or -1 without a holder."""

    row: int
    from_ms: int
    to_ms: int
    look: Look
    label: str
    member: int

    def parts(self, axis: TimeAxis) -> "Iterator[Bar]":
        """Yields the visible parts of the bar: one for each axis span that it overlaps."""
        for start, end in axis.spans:
            if self.from_ms < end and self.to_ms > start:
                yield self._replace(from_ms=max(self.from_ms, start), to_ms=min(self.to_ms, end))


class Mark(NamedTuple):
    """The scenario's events at one time, on the time axis."""

    at_ms: int
    label: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """The rows and bars of a picture.

    `steps` lists pairs: a time in ms, and how many partitions nobody works on from then on; `most`
    is the largest of these numbers. `left_out` is the number of members without a row.
    """

    axis: TimeAxis
    rows: tuple[str, ...]
    bars: tuple[Bar, ...]
    steps: tuple[tuple[int, int], ...]
    happenings: tuple[Mark, ...]
    most: int
    left_out: int


def timeline_of(run: Run) -> Timeline:
    partitions = sorted(
        {hold.partition for hold in run.holds} | {gap.partition for gap in run.gaps},
        key=partition_key,
    )
    if len(partitions) <= MOST_ROWS:
        rows, bars, left_out = partitions, _by_partition(run, partitions), 0
    else:
        rows, bars = list(run.members[:MOST_ROWS]), _by_member(run)
        left_out = len(run.members) - len(rows)
    happenings: dict[int, list[str]] = {}
    for one in run.happenings:
        happenings.setdefault(one.at_ms, []).append(str(one))
    marks = (Mark(at, ", ".join(what)) for at, what in sorted(happenings.items()))
    steps = unworked(run)
    busy = [
        *((one.from_ms, one.to_ms or run.until_ms) for one in run.rebalances),
        *((gap.from_ms, gap.to_ms) for gap in run.gaps),
        *((one.at_ms, one.at_ms) for one in run.happenings),
    ]
    return Timeline(
        TimeAxis.over(busy, run.until_ms),
        tuple(rows),
        tuple(bars),
        tuple(steps),
        tuple(marks),
        max((count for _, count in steps), default=0),
        left_out,
    )


def _by_partition(run: Run, partitions: list[str]) -> Iterator[Bar]:
    row = {partition: place for place, partition in enumerate(partitions)}
    place = {member: number for number, member in enumerate(run.members)}
    # A stuck member may not know that another member now owns its partition. The other member's bar
    # is drawn later, so that it covers that of the stuck member.
    for hold in sorted(run.holds, key=lambda one: not one.is_stuck):
        look = Look.STUCK if hold.is_stuck else Look.HELD
        holder, member = shown(hold.member), place[hold.member]
        yield Bar(row[hold.partition], hold.from_ms, hold.to_ms, look, holder, member)
    for gap in unheld(run):
        yield Bar(row[gap.partition], gap.from_ms, gap.to_ms, Look.GAP, "nobody", -1)


def _by_member(run: Run) -> Iterator[Bar]:
    """Yields a bar for each interval in which a member holds a constant number of partitions."""
    for row, member in enumerate(run.members[:MOST_ROWS]):
        changes: dict[int, int] = {}
        for hold in run.holds:
            if hold.member == member and not hold.is_stuck:
                changes[hold.from_ms] = changes.get(hold.from_ms, 0) + 1
                changes[hold.to_ms] = changes.get(hold.to_ms, 0) - 1
        times, count = sorted(changes), 0
        for at, end in zip(times, [*times[1:], run.until_ms], strict=True):
            count += changes[at]
            if count and end > at:
                yield Bar(row, at, end, Look.HELD, str(count), row)
