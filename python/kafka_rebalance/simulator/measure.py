# SPDX-License-Identifier: Apache-2.0
"""Computes the figures of a run: unavailable partitions, stopped members, times to settle.

A group has settled when no rebalance is in progress and members work on all partitions. The sums
omit the start-up: they begin when the group has settled for the first time, or at 0 if it never
settles. Times are in ms.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple

from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.spec import counted

from .intervals import Gap, Hold, grouped, without

if TYPE_CHECKING:
    from .run import Rebalance, Run


class Totals(Frozen):
    """The sums of a run. `unavailable_ms` is in partition-ms, `stopped_ms` in member-ms.

    `records_behind` is the number of records that arrived at partitions while no member worked on
    them. `start_up_ms` is the time at which the group first settled (None if never), `settled_ms`
    the time at which it last settled (None if it had not settled at the end).
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


def in_words(run: "Run") -> str:
    """Returns the summary of a run: its rebalances, moves, stops and time without readers."""
    one = totals(run)
    since = "" if one.start_up_ms is None else " after the start-up"
    count = rebalances_text(one.rebalances, one.rounds)
    ends = [each for each in stops(run) if each.from_ms >= (one.start_up_ms or 0)]
    longest_ms = max((each.to_ms - each.from_ms for each in ends), default=0)
    stopped = stops_text(len(ends), len({each.member for each in ends}), longest_ms)
    idle = f"no {run.held} {without_reader(run.held)}"
    if one.unavailable_ms:
        longest = f"{_at_most(one.longest_gap_ms)}{_why_long(run, one.longest_gap_ms)}"
        idle = f"a {run.held} is {without_reader(run.held)} {longest}, in all "
        idle += f"{one.unavailable_ms / 1000:,.1f} {run.held}-seconds"
    if one.settled_ms is None:
        idle += "; not stable at the end"
    else:
        before, after = (
            Counter(hold.member for hold in run.holds if hold.from_ms <= at_ms < hold.to_ms)
            for at_ms in (one.start_up_ms or 0, run.until_ms - 1)
        )
        if len(before) < len(after) and max(before.values(), default=0) == max(after.values()):
            idle += f"; the fullest member has {max(after.values())} before and after"
    return f"{count}{since}; {counted(one.moves, 'move')}{stopped}; {idle}."


def stops_text(times: int, members: int, longest_ms: int) -> str:
    """Returns a text: how many running members stop, or how often they do, and for how long."""
    if not times:
        return " and no running member stops"
    most = _at_most(longest_ms)
    verb = "stops" if members == 1 else "stop"
    who = f"{counted(members, 'running member')} {verb}"
    if times > members:
        who = f"running members stop {times:,} times,"
    return f"; {who} {most}{' each' if times > 1 else ''}"


def _at_most(ms: int) -> str:
    return f"for up to {ms / 1000:,.1f} s" if ms >= 100 else "for less than 0.1 s"


def _why_long(run: "Run", longest_ms: int) -> str:
    """Returns why the longest gap is long, as text to append; "" unless a session ended in it."""
    longest = [gap for gap in run.gaps if gap.to_ms - gap.from_ms == longest_ms]
    ended = [r.from_ms for r in run.rebalances if any("session ended" in one for one in r.causes)]
    waited = any(gap.from_ms < at <= gap.to_ms for gap in longest for at in ended)
    return " (the session timeout, then the rebalance)" if waited else ""


def rebalances_text(rebalances: int, rounds: int) -> str:
    """Returns the number of rebalances and, if it differs, of rounds, which `plan` counts."""
    text = counted(rebalances, "rebalance")
    return f"{text} ({rounds} rounds, as `plan` counts)" if rounds > rebalances else text


def without_reader(held: str) -> str:
    return "idle" if held == "task" else "without a reader"


class Stopped(NamedTuple):
    """An interval in which a member worked on nothing, between two intervals of work."""

    member: str
    from_ms: int
    to_ms: int


class Settling(NamedTuple):
    """The time at which the group had settled after the events at `at_ms`.

    `settled_ms` is None if other events, or the end of the run, came before the group settled.
    """

    at_ms: int
    what: str
    settled_ms: int | None


def totals(run: "Run") -> Totals:
    """Returns the totals of a run. A move is a change of a partition's holder to another member."""
    since = start_up_ms(run)
    from_ms = since or 0
    later_gaps = (one for one in run.gaps if one.to_ms > from_ms)
    gaps = [one._replace(from_ms=max(one.from_ms, from_ms)) for one in later_gaps]
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


def start_up_ms(run: "Run") -> int | None:
    """Returns when, after the first rebalance, every partition had a holder; None if never.

    With the consumer protocol, each member that joins may start a rebalance; all of them count as
    the first one until the last member of the start-up has joined.
    """
    ended = (one for one in run.rebalances if one.to_ms is not None)
    before = [one for one in run.rebalances if one.from_ms <= run.joined_ms]
    last = before[-1] if before else next(ended, None)
    if last is None or last.to_ms is None:
        return None
    first = last.to_ms
    started = [gap.to_ms for gap in run.gaps if gap.from_ms <= first <= gap.to_ms]
    end = max([first, *started])
    return None if end >= run.until_ms else end


def _moves(run: "Run", from_ms: int) -> int:
    last: dict[str, Hold] = {}
    moves = 0
    for hold in sorted(run.holds, key=lambda one: one.from_ms):
        before = last.get(hold.partition, hold)
        if hold.generation_id < before.generation_id:
            continue  # the member has lost the partition, but does not know this yet
        moves += hold.from_ms > from_ms and hold.member != before.member
        last[hold.partition] = hold
    return moves


def stops(run: "Run") -> list[Stopped]:
    """Returns the intervals in which a member stopped, between two in which it worked, by time.

    An interval that overlaps an absence of the member is left out. It ends when the member works
    again, or earlier if it receives an empty assignment.
    """
    away = grouped(run.absences, lambda one: one.member)
    empty = grouped(run.empty_handed, lambda one: one[0])
    found = []
    for member, worked in _working(run).items():
        for before, after in pairwise(worked):
            gone = away.get(member, ())
            if not any(one.from_ms <= after[0] and one.to_ms >= before[1] for one in gone):
                learned = (at for _, at in empty.get(member, ()) if at >= before[1])
                end = min([after[0], *learned])
                found.append(Stopped(member, before[1], end))
    return sorted(found, key=lambda one: one.from_ms)


def stops_of(run: "Run") -> dict[int, list[Stopped]]:
    """Returns the `stops`, by the number of the rebalance that caused them.

    Members stop around their JoinGroup, so a stop was caused by the first rebalance that ended
    after the stop began. The key of a stop without such a rebalance is 0.
    """

    def cause(one: Stopped) -> int:
        over = (r.number for r in run.rebalances if r.to_ms is None or r.to_ms >= one.from_ms)
        return next(over, 0)

    return grouped(stops(run), cause)


class Chapter(Frozen):
    """The time from the start of a rebalance, or from an event, to the next start or event."""

    from_ms: int
    to_ms: int
    what: str
    rebalance: "Rebalance | None"


def chapters(run: "Run") -> list[Chapter]:
    starts: list[tuple[int, str, Rebalance | None]] = [
        (one.from_ms, ", ".join(one.causes), one) for one in run.rebalances
    ]
    starts += ((at, what, None) for at, what in _events(run).items())
    starts.sort(key=lambda one: one[0])
    ends = [*(at for at, _, _ in starts[1:]), run.until_ms]
    return [
        Chapter(at, end, what, rebalance)
        for (at, what, rebalance), end in zip(starts, ends, strict=bool(starts))
    ]


def _events(run: "Run") -> dict[int, str]:
    by_time = grouped(run.happenings, lambda one: one.at_ms)
    return {at: ", ".join(map(str, by_time[at])) for at in sorted(by_time)}


def _working(run: "Run") -> dict[str, list[tuple[int, int]]]:
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


def settlings(run: "Run") -> list[Settling]:
    """Returns, for the events of each time, when the group had settled after them."""
    events = _events(run)
    spans = pairwise([*events, run.until_ms])
    return [Settling(at, events[at], _settled(run, at, until)) for at, until in spans]


def _settled(run: "Run", from_ms: int, until_ms: int) -> int | None:
    """Returns when the interval's last rebalance or gap ended; None if that is after the interval.

    Without rebalances and gaps, returns `from_ms`. If the last one ends with the run, returns None.
    """
    ends = [from_ms]
    for one in run.rebalances:
        if one.from_ms < until_ms and (one.to_ms is None or one.to_ms > from_ms):
            ends.append(run.until_ms + 1 if one.to_ms is None else one.to_ms)
    ends += (gap.to_ms for gap in run.gaps if gap.from_ms < until_ms and gap.to_ms > from_ms)
    last = max(ends)
    is_open = last > until_ms or (last == until_ms == run.until_ms)
    return None if is_open else last


def unworked(run: "Run") -> list[tuple[int, int]]:
    """Returns steps (from_ms, number of partitions on which no member works), from time 0 on."""
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


def unavailability(run: "Run") -> Callable[[int, int], int]:
    """Returns a function: (from_ms, to_ms) -> unavailable partition-ms in that interval."""
    steps = unworked(run)
    times = [at for at, _ in steps]
    lengths = (later - at for at, later in pairwise(times))
    areas = [0, *accumulate(count * ms for (_, count), ms in zip(steps, lengths, strict=False))]

    def until(at_ms: int) -> int:
        place = bisect_right(times, at_ms) - 1
        return areas[place] + steps[place][1] * (at_ms - times[place])

    return lambda from_ms, to_ms: until(to_ms) - until(from_ms)


def unheld(run: "Run") -> list[Gap]:
    """Returns the gaps without the times in which a stuck member held the partition."""
    stuck = grouped((one for one in run.holds if one.is_stuck), lambda one: one.partition)
    return [part for gap in run.gaps for part in without(gap, stuck.get(gap.partition, ()))]
