# SPDX-License-Identifier: Apache-2.0
"""HTML tables for pages, and short ones for notebooks (`_repr_html_`). All text is escaped."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from kafka_rebalance.errors import shown

_T = TypeVar("_T")

MOST_ROWS, MOST_CHARACTERS = 20, 80
"""The limits of a notebook's table: rows, and characters of a cell."""


def html_table(columns: Sequence[str], rows: Iterable[Sequence[str]], style: str) -> str:
    """Returns a table with the CSS class `style`."""
    lines = [_row(columns, 'th scope="col"'), *(_row(row, "td") for row in rows)]
    return f'<table class="{style}">{"".join(lines)}</table>'


def small_table(
    title: str,
    columns: Sequence[str],
    items: Sequence[_T],
    row: Callable[[_T], Sequence[object]],
    summary: str = "",
) -> str:
    """Returns a table for notebooks: the first items, with long strings cut, then "… and N more".

    `summary`, the answer in words, is printed above the table and is not cut.
    """
    rows = ([clipped(str(cell).strip()) for cell in row(item)] for item in items[:MOST_ROWS])
    more = len(items) - MOST_ROWS
    note = f"<p>… and {more:,} more</p>" if more > 0 else ""
    heads = "".join(f"<p>{escaped(one)}</p>" for one in (summary, clipped(title)) if one)
    return f"{heads}{html_table(columns, rows, 'kafka-rebalance')}{note}"


def escaped(text: str) -> str:
    """Returns text escaped for HTML and SVG, and with control characters visible (`shown`)."""
    from html import escape

    return escape(shown(text))


def _row(cells: Sequence[str], tag: str) -> str:
    end = tag.partition(" ")[0]
    return "<tr>" + "".join(f"<{tag}>{escaped(cell)}</{end}>" for cell in cells) + "</tr>"


def clipped(text: str, most: int = MOST_CHARACTERS) -> str:
    """Returns the text as `shown` writes it, cut to at most `most` characters."""
    text = shown(text)
    return text if len(text) <= most else text[: most - 1] + "…"
