# SPDX-License-Identifier: Apache-2.0
"""Prints and draws how even a group could be, for each number of taken partitions."""

from kafka_rebalance.group.html_tables import escaped
from kafka_rebalance.plans.possible.curve import COLUMNS, Curve
from kafka_rebalance.report.text.pages import bar_chart, page, table
from kafka_rebalance.report.text.sentences import print_wrapped
from kafka_rebalance.report.text.tables import print_table

_NOTE = (
    'taken: at most so many partitions leave their owners; "<": the first row within 5 % of the '
    "best. fullest: the most partitions of one member, proven. deviation, bound: of the members' "
    "numbers of partitions, as found and the least possible."
)


def print_curve(curve: Curve, title: str) -> None:
    """Prints the answer in words, then a row for each largest load, and the last one."""
    print_wrapped(curve.summary)
    print()
    print_wrapped(title, "", "  ")
    print_table(COLUMNS, curve.rows())
    print_wrapped(_NOTE)


def curve_page(curve: Curve, title: str) -> str:
    """Returns an HTML page: the answer, a picture of the fullest member, the table."""
    rows = curve.rows()
    fullest = {"fullest": [int(row[1]) for row in rows]}
    picture = bar_chart("Partitions of the fullest member", [row[0] for row in rows], fullest)
    parts = [f"<p>{escaped(curve.summary)}</p>", picture, table(COLUMNS, rows)]
    return page(title, [*parts, f'<p class="note">{escaped(_NOTE)}</p>'])
