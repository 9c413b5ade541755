# SPDX-License-Identifier: Apache-2.0
"""Draws runs as pictures: who holds each partition over time; legible without colours."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kafka_rebalance.report.text.figures import new_figure, save
from kafka_rebalance.report.text.names import counted, cut
from kafka_rebalance.simulator import Run

from .time_axis import TimeAxis
from .timeline import Bar, Look, Timeline, timeline_of

# The shades are so light that black text is legible on them. Without colours some look alike; the
# labels in the wider bars name the holders.
SHADES = ("#9ecae1", "#fdd0a2", "#c7e9c0", "#dadaeb", "#fee391", "#d9d9d9", "#f7b6d2", "#bdbdbd")
HATCHES = ("", "||", "--", "..")
"""The marks of members with the same shade: members 0 to 7 have none, members 8 to 15 have `||`."""

SAME_SHADE = "held, by another member with this shade"
_WIDTH = 11.0
_STOP = 2.0  # the least height and width of a stop, in points
_ABOVE_AXIS = 2.8  # below the times that are cut short
_PANEL = 1.75  # inches a run: its steps, the names of its ticks, and its own name above


def draw_run(run: Run, path: Path) -> None:
    """Writes the picture; the file's suffix selects the format."""
    shown = timeline_of(run)
    rows = len(shown.rows)
    height = 0.24 * rows + (3.25 if shown.happenings else 2.5)
    figure = _figure(height)
    _title(figure, run, height)
    left, width = 1.3 / _WIDTH, 1 - 1.6 / _WIDTH
    above = figure.add_axes((left, 2.05 / height, width, 0.24 * rows / height))
    _bars(above, shown)
    below = figure.add_axes((left, 0.75 / height, width, 1.05 / height))
    _steps(below, shown, shown.axis, run.held, shown.most)
    _happenings(above, shown, shown.axis)
    _legend(figure, shown)
    save(figure, path)


def draw_runs(runs: Mapping[str, Run], path: Path) -> None:
    """Draws several runs of one scenario, one below the other, with the same time scale."""
    shown = {name: timeline_of(run) for name, run in runs.items()}
    busy = [span for one in shown.values() for span in one.axis.spans]
    first = next(iter(runs.values()))
    axis = TimeAxis.over(busy, first.until_ms)
    most = max(one.most for one in shown.values())
    height = _PANEL * len(shown) + (1.35 if first.happenings else 0.85)
    figure = _figure(height)
    _title(figure, first, height)
    for place, (name, one) in enumerate(shown.items()):
        bottom = 0.7 + _PANEL * (len(shown) - 1 - place)
        axes = figure.add_axes((1.3 / _WIDTH, bottom / height, 1 - 1.6 / _WIDTH, 1.1 / height))
        _steps(axes, one, axis, first.held, most)
        axes.text(-0.1, 1.06, cut(name, 60), transform=axes.transAxes, size=10, weight="bold")
        if place < len(shown) - 1:
            axes.set_xlabel("")
        if place == 0:
            _happenings(axes, one, axis)
    save(figure, path)


def shade_of(bar: Bar) -> tuple[str, int]:
    """Returns the holder's shade, and the number of its mark: 0 for no mark."""
    return SHADES[bar.member % len(SHADES)], bar.member // len(SHADES) % len(HATCHES)


def _figure(height: float) -> Any:
    return new_figure("a picture", figsize=(_WIDTH, height))


def _title(figure: Any, run: Run, height: float) -> None:
    figure.text(0.015, 1 - 0.3 / height, cut(run.title, 110), size=11)
    figure.text(0.015, 1 - 0.5 / height, cut(run.assumed, 140), size=8)


def _bars(axes: Any, shown: Timeline) -> None:
    from matplotlib.patches import Rectangle

    for bar in (part for one in shown.bars for part in one.parts(shown.axis)):
        x, end = shown.axis.place(bar.from_ms), shown.axis.place(bar.to_ms)
        look: dict[str, Any] = {"fc": "white", "ec": "#b00020", "hatch": "/////", "lw": 0.4}
        if bar.look is not Look.GAP:
            shade, mark = shade_of(bar)
            look = {"fc": shade, "ec": "#444444", "lw": 0.4, "hatch": HATCHES[mark]}
            if end - x < 0.003:
                look["ec"] = "none"  # edges would hide such a narrow bar
        if bar.look is Look.STUCK:
            look["hatch"] = "xxxx"
        axes.add_patch(Rectangle((x, bar.row - 0.42), max(end - x, 0.0004), 0.84, **look))
        # 0.009 of the axis is about the width of one letter.
        if bar.look is not Look.GAP and (end - x) > 0.009 * (len(bar.label) + 1):
            box = {"fc": look["fc"], "ec": "none", "pad": 0.6} if look["hatch"] else None
            axes.text(x + 0.003, bar.row, bar.label, va="center", size=7, clip_on=True, bbox=box)
    axes.set_ylim(len(shown.rows) - 0.4, -0.6)
    axes.set_yticks(range(len(shown.rows)), [cut(row, 16) for row in shown.rows], size=7)
    _time(axes, shown.axis)
    axes.set_xticklabels([])


def _steps(axes: Any, shown: Timeline, axis: TimeAxis, held: str, most: int) -> None:
    places = [axis.place(at) for at, _ in shown.steps] + [1.0]
    counts = [count for _, count in shown.steps]
    counts.append(counts[-1])
    axes.fill_between(places, counts, step="post", color="#d98c95", lw=0)
    axes.step(places, counts, where="post", color="#b00020", lw=0.8)
    # The axis is red during stops: one partition of many would be no higher than it is thick.
    stops = [place for place, count in enumerate(counts[:-1]) if count]
    starts, ends = [places[n] for n in stops], [places[n + 1] for n in stops]
    red = {"color": "#b00020", "lw": _STOP, "capstyle": "projecting", "clip_on": False}
    axes.hlines([0] * len(stops), starts, ends, zorder=_ABOVE_AXIS, **red)
    axes.set_ylim(0, most * 1.08 + 0.1)
    axes.set_ylabel(f"{held}s that\nnobody {'reads' if held == 'partition' else 'runs'}", size=8)
    axes.tick_params(axis="y", labelsize=8)
    for mark in shown.happenings:
        axes.axvline(axis.place(mark.at_ms), color="black", lw=0.6, ls=":")
    _time(axes, axis)
    axes.set_xlabel("time; quiet times are cut short (grey)", size=8)


def _happenings(axes: Any, shown: Timeline, axis: TimeAxis) -> None:
    """Writes the names of events above the bars, but leaves out a name that would cover another."""
    last = -1.0
    for mark in shown.happenings:
        place = axis.place(mark.at_ms)
        if place - last >= 0.016:
            axes.annotate(
                cut(mark.label, 26),
                (place, 1.0),
                (0, 9),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                rotation=25,
                size=7,
                annotation_clip=False,
                arrowprops={"arrowstyle": "-", "lw": 0.6},
            )
            last = place


def _time(axes: Any, axis: TimeAxis) -> None:
    axes.set_xlim(0, 1)
    ticks = axis.ticks()
    axes.set_xticks([place for place, _ in ticks], [name for _, name in ticks], size=8)
    for start, end in axis.cuts():
        axes.axvspan(start, end, color="#e4e4e4", zorder=3, lw=0)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _legend(figure: Any, shown: Timeline) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    looks = {bar.look for bar in shown.bars}
    key: list[Any] = [Patch(fc=SHADES[0], ec="#444444", label="held, by the member named in it")]
    if any(bar.look is Look.HELD and shade_of(bar)[1] for bar in shown.bars):
        key.append(Patch(fc=SHADES[0], ec="#444444", hatch=HATCHES[1], label=SAME_SHADE))
    if Look.STUCK in looks:
        key.append(Patch(fc=SHADES[0], ec="#444444", hatch="xxxx", label=Look.STUCK.value))
    if Look.GAP in looks:
        key.append(Patch(fc="white", ec="#b00020", hatch="/////", label=Look.GAP.value))
    if shown.happenings:
        key.append(Line2D([], [], color="black", lw=0.6, ls=":", label="an event"))
    if shown.left_out:
        left_out = f"{counted(shown.left_out, 'member')} without a row"
        figure.text(0.99, 0.01, left_out, size=8, ha="right")
    figure.legend(handles=key, loc="lower left", ncols=5, fontsize=8, frameon=False)
