# SPDX-License-Identifier: Apache-2.0
"""Computes the picture of a run: who held each partition when, and how many partitions had no
holder.

Each partition has a row. If there are too many partitions, each member has a row instead, with the
number of partitions that it holds.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from itertools import pairwise
from typing import NamedTuple

from kafka_rebalance.errors import shown
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.simulator.intervals import partition_key
from kafka_rebalance.simulator.measure import unheld, unworked
from kafka_rebalance.simulator.run import Run

_QUIET_MS = 20_000  # a longer time without events is cut out of the axis
_MARGIN = 0.06  # the margin on each side, as a share of the busy time; at least 2.5 s
_CUT, _CUTS = 0.02, 0.3  # shares of the axis's width: of each cut; of all cuts, at most
_STEPS_S = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 3_600)


class TimeAxis(Frozen):
    """Maps times in ms to positions from 0 to 1. Only the times in `spans` are shown in full."""

    spans: tuple[tuple[int, int], ...]

    @classmethod
    def over(cls, busy: Iterable[tuple[int, int]], until_ms: int) -> "TimeAxis":
        """Returns an axis that shows the `busy` intervals (ms; may overlap), and cuts the rest."""
        spans: list[tuple[int, int]] = []
        for start, end in sorted(busy):
            margin = max(2_500, round(_MARGIN * (end - start)))
            start, end = max(0, start - margin), min(until_ms, end + margin)
            if spans and start - spans[-1][1] <= _QUIET_MS:
                spans[-1] = (spans[-1][0], max(spans[-1][1], end))
            else:
                spans.append((start, end))
        return cls(tuple(spans) or ((0, until_ms),))

    @property
    def _cut(self) -> float:
        return min(_CUT, _CUTS / max(len(self.spans) - 1, 1))

    @property
    def _scale(self) -> float:
        cuts = self._cut * (len(self.spans) - 1)
        return (1.0 - cuts) / max(sum(end - start for start, end in self.spans), 1)

    def place(self, at_ms: float) -> float:
        """Returns the position of a time. Times within a cut are spread evenly over its width."""
        return min(self._place(at_ms), 1.0)

    def _place(self, at_ms: float) -> float:
        x = 0.0
        for place, (start, end) in enumerate(self.spans):
            if at_ms <= start:
                if place and at_ms < start:
                    before = self.spans[place - 1][1]
                    return x - self._cut * (start - at_ms) / (start - before)
                return x
            if at_ms <= end:
                return x + (at_ms - start) * self._scale
            x += (end - start) * self._scale + self._cut
        return x - self._cut

    def cuts(self) -> list[tuple[float, float]]:
        return [
            (self.place(before[1]), self.place(after[0])) for before, after in pairwise(self.spans)
        ]

    def ticks(self, most: int = 14) -> list[tuple[float, str]]:
        """Returns about `most` pairs (position, label): round times, or the middle of a span."""
        total_s = sum(end - start for start, end in self.spans) / 1000
        step = next((s * 1000 for s in _STEPS_S if total_s / s <= most), 3_600_000)
        found: list[tuple[float, str]] = []
        for start, end in self.spans:
            first = -(-start // step) * step
            times: Sequence[float] = [
                first + n * step for n in range(int((end - first) // step) + 1)
            ]
            for at in times or [(start + end) / 2]:
                place = self.place(at)
                if not found or place - found[-1][0] > 0.7 / most:
                    found.append((place, _named(at, step)))
        return found


def _named(at_ms: float, step_ms: float) -> str:
    """Returns a time such as `12.5 s`, `2:05` or `1:00:05`; steps below 1 s add a fraction.

    >>> [_named(ms, 1000) for ms in (500, 12_000, 125_000, 3_605_000)]
    ['0.5 s', '12 s', '2:05', '1:00:05']
    >>> _named(125_500, 500)
    '2:05.5'
    """
    tenths = round(at_ms / 100)
    if tenths < 600:
        return f"{tenths / 10:g} s"
    minutes, rest = divmod(tenths, 600)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{rest / 10:04.1f}" if step_ms < 1000 else f"{rest // 10:02}"
    return f"{hours}:{minutes:02}:{seconds}" if hours else f"{minutes}:{seconds}"


MOST_ROWS = 60


class Look(Enum):
    HELD = "held"
    STUCK = "held, but stuck: the member or its broker is away"
    GAP = "nobody works on it"


class Bar(NamedTuple):
    """An interval in one row. `member` is the holder's index, or -1 if there is none."""

    row: int
    from_ms: int
    to_ms: int
    look: Look
    label: str
    member: int

    def parts(self, axis: TimeAxis) -> "Iterator[Bar]":
        """Yields the visible parts of the bar: one for each span of the axis that it overlaps."""
        for start, end in axis.spans:
            if self.from_ms < end and self.to_ms > start:
                yield self._replace(from_ms=max(self.from_ms, start), to_ms=min(self.to_ms, end))


class Mark(NamedTuple):
    at_ms: int
    label: str


class Timeline(Frozen):
    """The rows and bars of a picture.

    `steps` holds pairs: a time in ms, and how many partitions have no holder from then on; `most`
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
    # is drawn later, so it covers the stuck member's bar.
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
