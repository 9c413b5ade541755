# SPDX-License-Identifier: Apache-2.0
"""Writes simulated runs as Parquet, or as one HTML page that loads nothing else."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from kafka_rebalance.errors import MissingExtra
from kafka_rebalance.group.html_tables import escaped
from kafka_rebalance.simulator.measure import stops_of, totals, unheld
from kafka_rebalance.simulator.run import Run
from kafka_rebalance.simulator.seeds import parts_of

from ..text.pages import page, table
from ..text.sentences import counted, cut
from .run import chapter_columns, chapter_rows, settled_text, summary_of, total_cells, total_columns
from .timeline import Bar, Look, Mark, TimeAxis, Timeline, timeline_of

# The shades are so light that black text is legible on them. Without colours, some of them look
# alike; the labels in the wider bars name the holders.
_SHADES = ("#9ecae1", "#fdd0a2", "#c7e9c0", "#dadaeb", "#fee391", "#d9d9d9", "#f7b6d2", "#bdbdbd")
_SAME_SHADE = "held, by another member with this shade"
# The marks (as SVG paths) that distinguish members with one shade: members 0 to 7 have none,
# members 8 to 15 a line, and so on.
_LINES = ("", "M 2 0 V 6", "M 0 2 H 6", "M 2 2 h 2 M 5 5 h 1 M 0 5 h 1")
_WIDTH, _LEFT, _RIGHT, _ROW, _STEPS = 1100, 110, 60, 18, 90
_MOST_BARS = 30_000
_MOST_ROWS = 400


def runs_page(runs: Mapping[str, Run]) -> str:
    first = next(iter(runs.values()))
    shown = {name: timeline_of(run) for name, run in runs.items()}
    busy = [span for one in shown.values() for span in one.axis.spans]
    axis = TimeAxis.over(busy, first.until_ms)
    assumed = "; ".join(dict.fromkeys(one.assumed for one in runs.values()))
    name, first = next(iter(runs.items()))
    if first.of_seeds:
        assumed += f"; shown: {f'for {name} ' if name else ''}{first.of_seeds}"
    parts = [
        f"<p>{escaped(summary_of(runs))}</p>",
        f"<p class='note'>{escaped(assumed)}</p>",
        table(
            ["after the start-up", *total_columns(first.held)],
            [
                [name or "this run", *total_cells(totals(run), first.held)]
                for name, run in runs.items()
            ],
        ),
        _settlings(runs),
        _key(list(shown.values())),
    ]
    for name, run in runs.items():
        if name:
            parts.append(f"<h2>{escaped(name)}</h2>")
        label = f"{name}: who holds each {run.held} over time".removeprefix(": ")
        parts += [_timeline(shown[name], axis, run.held, label), _chapters(run)]
        for member, why in run.crashed.items():
            parts.append(f"<p>{escaped(member)} stopped: {escaped(why)}</p>")
    return page(first.title, parts)


def _settlings(runs: Mapping[str, Run]) -> str:
    settled = {name: list(parts_of(run)) for name, run in runs.items()}
    rows = [
        [
            f"{each.at_ms / 1000:,.1f}",
            cut(each.what, 80),
            *(settled_text(one[place]) for one in settled.values()),
        ]
        for place, each in enumerate(next(iter(settled.values())))
    ]
    if not rows:
        return ""
    columns = ["at s", "what happens", *(f"{name} stable after s".strip() for name in runs)]
    return "<h2>Events, and the time until the group is stable</h2>" + table(columns, rows)


def _key(shown: Sequence[Timeline]) -> str:
    marks = {
        "held": "held, by the member named in it",
        "other": _SAME_SHADE if any(map(_marked_holders, shown)) else "",
        "stuck": "held, but stuck: the member or its broker is away",
        "gap": "nobody works on it",
        "cut": "a quiet time, cut short",
        "event": "an event" if any(one.happenings for one in shown) else "",
    }
    entries = (f'<i><span class="{name}"></span>{text}</i>' for name, text in marks.items() if text)
    hint = '<p class="note">Hold the pointer over a bar to see its times.</p>'
    return f'<p class="key">{" ".join(entries)}</p>{hint}'


def _chapters(run: Run) -> str:
    rows = chapter_rows(run)
    left = len(rows) - _MOST_ROWS
    note = f"<p class='note'>{left} more are not shown.</p>" if left > 0 else ""
    shown = table(chapter_columns(run), rows[:_MOST_ROWS])
    stopped = []
    for number, who in sorted(stops_of(run).items())[:_MOST_ROWS]:
        times = (f"{one.member} {(one.to_ms - one.from_ms) / 1000:,.1f}" for one in who)
        stopped.append([str(number), cut(", ".join(times), 120)])
    shown += note + (table(["rebalance", "who stopped, for s"], stopped) if stopped else "")
    return f"<details open><summary>Rebalances: {len(run.rebalances)}</summary>{shown}</details>"


def _timeline(shown: Timeline, axis: TimeAxis, held: str, label: str) -> str:
    rows = len(shown.rows)
    top = 16 + (60 if shown.happenings else 0)
    bottom = top + rows * _ROW
    height = bottom + 20 + _STEPS + 40
    marks = _marks(shown.happenings, axis, bottom + 20 + _STEPS, top)
    names = "".join(
        f'<text x="{_LEFT - 6}" y="{top + row * _ROW + 13}" text-anchor="end">'
        f"{escaped(cut(name, 16))}</text>"
        for row, name in enumerate(shown.rows)
    )
    bars = "".join(
        _bar(one, part, axis, top) for one in shown.bars[:_MOST_BARS] for part in one.parts(axis)
    )
    cuts = "".join(
        f'<rect class="cut" x="{_x(a):.1f}" y="{top}" width="{_x(b) - _x(a):.1f}" '
        f'height="{bottom + 20 + _STEPS - top}"/>'
        for a, b in axis.cuts()
    )
    steps = _steps(shown, axis, bottom + 20)
    ticks = "".join(
        f'<text x="{_x(place):.1f}" y="{height - 22}" text-anchor="middle">{name}</text>'
        for place, name in axis.ticks()
    )
    left_out = f"; {counted(shown.left_out, 'member')} without a row" if shown.left_out else ""
    bars_left = len(shown.bars) - _MOST_BARS
    left_out += f"; {counted(bars_left, 'bar')} not drawn" if bars_left > 0 else ""
    verb = "reads" if held == "partition" else "runs"
    note = (
        f'<text x="{_LEFT - 6}" y="{bottom + 34}" text-anchor="end">{shown.most}</text>'
        f'<text x="{_LEFT - 6}" y="{bottom + 20 + _STEPS}" text-anchor="end">0</text>'
        f'<text x="{_LEFT}" y="{height - 4}">below: {held}s that nobody {verb}{left_out}</text>'
    )
    return (
        f'<div class="scroll"><svg class="timeline" role="img" aria-label="{escaped(label)}" '
        f'viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}">'
        f"{_HATCHES}{_patterns(shown)}{names}{bars}{steps}{cuts}{marks}{ticks}{note}</svg></div>"
    )


_HATCHES = (
    '<defs><pattern id="gap" width="6" height="6" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><rect width="6" height="6" fill="#fff"/>'
    '<rect width="2" height="6" fill="#b00020"/></pattern></defs>'
)


def _marked_holders(shown: Timeline) -> dict[tuple[str, int], str]:
    """Returns (shade, mark) -> SVG pattern's name, for members with the shade of an earlier one."""
    held = (_shade_of(bar) for bar in shown.bars if bar.look is not Look.GAP)
    return {(shade, mark): f"{shade[1:]}-{mark}" for shade, mark in held if mark}


def _shade_of(bar: Bar) -> tuple[str, int]:
    """Returns the holder's shade, and the number of its mark; 0 means none."""
    return _SHADES[bar.member % len(_SHADES)], bar.member // len(_SHADES) % len(_LINES)


def _patterns(shown: Timeline) -> str:
    return "".join(
        f'<defs><pattern id="{name}" width="6" height="6" patternUnits="userSpaceOnUse"><rect '
        f'width="6" height="6" fill="{shade}"/><path d="{_LINES[mark]}" stroke="#555"/></pattern>'
        "</defs>"
        for (shade, mark), name in _marked_holders(shown).items()
    )


def _x(place: float) -> float:
    return _LEFT + place * (_WIDTH - _LEFT - _RIGHT)


def _bar(bar: Bar, part: Bar, axis: TimeAxis, top: int) -> str:
    x, end = _x(axis.place(part.from_ms)), _x(axis.place(part.to_ms))
    y, width = top + bar.row * _ROW, max(end - x, 0.5)
    shade, mark = _shade_of(bar)
    fill = f"url(#{shade[1:]}-{mark})" if mark else shade
    if bar.look is Look.GAP:
        fill = "url(#gap)"
    stuck = ' stroke-dasharray="3 2" opacity=".55"' if bar.look is Look.STUCK else ""
    when = f"{bar.from_ms / 1000:,.2f} s to {bar.to_ms / 1000:,.2f} s"
    what = escaped(f"{bar.label} ({bar.look.value}), {when}")
    text = ""
    if bar.look is not Look.GAP and width > 7 * (len(bar.label) + 1):
        halo = f' stroke="{shade}" stroke-width="3" paint-order="stroke"' if mark else ""
        text = f'<text x="{x + 3:.1f}" y="{y + 13}"{halo}>{escaped(bar.label)}</text>'
    return (
        f'<rect x="{x:.1f}" y="{y + 1}" width="{width:.1f}" height="{_ROW - 3}" fill="{fill}" '
        f'stroke="#555" stroke-width="{0.5 if width > 3 else 0}"{stuck}>'
        f"<title>{what}</title></rect>{text}"
    )


def _steps(shown: Timeline, axis: TimeAxis, top: int) -> str:
    """Returns a graph of the number of partitions without a reader; where it is above 0, the time
    axis is red.
    """
    bottom, scale = top + _STEPS, _STEPS / max(shown.most, 1)
    path, stops = [f"M {_x(0):.1f} {bottom}"], []
    places = [*(_x(axis.place(at)) for at, _ in shown.steps), _x(1)]
    for x, end, (_, count) in zip(places, places[1:], shown.steps, strict=False):
        path.append(f"H {x:.1f} V {bottom - count * scale:.1f}")
        if count:
            stops.append(f"M {x - 1:.1f} {bottom} H {end + 1:.1f}")
    path.append(f"H {_x(1):.1f} V {bottom} Z")
    red = f'<path class="stops" d="{" ".join(stops)}" stroke="#b00020" stroke-width="2"/>'
    return f'<path d="{" ".join(path)}" fill="#d98c95"/>{red}'


def _marks(marks: Sequence[Mark], axis: TimeAxis, bottom: int, top: int) -> str:
    """Returns a line for each event, labelled with the event's name if there is space."""
    parts, last = [], -float(_WIDTH)
    for mark in marks:
        x = _x(axis.place(mark.at_ms))
        parts.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top - 4}" y2="{bottom}" stroke="#000" '
            f'stroke-dasharray="1 3"><title>{escaped(mark.label)}</title></line>'
        )
        if x - last >= 14:
            name = cut(mark.label, min(26, int((_WIDTH - x) / 6.5)))
            parts.append(
                f'<text transform="translate({x:.1f},{top - 6}) rotate(-25)">{escaped(name)}</text>'
            )
            last = x
    return "".join(parts)


def write_runs(runs: Mapping[str, Run], path: Path) -> None:
    """Writes runs as Parquet: a row for each interval in which one member held a partition.

    A Connect task counts as a partition. In an interval without a holder, `member` is null. The
    rows of each partition are in order of time.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise MissingExtra("Parquet", "arrow") from None
    rows = [row for name, run in runs.items() for row in _rows(name, run)]
    schema = pa.schema(
        [
            pa.field("run", pa.string(), nullable=False),
            pa.field("partition", pa.string(), nullable=False),
            pa.field("member", pa.string()),
            pa.field("generation_id", pa.int32()),
            pa.field("from_ms", pa.int64(), nullable=False),
            pa.field("to_ms", pa.int64(), nullable=False),
            pa.field("is_stuck", pa.bool_(), nullable=False),
        ]
    )
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    parquet.write_table(
        pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema), path
    )


_Row = tuple[str, str, str | None, int | None, int, int, bool]


def _rows(name: str, run: Run) -> list[_Row]:
    held: list[_Row] = [
        (name, one.partition, one.member, one.generation_id, one.from_ms, one.to_ms, one.is_stuck)
        for one in run.holds
    ]
    nobody: list[_Row] = [
        (name, one.partition, None, None, one.from_ms, one.to_ms, False) for one in unheld(run)
    ]
    return sorted(held + nobody, key=lambda row: (row[1], row[4]))
