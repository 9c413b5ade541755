"""What a run adds up to: what was not worked on, who stopped for how long, when it was settled.

Everything is counted from the moment when the group was settled for the first time: starting it is
a time of its own. Times in ms.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from .holds import Gap
from .run import Rebalance, Run


@dataclass(frozen=True, slots=True)
class Totals:
    """`unavailable_ms` is in partition-ms, `stopped_ms` in member-ms.

    `records_behind` is what came to partitions that nobody worked on; `start_up_ms` when the group
    was settled first, `settled_ms` when last, None where it was not at the end.
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
    """A member that had work had none for a while."""

    member: str
    from_ms: int
    to_ms: int


class Settling(NamedTuple):
    """What happened at `at_ms`, and when nothing moved any more; None where it always did."""

    at_ms: int
    what: str
    settled_ms: int | None


def totals(run: Run) -> Totals:
    """The sums. A partition has moved when another member holds it than before."""
    since = start_up_ms(run)
    from_ms = run.until_ms if since is None else since
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
    """When everything that was there had a holder for the first time."""
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
    last: dict[str, str] = {}
    moves = 0
    for hold in sorted(run.holds, key=lambda one: one.from_ms):
        moves += hold.from_ms >= from_ms and last.get(hold.partition, hold.member) != hold.member
        last[hold.partition] = hold.member
    return moves


def stops(run: Run) -> list[Stopped]:
    """Who worked on something, then on nothing, and then again; by time.

    A process that is stopped, killed or stuck is not stopped by a rebalance.
    """
    own = {(one.member, one.at_ms) for one in run.happenings}
    found = [
        Stopped(member, before[1], after[0])
        for member, worked in _working(run).items()
        for before, after in pairwise(worked)
        if (member, before[1]) not in own
    ]
    return sorted(found, key=lambda one: one.from_ms)


def stopped_in(stopped: Iterable[Stopped], rebalance: Rebalance) -> list[Stopped]:
    """Those of them that stopped for a rebalance, just before their JoinGroup or in it."""
    end = rebalance.to_ms
    return [
        one
        for one in stopped
        if one.to_ms >= rebalance.from_ms and (end is None or one.from_ms <= end)
    ]


def spans(run: Run) -> list[tuple[Rebalance, int]]:
    """Every rebalance with what it has to answer for: until the next one begins."""
    starts = [*(one.from_ms for one in run.rebalances[1:]), run.until_ms]
    return list(zip(run.rebalances, starts, strict=True)) if run.rebalances else []


def _working(run: Run) -> dict[str, list[tuple[int, int]]]:
    """When each member worked on anything: intervals that do not touch."""
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
    """Each happening, and when what it led to was over, before the next one."""
    found = []
    times = sorted({one.at_ms for one in run.happenings})
    for at, until in pairwise([*times, run.until_ms]):
        what = ", ".join(str(one) for one in run.happenings if one.at_ms == at)
        found.append(Settling(at, what, _settled(run, at, until)))
    return found


def _settled(run: Run, from_ms: int, until_ms: int) -> int | None:
    """When the last thing ended that went on between the two; None where it goes on after."""
    ends = [from_ms]
    for one in run.rebalances:
        if one.from_ms < until_ms and (one.to_ms is None or one.to_ms > from_ms):
            ends.append(run.until_ms + 1 if one.to_ms is None else one.to_ms)
    ends += (gap.to_ms for gap in run.gaps if gap.from_ms < until_ms and gap.to_ms > from_ms)
    last = max(ends)
    is_open = last > until_ms or (last == until_ms == run.until_ms)
    return None if is_open else last


def unworked(run: Run) -> list[tuple[int, int]]:
    """(from_ms, how many partitions nobody works on), a step each, from 0 on."""
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


def unavailable_ms(run: Run, from_ms: int, to_ms: int) -> int:
    """Partition-ms that nobody worked on, between two times."""
    return sum(max(0, min(gap.to_ms, to_ms) - max(gap.from_ms, from_ms)) for gap in run.gaps)
