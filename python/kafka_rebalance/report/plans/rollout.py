# SPDX-License-Identifier: Apache-2.0
"""Prints the effects of a deploy on a group, and the settings that reduce its cost."""

from kafka_rebalance.rollout.forecast import Forecast

from ..text.sentences import print_wrapped
from ..text.tables import print_filled_table
from .figures import range_text, seconds_text

_MEANINGS = {
    "partition-s": "partition-seconds without a reader",
    "longest": "seconds of one partition",
    "read twice": "partition-seconds of records",
    "takes": "seconds until the group is stable",
}

_COLUMNS = {
    "rebalances": "rebalances", "moves": "moves",
    "partition-s": "unread_ms", "longest": "longest_ms",
    "read twice": "twice_ms", "records twice": "records_twice", "takes": "takes_ms",
}  # fmt: skip
"""Column -> its figure in the forecast; a column of zeros is left out."""


def print_forecast(found: Forecast) -> None:
    """Prints a summary, a row for each variant, the lines to change, and the assumptions."""
    print_wrapped(f"{found.group_id}: {found.summary}")
    spreads = [one.figures for one in found.variants]
    columns = dict[str, list[str]]()
    for name, figure in _COLUMNS.items():
        text_of = seconds_text if figure.endswith("_ms") else "{:,}".format
        if any(figure in one and one[figure].most for one in spreads):
            cells = (range_text(one[figure], between="{}-{}", text_of=text_of) for one in spreads)
            columns[name] = [*cells]
    names = [one.name for one in found.variants]
    rows = [list(row) for row in zip(names, *columns.values(), strict=True)]
    print_filled_table(("", *columns), rows, right=tuple(columns))
    for one in found.variants[1:]:
        print_wrapped(f"{one.name}: {'; '.join(one.lines)}", more="  ")
    print()
    meant = "; ".join(f"{name}: {text}" for name, text in _MEANINGS.items() if name in columns)
    print_wrapped(f"Medians (least-most). {meant}.")
    print_wrapped(f"Assumed (--setting changes it): {found.assumed}.")
