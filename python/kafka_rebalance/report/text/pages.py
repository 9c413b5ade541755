# SPDX-License-Identifier: Apache-2.0
"""The parts that HTML pages share: the frame, tables that scroll, and bar charts as SVG."""

from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from string import Template

from kafka_rebalance.group.html_tables import escaped, html_table

from .sentences import cut

_WIDTH, _NAMES, _NUMBERS = 440, 170, 85  # widths: a chart, its names, the numbers after its bars
_LETTERS = 23
_LINE, _BAR, _GAP = 15, 12, 7
_COLOURS = ("#2b6a99", "#bcd6ea", "#b3404a")


def page(title: str, parts: Iterable[str]) -> str:
    """Returns a page that loads nothing else: no script, no font, no image."""
    frame = files("kafka_rebalance.report.text").joinpath("page.html").read_text(encoding="utf-8")
    return Template(frame).substitute(title=escaped(title), body="\n".join(parts))


def scrolled(table: str) -> str:
    """Returns a wide table in a box that scrolls, so that the page itself does not."""
    return f'<div class="scroll">{table}</div>'


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], style: str = "round") -> str:
    return scrolled(html_table(columns, rows, style))


def bar_chart(label: str, names: Sequence[str], series: Mapping[str, Sequence[int]]) -> str:
    """Returns an SVG chart for a phone's width: a bar for each name and series (at most 3)."""
    most = max((number for numbers in series.values() for number in numbers), default=0) or 1
    marks = [
        _rect(0, n * _LINE + 2, 10, 10, colour) + _text(16, n * _LINE + 11, name)
        for n, (name, colour) in enumerate(zip(series, _COLOURS, strict=False))
    ]
    y = len(series) * _LINE + _GAP
    for place, name in enumerate(names):
        middle = y + len(series) * _BAR / 2 + 4
        marks.append(_text(_NAMES - 6, middle, cut(name, _LETTERS), ' text-anchor="end"'))
        for numbers, colour in zip(series.values(), _COLOURS, strict=False):
            width = numbers[place] / most * (_WIDTH - _NAMES - _NUMBERS)
            marks.append(_rect(_NAMES, y, width, _BAR - 1, colour))
            marks.append(_text(_NAMES + width + 4, y + _BAR - 2, f"{numbers[place]:,}"))
            y += _BAR
        y += _GAP
    return (
        f'<svg class="picture" role="img" aria-label="{escaped(label)}" '
        f'viewBox="0 0 {_WIDTH} {y}">{"".join(marks)}</svg>'
    )


def _rect(x: float, y: float, width: float, height: float, fill: str) -> str:
    place = f'x="{x}" y="{y}" width="{width:.1f}" height="{height}"'
    return f'<rect {place} fill="{fill}" stroke="#555" stroke-width="0.5"/>'


def _text(x: float, y: float, text: str, style: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}"{style}>{escaped(text)}</text>'
