# SPDX-License-Identifier: Apache-2.0
"""Draws the pictures of a fleet's report, as SVG elements that fit the screen of a phone."""

import re
from collections.abc import Mapping, Sequence
from io import StringIO
from typing import Any

from kafka_rebalance.group.html_tables import escaped
from kafka_rebalance.report.text.figures import new_figure, save
from kafka_rebalance.report.text.names import cut

from .fleet_report import Bin, ChangeTotals

_WIDTH = 5.0
_DARK, _LIGHT, _RED = "#2b6a99", "#bcd6ea", "#b3404a"
_MOST_BARS = 12
_NAME = 24


def imbalance(now: Sequence[Bin], possible: Sequence[Bin]) -> str:
    """Draws the number of groups by spread, for the present and the best possible assignment."""
    lows = sorted({one.low for one in (*now, *possible)})
    names = {one.low: one.name for one in (*now, *possible)}
    places = {low: place for place, low in enumerate(lows)}
    figure, axes = _axes(2.7)
    for bins, shift, colour, label in (
        (now, -0.2, _DARK, "now"),
        (possible, 0.2, _LIGHT, "best possible"),
    ):
        at = [places[one.low] + shift for one in bins]
        axes.bar(
            at, [one.groups for one in bins], 0.4, color=colour, label=label, ec="#555", lw=0.5
        )
    axes.set_xticks(range(len(lows)), [names[low] for low in lows], rotation=30, ha="right")
    axes.set_xlabel("partitions between the fullest and the emptiest member")
    _counts(axes.yaxis, "groups")
    _legend(axes)
    return _svg(figure, "imbalance", "Groups by spread, now and at best")


def moves(changes: Sequence[ChangeTotals]) -> str:
    """Draws the moves of all groups by change, and the fewest moves to the best balance."""
    shown = changes[:_MOST_BARS]
    figure, axes = _axes(1.3 + 0.5 * len(shown))
    at = range(len(shown))
    bars = [(-0.2, _DARK, "with the groups' assignors", [one.moves for one in shown])]
    bars.append((0.2, _LIGHT, "fewest for the best balance", [one.least_moves for one in shown]))
    for shift, colour, label, values in bars:
        axes.barh(
            [y + shift for y in at], values, 0.4, color=colour, label=label, ec="#555", lw=0.5
        )
    _names(axes, [one.change or "next rebalance" for one in shown])
    _counts(axes.xaxis, "partitions moved, all groups")
    _legend(axes)
    return _svg(figure, "moves", "Moves by change")


def racks(lost: Mapping[str, ChangeTotals]) -> str:
    """Draws how many groups the loss of a rack affects, and how."""
    shown = dict(list(lost.items())[:_MOST_BARS])
    figure, axes = _axes(1.3 + 0.6 * len(shown))
    totals = shown.values()
    bars = [
        (-0.27, _DARK, "lose members", [one.with_waiting for one in totals]),
        (0.0, _RED, "have partitions without a leader", [one.with_leaderless for one in totals]),
        (0.27, _LIGHT, "pause in the rebalance", [one.with_unavailable for one in totals]),
    ]
    for shift, colour, label, values in bars:
        at = [y + shift for y in range(len(shown))]
        axes.barh(at, values, 0.27, color=colour, label=label, ec="#555", lw=0.5)
    _names(axes, list(shown))
    _counts(axes.xaxis, "groups")
    _legend(axes)
    return _svg(figure, "racks", "Groups hurt by the loss of each rack")


def _axes(height: float) -> tuple[Any, Any]:
    figure = new_figure("a report", figsize=(_WIDTH, height), layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _legend(axes: Any) -> None:
    """Places the legend above the bars, so that it hides no bar."""
    place = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.2}
    axes.legend(frameon=False, ncols=1, **place)


def _names(axes: Any, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), [cut(name, _NAME) for name in names])
    axes.invert_yaxis()


def _counts(axis: Any, label: str) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _short(value)))
    axis.set_label_text(label)


def _short(value: float) -> str:
    for unit, size in (("bn", 1e9), ("m", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def _svg(figure: Any, name: str, label: str) -> str:
    """Returns the picture as an element of the page, without the header of an SVG file."""
    text = StringIO()
    settings = {"svg.fonttype": "none", "svg.hashsalt": name, "font.size": 10}
    save(figure, text, settings=settings)
    whole = text.getvalue()
    inside = whole[whole.index("<svg") :]
    inside = re.sub(r"<metadata>.*?</metadata>", "", inside, flags=re.DOTALL)
    inside = re.sub(r'(id="|url\(#|xlink:href="#)', rf"\g<1>{name}-", inside)
    head, _, rest = inside.partition(">")
    head = re.sub(r' (width|height)="[^"]*"', "", head)
    return f'{head} class="picture" role="img" aria-label="{escaped(label)}">{rest}'
