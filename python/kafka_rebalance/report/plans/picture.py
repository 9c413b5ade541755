# SPDX-License-Identifier: Apache-2.0
"""Draws a plan as a picture: a grid of members by partitions, or bars; legible without colours."""

from itertools import groupby
from pathlib import Path
from typing import Any

from kafka_rebalance.group.model import shown
from kafka_rebalance.plans import RebalancePlan
from kafka_rebalance.report.text.figures import new_figure, save
from kafka_rebalance.report.text.names import cut

from .grid import Cell, Grid, grid_of

_MOST_ROWS, _MOST_COLUMNS, _MOST_BARS = 40, 100, 60
_LETTERS = 2.6  # of a topic's name, in the width of a column
_MOST_SLANTED = 30
# Fill, hatch and sign of a cell; the fills alone, or the signs alone, show what kind it is.
_LOOK = {
    Cell.KEPT: ("#d0d0d0", "", ""),
    Cell.REVOKED: ("#ffffff", "////", "−"),
    Cell.GAINED: ("#1f1f1f", "", "+"),
}


def draw_plan(plan: RebalancePlan, path: Path) -> None:
    """Writes the picture; the file's suffix selects the format."""
    save(figure_of(plan), path)


def figure_of(plan: RebalancePlan) -> Any:
    grid = grid_of(plan)
    if len(grid.names) <= _MOST_ROWS and len(grid.partitions) <= _MOST_COLUMNS:
        return _cells(grid)
    return _bars(grid)


def _cells(grid: Grid) -> Any:
    """Draws two panels, one above the other, so that a partition has the same column in both."""
    rows, columns = len(grid.names), len(grid.partitions)
    labels = [cut(name, 36) for name in grid.names]
    left = max(map(len, labels)) * 0.075 + 0.3
    slanted = _slanted(grid)
    right, above = 0.75 + 0.04 * slanted, 0.04 * slanted  # inches
    width = max(6.0, left + columns * min(0.24, 11 / columns) + right + 0.05)
    panel = rows * 0.22
    height = 2 * (panel + above) + 2.3
    figure = new_figure("a picture", figsize=(width, height))
    figure.suptitle(
        cut(grid.title, int(width * 11)), x=0.015, y=1 - 0.12 / height, ha="left", size=11
    )
    for heading, kinds, which, bottom in (
        ("before", (Cell.KEPT, Cell.REVOKED), 0, panel + above + 1.45),
        ("after", (Cell.KEPT, Cell.GAINED), 1, 0.75),
    ):
        place = (left / width, bottom / height, 1 - (left + right) / width, panel / height)
        axes = figure.add_axes(place)
        _panel(axes, grid, heading, kinds, which)
        axes.set_yticks(range(rows), labels, size=8)
    _legend(figure)
    return figure


def _topics(grid: Grid) -> list[tuple[str, int]]:
    """Returns each topic with its number of columns."""
    runs = groupby(grid.partitions, key=lambda tp: tp.topic)
    return [(topic, len(list(run))) for topic, run in runs]


def _slanted(grid: Grid) -> int:
    """Returns how many letters of the topics' names slant, or 0 if all names fit side by side.

    Names of one application begin alike, so those without their middle would not differ.
    """
    topics = _topics(grid)
    fit = all(len(shown(topic)) <= int(count * _LETTERS) for topic, count in topics)
    return 0 if fit else min(_MOST_SLANTED, max(len(shown(topic)) for topic, _ in topics))


def _panel(axes: Any, grid: Grid, heading: str, kinds: tuple[Cell, ...], which: int) -> None:
    from matplotlib.patches import Rectangle

    place = {tp: x for x, tp in enumerate(grid.partitions)}
    rows, columns = len(grid.names), len(grid.partitions)
    for (row, tp), cell in grid.cells.items():
        if cell not in kinds:
            continue
        fill, hatch, sign = _LOOK[cell]
        x = place[tp]
        axes.add_patch(
            Rectangle((x - 0.45, row - 0.42), 0.9, 0.84, fc=fill, ec="black", lw=0.6, hatch=hatch)
        )
        if sign and columns <= 60:
            colour = "white" if cell is Cell.GAINED else "black"
            box = None if cell is Cell.GAINED else {"fc": "white", "ec": "none", "pad": 0.4}
            axes.text(x, row, sign, ha="center", va="center", size=8, color=colour, bbox=box)
    for row, counts in enumerate(grid.counts):
        text = "-" if counts[which] is None else str(counts[which])
        axes.text(columns - 0.3, row, text, ha="left", va="center", size=7)
    start = 0
    slanted = _slanted(grid)
    look = {"rotation": 30, "rotation_mode": "anchor"} if slanted else {}
    for topic, count in _topics(grid):
        name = cut(topic, slanted or int(count * _LETTERS))
        axes.text(start - 0.45, -0.75, name, ha="left", va="bottom", size=8, **look)
        if start:
            axes.axvline(start - 0.5, color="black", lw=0.8)
        start += count
    step = 1 if columns <= 50 else 5
    ticks = [x for x, tp in enumerate(grid.partitions) if tp.partition % step == 0]
    axes.set_xticks(ticks, [str(grid.partitions[x].partition) for x in ticks], size=6)
    axes.set_xlim(-0.6, columns - 0.4)
    axes.set_ylim(rows - 0.4, -0.6)
    axes.text(columns - 0.3, -0.75, heading, ha="left", va="bottom", size=9, weight="bold")
    axes.tick_params(length=0)


def _bars(grid: Grid) -> Any:
    tallies = [dict.fromkeys(Cell, 0) for _ in grid.names]
    for (row, _), cell in grid.cells.items():
        tallies[row][cell] += 1
    changed = sorted(
        range(len(grid.names)),
        key=lambda row: (-tallies[row][Cell.REVOKED] - tallies[row][Cell.GAINED], row),
    )
    rows = sorted(changed[:_MOST_BARS])
    height = len(rows) * 0.2 + 2.2
    figure = new_figure("a picture", figsize=(10, height))
    figure.suptitle(cut(grid.title, 110), x=0.02, y=1 - 0.15 / height, ha="left", va="top", size=11)
    axes = figure.subplots()
    figure.subplots_adjust(left=0.3, right=0.97, top=1 - 0.8 / height, bottom=1.1 / height)
    for y, row in enumerate(rows):
        kept = tallies[row][Cell.KEPT]
        for cell, start in ((Cell.KEPT, 0), (Cell.GAINED, kept)):
            fill, hatch, _ = _LOOK[cell]
            axes.barh(y, tallies[row][cell], left=start, fc=fill, ec="black", lw=0.5, hatch=hatch)
        fill, hatch, _ = _LOOK[Cell.REVOKED]
        revoked = tallies[row][Cell.REVOKED]
        axes.barh(y, -revoked, fc=fill, ec="black", lw=0.5, hatch=hatch)
    axes.axvline(0, color="black", lw=0.8)
    axes.set_yticks(range(len(rows)), [cut(grid.names[row], 36) for row in rows], size=7)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    most = f"; the {len(rows)} members with most changes, of {len(grid.names)}"
    axes.set_xlabel(
        "partitions: kept and gained to the right of the line, revoked to its left"
        + (most if len(rows) < len(grid.names) else ""),
        size=9,
    )
    _legend(figure)
    return figure


def _legend(figure: Any) -> None:
    from matplotlib.patches import Patch

    handles = [
        Patch(fc=fill, ec="black", lw=0.6, hatch=hatch, label=f"{cell.value} {sign}".strip())
        for cell, (fill, hatch, sign) in _LOOK.items()
    ]
    figure.legend(handles=handles, loc="lower left", ncols=3, fontsize=8, frameon=False)
