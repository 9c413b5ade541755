# SPDX-License-Identifier: Apache-2.0
"""Prints what a deploy does to a group, and the settings with which it costs less."""

from collections.abc import Callable

from kafka_rebalance.report.text.names import counted
from kafka_rebalance.report.text.sentences import print_wrapped
from kafka_rebalance.report.text.tables import print_filled_table
from kafka_rebalance.rollout import Forecast, PlayedDeploy
from kafka_rebalance.simulator import Spread

from .figures import median_text, seconds_text

_LEAST_STOP_MS = 50  # an eager rebalance for which all members are ready stops them for less
_NOTE = (
    "Medians (least-most). unread: partition-seconds without a reader; longest: seconds of one "
    "partition; read twice: partition-seconds of records; takes: seconds until the group has "
    "settled."
)


def answer(found: Forecast) -> str:
    """Returns in words, with medians, what the deploy does and which settings cost less."""
    now, *others = found.variants
    done = f"{_counted(now, 'rebalances', 'rebalance')} and {_counted(now, 'moves', 'move')}"
    if (now.figures["longest_stop_ms"].median or 0) >= _LEAST_STOP_MS:
        stopped = f"stops {_counted(now, 'stopped', 'member')}, whose pods run on,"
        done += f", and {stopped} for up to {_median(now, 'longest_stop_ms')} s"
    text = f"a deploy of {found.workload} causes {done}; {_unread(now)}"
    if now.figures["twice_ms"].most:
        records = f"{_median(now, 'twice_ms')} partition-seconds of records are"
        if "records_twice" in now.figures:
            records = f"{_counted(now, 'records_twice', 'record')} are"
        text += f", and {records} read twice"
    best = min(found.variants, key=lambda one: one.cost)
    free = [one for one in found.variants if not one.figures["rebalances"].most]
    less = [f'the least with "{best.name}": {_unread(best)}'] if best is not now else []
    if free and best not in free:
        least = min(free, key=lambda one: one.cost)
        less.append(f'no rebalance with "{least.name}": {_unread(least)}')
    if not less and others:
        less = ["nothing tried here costs less"]
    return ". ".join([text, *(f"{one[0].upper()}{one[1:]}" for one in less)]) + "."


def _unread(one: PlayedDeploy) -> str:
    if not one.figures["unread_ms"].most:
        return "every partition is read throughout"
    unread, longest = _median(one, "unread_ms"), _median(one, "longest_ms")
    return f"partitions are unread for {unread} partition-seconds, one of them for {longest} s"


def _median(one: PlayedDeploy, figure: str) -> str:
    return median_text(one.figures[figure])


def _counted(one: PlayedDeploy, figure: str, noun: str) -> str:
    number = one.figures[figure].median
    return counted(number, noun) if number else f"no {noun}"


def _ranged(spread: Spread, text: Callable[[int], str]) -> str:
    if spread.median is None or spread.least is None or spread.most is None:
        return "never"
    median, least, most = map(text, (spread.median, spread.least, spread.most))
    found = median if least == most else f"{median} ({least}-{most})"
    return f"{found}, never in {counted(spread.never, 'run')}" if spread.never else found


def _seconds(spread: Spread) -> str:
    return _ranged(spread, seconds_text)


def _whole(spread: Spread) -> str:
    return _ranged(spread, "{:,}".format)


_COLUMNS = {
    "rebalances": ("rebalances", _whole, 1),
    "moves": ("moves", _whole, 1),
    "unread": ("unread_ms", _seconds, 1),
    "longest": ("longest_ms", _seconds, 1),
    "read twice": ("twice_ms", _seconds, 1),
    "records twice": ("records_twice", _whole, 1),
    "takes": ("takes_ms", _seconds, 1),
}


def print_forecast(found: Forecast) -> None:
    """Prints the answer, a row for each variant, the lines to change, and what is assumed."""
    print_wrapped(f"{found.group_id}: {answer(found)}")
    spreads = [one.figures for one in found.variants]
    columns = {
        name: [text(one[figure]) for one in spreads]
        for name, (figure, text, least) in _COLUMNS.items()
        if any(figure in one and (one[figure].most or 0) >= least for one in spreads)
    }
    names = [one.name for one in found.variants]
    rows = [list(row) for row in zip(names, *columns.values(), strict=True)]
    print_filled_table(("", *columns), rows, right=tuple(columns))
    for one in found.variants[1:]:
        print_wrapped(f"{one.name}: {'; '.join(one.lines)}", more="  ")
    print()
    print_wrapped(_NOTE)
    print_wrapped(f"Assumed (--assume changes it): {found.assumed}.")
