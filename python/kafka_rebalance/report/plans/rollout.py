# SPDX-License-Identifier: Apache-2.0
"""Prints what a deploy does to a group, and the settings with which it costs less."""

from collections.abc import Callable

from kafka_rebalance.report.text.names import counted
from kafka_rebalance.report.text.sentences import print_wrapped
from kafka_rebalance.report.text.tables import print_filled_table
from kafka_rebalance.rollout.forecast import Forecast
from kafka_rebalance.simulator.seeds import Spread

from .figures import seconds_text

_NOTE = (
    "Medians (least-most). unread: partition-seconds without a reader; longest: seconds of one "
    "partition; read twice: partition-seconds of records; takes: seconds until the group has "
    "settled."
)


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
    print_wrapped(f"{found.group_id}: {found.summary}")
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
    print_wrapped(f"Assumed (--setting changes it): {found.assumed}.")
