# SPDX-License-Identifier: Apache-2.0
"""Prints tables that fit the terminal, at most 100 characters wide.

Text that is too long continues on the next line, after a word. Figures, such as `6 (2)`, stay on
one line: their headings are wrapped instead. If that is not enough, the first cell of each row gets
a line of its own, so that names can be copied; then further names share this line. If the table is
still too wide, words are broken: after a punctuation mark (`-`, `_`, `.`, `/`, `:`, `,`), or else
anywhere.
"""

import os
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

from kafka_rebalance.errors import shown

from . import terminal

MOST_COLUMNS = 100
_LONG = 36  # characters; a longer word may be broken even if the terminal is wide enough
_WORDS = re.compile(r"\S+")
_FIGURE = re.compile(r"[^a-zA-Z]*")  # a cell without letters
_PARTS = re.compile(r"[^-_./:,]*[-_./:,]+|[^-_./:,]+")


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    left: Sequence[int] = (),
    whole: bool = False,
    names: int = 1,
) -> None:
    """Prints a table; columns are right-aligned, except for the first and those in `left`.

    With `whole`, the first column is wrapped only if the table is otherwise too wide. The first
    `names` columns hold names; rather than break a name, the table gives names a line of their own.
    """
    for line in table_lines(columns, rows, width(), left=left, whole=whole, names=names):
        print(line)


def print_filled_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[str] = (),
    whole: bool = False,
    names: int = 1,
    empty: Sequence[str] = ("",),
) -> None:
    """Prints a table without the columns in which all cells are in `empty`; only the columns in
    `right` are right-aligned.

    `whole` and `names` are as in `print_table`.
    """
    filled = [i for i in range(len(columns)) if any(row[i] not in empty for row in rows)]
    print_table(
        [columns[i] for i in filled],
        [[row[i] for i in filled] for row in rows],
        left=[place for place, i in enumerate(filled) if columns[i] not in right],
        whole=whole,
        names=names,
    )


def width() -> int:
    """Returns the tables' width: the terminal's or COLUMNS, at most 100; without both, 100."""
    if sys.stdout.isatty() or "COLUMNS" in os.environ:
        return min(MOST_COLUMNS, terminal.columns() or MOST_COLUMNS)
    return MOST_COLUMNS


def table_lines(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    most: int,
    *,
    left: Sequence[int] = (),
    whole: bool = False,
    names: int = 1,
) -> Iterator[str]:
    """Yields the table's lines, with an empty line above and below; `shown` escapes the cells."""
    columns, *rows = ([shown(cell) for cell in row] for row in (columns, *rows))
    by_column = list(zip(columns, *rows, strict=True))
    layout = _layout(by_column, most - 1, whole=whole, names=names)
    yield ""
    yield from (terminal.bold(line) for line in _lines(columns, layout, left))
    yield " " + "─" * layout.width
    for row in rows:
        yield from _lines(row, layout, left)
    yield ""


class _Layout(NamedTuple):
    """The widths of the columns; the first `above` cells of each row have lines of their own."""

    widths: list[int]
    gap: int
    above: int = 0

    @property
    def width(self) -> int:
        return sum(self.widths[self.above :]) + self.gap * (len(self.widths) - max(1, self.above))


def _layout(by_column: Sequence[Sequence[str]], room: int, *, whole: bool, names: int) -> _Layout:
    """Returns the first layout that fits; layouts that break fewer cells are tried earlier."""

    def longest(pieces: Callable[[str], list[str]]) -> list[int]:
        each = [_length([p for cell in one for p in pieces(cell)]) for one in by_column]
        least = [min(size, _LONG) for size in each]
        return [_length(by_column[0]), *least[1:]] if whole else least

    words, parts = longest(_words), longest(_PARTS.findall)
    natural = [_length(one) for one in by_column]
    layouts = [
        *((least, gap, 0) for least, gap in product((natural, words), (3, 2))),
        # One more name above the figures is better than narrow gaps or a heading on two lines.
        *product((natural, words), (2, 1), range(1, names + 1)),
        *((parts, 2, above) for above in (0, names)),
        ([1] * len(natural), 2, names),
    ]
    for least, gap, above in layouts:
        left = room - gap * (len(natural) - max(1, above))
        beside = _shrunk(natural[above:], least[above:], left)
        if beside is not None:
            return _Layout([room] * above + beside, gap, above)
    return _Layout(natural, 2)


def _words(cell: str) -> list[str]:
    """Returns the pieces of a cell after which a line may end; a figure is one piece."""
    return [cell] if _FIGURE.fullmatch(cell) else _WORDS.findall(cell)


def _length(cells: Sequence[str]) -> int:
    return max(map(text_width, cells), default=0)


def text_width(text: str) -> int:
    """Returns a text's columns on a terminal: a wide letter takes two, a combining mark none."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(one) in "WF" for one in text)
    return len(text) + wide - sum(unicodedata.category(one) in ("Mn", "Me") for one in text)


def _padding(text: str, size: int) -> str:
    return " " * (size - text_width(text))


def _shrunk(natural: list[int], least: list[int], room: int) -> list[int] | None:
    """Returns widths whose sum is at most `room`, the widest shrunk first; None if none fit."""
    widths = list(natural)
    while sum(widths) > room:
        place = max(range(len(widths)), key=lambda i: (widths[i] > least[i], widths[i]), default=0)
        if not widths or widths[place] <= least[place]:
            return None
        widths[place] -= 1
    return widths


def _lines(cells: Sequence[str], layout: _Layout, left: Sequence[int]) -> Iterator[str]:
    if layout.above:
        names = (" " * layout.gap).join(filter(None, cells[: layout.above]))
        yield from (f" {line}" for line in _wrapped(names, layout.widths[0]) if line)
        cells = ["", *cells[layout.above :]]  # the empty cell indents the lines below the names
    sizes = [0, *layout.widths[layout.above :]] if layout.above else layout.widths
    wrapped = [_wrapped(cell, size) for cell, size in zip(cells, sizes, strict=True)]
    left = [place + 1 - max(1, layout.above) for place in left]
    for i in range(max(len(one) for one in wrapped)):
        texts = [one[i] if i < len(one) else "" for one in wrapped]
        aligned = (
            text + _padding(text, size)
            if place == 0 or place in left
            else _padding(text, size) + text
            for place, (text, size) in enumerate(zip(texts, sizes, strict=True))
        )
        yield f" {(' ' * layout.gap).join(aligned)}".rstrip()


def _wrapped(cell: str, size: int) -> list[str]:
    if text_width(cell) <= size:
        return [cell]
    lines = [""]
    for word in _WORDS.findall(cell):
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if text_width(joined) <= size:
            lines[-1] = joined
        elif text_width(word) <= size:
            lines.append(word)
        else:
            lines += _broken(word, size)
    return [line for line in lines if line]


def _broken(word: str, size: int) -> list[str]:
    lines = [""]
    for part in _PARTS.findall(word):
        if text_width(lines[-1] + part) <= size:
            lines[-1] += part
            continue
        lines.append("")
        for one in part:
            if lines[-1] and text_width(lines[-1] + one) > size:
                lines.append("")
            lines[-1] += one
    return lines
