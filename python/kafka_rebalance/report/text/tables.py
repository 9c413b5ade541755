# SPDX-License-Identifier: Apache-2.0
"""Prints tables of at most 100 columns."""

from collections.abc import Sequence
from typing import Literal

from kafka_rebalance.errors import MissingExtra


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    left: Sequence[int] = (),
    whole: bool = False,
) -> None:
    """Prints a table; columns are right-aligned, except for the first and those in `left`.

    If `whole`, the first column is never wrapped; on a narrow terminal the other columns are.
    """
    try:
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.markup import escape
        from rich.table import Table
    except ImportError:
        raise MissingExtra("a table", "report") from None
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for i, column in enumerate(columns):
        justify: Literal["left", "right"] = "left" if i == 0 or i in left else "right"
        table.add_column(column, justify=justify, overflow="fold", no_wrap=whole and i == 0)
    for row in rows:
        table.add_row(*(escape(cell) for cell in row))
    console = Console(highlight=False)
    console.width = min(100, console.width if console.is_terminal else 100)
    console.print(table)
