# SPDX-License-Identifier: Apache-2.0
"""Sums of a run: unavailable partitions, members that stopped, and when the group had settled.

Sums begin when the group has settled for the first time (at 0 if it never has); the start-up
is measured separately. Times are in ms.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import NamedTuple

from .intervals import Gap, Hold
from .run import Absence, Rebalance, Run


@dataclass(frozen=True, slots=True)
class Totals:
    """The sums. `unavailable_ms` is in partition-ms, `stopped_ms` in member-ms.

    `records_behind` counts records that came to partitions while nobody worked on them. The group
    was settled first at `start_up_ms` and finally at `settled_ms`; None if it was not at the end.
    """

    start_up_ms: int | None
    rebalances: int
    rounds: int
    moves: int
    unavailable_ms: int
    longest_gap_ms: int
    stopped_ms: int
    records_behind: int
    settled_ms: int | None


class Stopped(NamedTuple):
    """An interval in which a member worked on nothing, between two in which it had work."""

    member: str
    from_ms: int
    to_ms: int


class Settling(NamedTuple):
    """The events at `at_ms`, and when the group had settled after them; None if it had not."""

    at_ms: int
    what: str
    settled_ms: int | None


def totals(run: Run) -> Totals:
    """Returns the sums. A partition has moved if its next holder is another member."""
    since = start_up_ms(run)
    from_ms = since or 0
    gaps = list(_from(run.gaps, from_ms))
    lengths = [gap.to_ms - gap.from_ms for gap in gaps]
    behind = sum((gap.to_ms - gap.from_ms) * run.rates.get(gap.partition, 0.0) for gap in gaps)
    later = [one for one in run.rebalances if one.from_ms >= from_ms]
    return Totals(
        start_up_ms=since,
        rebalances=len(later),
        rounds=sum(one.rounds for one in later),
        moves=_moves(run, from_ms),
        unavailable_ms=sum(lengths),
        longest_gap_ms=max(lengths, default=0),
        stopped_ms=sum(one.to_ms - one.from_ms for one in stops(run) if one.from_ms >= from_ms),
        records_behind=round(behind / 1000),
        settled_ms=_settled(run, 0, run.until_ms),
    )


def start_up_ms(run: Run) -> int | None:
    """Returns when every existing partition had a holder for the first time."""
    first = next((one.to_ms for one in run.rebalances if one.to_ms is not None), None)
    if first is None:
        return None
    started = [gap.to_ms for gap in run.gaps if gap.from_ms <= first <= gap.to_ms]
    end = max([first, *started])
    return None if end >= run.until_ms else end


def _from(gaps: Iterable[Gap], from_ms: int) -> Iterable[Gap]:
    for gap in gaps:
        if gap.to_ms > from_ms:
            yield gap._replace(from_ms=max(gap.from_ms, from_ms))


def _moves(run: Run, from_ms: int) -> int:
    last: dict[str, Hold] = {}
    moves = 0
    for hold in sorted(run.holds, key=lambda one: one.from_ms):
        before = last.get(hold.partition, hold)
        if hold.generation_id < before.generation_id:
            continue  # this holder has lost the partition, and does not know that yet
        moves += hold.from_ms >= from_ms and hold.member != before.member
        last[hold.partition] = hold
    return moves


def stops(run: Run) -> list[Stopped]:
    """Returns intervals in which a member worked on nothing, between work; ordered by time.

    The time of a process that is down or stuck does not count. If a member gets no partitions, its
    stop ends when it learns this.
    """
    away: dict[str, list[Absence]] = {}
    for one in run.absences:
        away.setdefault(one.member, []).append(one)
    empty: dict[str, list[int]] = {}
    for member, at in run.empty_handed:
        empty.setdefault(member, []).append(at)
    found = []
    for member, worked in _working(run).items():
        for before, after in pairwise(worked):
            gone = away.get(member, ())
            if not any(one.from_ms <= after[0] and one.to_ms >= before[1] for one in gone):
                end = min([after[0], *(at for at in empty.get(member, ()) if at >= before[1])])
                found.append(Stopped(member, before[1], end))
    return sorted(found, key=lambda one: one.from_ms)


def stops_of(run: Run) -> dict[int, list[Stopped]]:
    """Returns the `stops`, keyed by the number of the rebalance that caused them.

    That is the first rebalance to end after the stop began: members stop around their JoinGroup.
    """
    found: dict[int, list[Stopped]] = {}
    for one in stops(run):
        over = (r.number for r in run.rebalances if r.to_ms is None or r.to_ms >= one.from_ms)
        found.setdefault(next(over, 0), []).append(one)
    return found


@dataclass(frozen=True, slots=True)
class Chapter:
    """The time from one event to the next: a rebalance, or an event of the scenario."""

    from_ms: int
    to_ms: int
    what: str
    rebalance: Rebalance | None


def chapters(run: Run) -> list[Chapter]:
    """Returns all chapters, ordered by time."""
    starts: list[tuple[int, str, Rebalance | None]] = [
        (one.from_ms, ", ".join(one.causes), one) for one in run.rebalances
    ]
    for at in sorted({one.at_ms for one in run.happenings}):
        what = ", ".join(str(one) for one in run.happenings if one.at_ms == at)
        starts.append((at, what, None))
    starts.sort(key=lambda one: one[0])
    ends = [*(at for at, _, _ in starts[1:]), run.until_ms]
    return [
        Chapter(at, end, what, rebalance)
        for (at, what, rebalance), end in zip(starts, ends, strict=bool(starts))
    ]


def _working(run: Run) -> dict[str, list[tuple[int, int]]]:
    """Returns when each member worked on any partition: intervals that do not touch."""
    found: dict[str, list[tuple[int, int]]] = {}
    for hold in sorted(run.holds, key=lambda one: one.from_ms):
        if hold.is_stuck:
            continue
        spans = found.setdefault(hold.member, [])
        if spans and hold.from_ms <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], hold.to_ms))
        else:
            spans.append((hold.from_ms, hold.to_ms))
    return found


def settlings(run: Run) -> list[Settling]:
    """Returns, for each time with events, when the group had settled before the next events."""
    found = []
    times = sorted({one.at_ms for one in run.happenings})
    for at, until in pairwise([*times, run.until_ms]):
        what = ", ".join(str(one) for one in run.happenings if one.at_ms == at)
        found.append(Settling(at, what, _settled(run, at, until)))
    return found


def _settled(run: Run, from_ms: int, until_ms: int) -> int | None:
    """Returns when the last rebalance or gap that overlaps the interval ended; None if after it."""
    ends = [from_ms]
    for one in run.rebalances:
        if one.from_ms < until_ms and (one.to_ms is None or one.to_ms > from_ms):
            ends.append(run.until_ms + 1 if one.to_ms is None else one.to_ms)
    ends += (gap.to_ms for gap in run.gaps if gap.from_ms < until_ms and gap.to_ms > from_ms)
    last = max(ends)
    is_open = last > until_ms or (last == until_ms == run.until_ms)
    return None if is_open else last


def unworked(run: Run) -> list[tuple[int, int]]:
    """Returns (from_ms, number of partitions that nobody works on) steps, from 0 on."""
    changes: dict[int, int] = {0: 0}
    for gap in run.gaps:
        changes[gap.from_ms] = changes.get(gap.from_ms, 0) + 1
        changes[gap.to_ms] = changes.get(gap.to_ms, 0) - 1
    steps, count = [], 0
    for at in sorted(changes):
        count += changes[at]
        if at < run.until_ms:
            steps.append((at, count))
    return steps


def unavailability(run: Run) -> Callable[[int, int], int]:
    """Returns a function (from_ms, to_ms) -> unavailable partition-ms of the run."""
    steps = unworked(run)
    times = [at for at, _ in steps]
    lengths = (later - at for at, later in pairwise(times))
    areas = [0, *accumulate(count * ms for (_, count), ms in zip(steps, lengths, strict=False))]

    def until(at_ms: int) -> int:
        place = bisect_right(times, at_ms) - 1
        return areas[place] + steps[place][1] * (at_ms - times[place])

    return lambda from_ms, to_ms: until(to_ms) - until(from_ms)


def unheld(run: Run) -> list[Gap]:
    """Returns the gaps, without the time in which a stuck member held the partition."""
    stuck: dict[str, list[Hold]] = {}
    for hold in run.holds:
        if hold.is_stuck:
            stuck.setdefault(hold.partition, []).append(hold)
    found = []
    for gap in run.gaps:
        at = gap.from_ms
        for hold in stuck.get(gap.partition, ()):  # by time
            if hold.to_ms > at and hold.from_ms < gap.to_ms:
                if hold.from_ms > at:
                    found.append(Gap(gap.partition, at, hold.from_ms))
                at = hold.to_ms
        if at < gap.to_ms:
            found.append(Gap(gap.partition, at, gap.to_ms))
    return found
