# SPDX-License-Identifier: Apache-2.0
"""Histories as one HTML page that loads nothing else: the worst groups, a heat map, timelines."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from kafka_rebalance.group.html_tables import escaped
from kafka_rebalance.history.all_groups import Recorded
from kafka_rebalance.history.patterns import Pattern
from kafka_rebalance.history.recorded import RecordedRebalance
from kafka_rebalance.report.text.names import counted, cut, short_names, shortened
from kafka_rebalance.report.text.pages import page, scrolled, table

from .table import GROUP_COLUMNS, WORST, clock, group_cells, group_order, pattern_text, row_text
from .timeline import legend, timeline

_BINS_MS = (60_000, 600_000, 3_600_000, 21_600_000, 86_400_000, 604_800_000)
_MOST_BINS, _MOST_GROUPS, _MOST_ROWS = 48, 40, 200
_STYLE = """<style>
  .legend { line-height: 1.9; } .item { white-space: nowrap; margin-right: .8rem; }
  .cause { display: inline-block; min-width: 1.2em; text-align: center; color: #fff;
    font-weight: bold; font-size: 12px; line-height: 1.4; margin-right: .3rem; }
  svg.history { font-size: 11px; display: block; } svg.history text { fill: currentColor; }
  svg.history .letter { fill: #fff; font-weight: bold; } svg.history .faint { opacity: .7; }
  svg.history .held { fill: #9ecae1; } svg.history .idle { fill: #fff; stroke: #b00020; }
  svg.history .number { fill: #111; font-size: 10px; } svg.history .tick { stroke: currentColor; }
  svg.history .new { stroke: #b00020; stroke-width: 2; }
  .heat td { width: 22px; min-width: 22px; text-align: center; font-size: 11px; padding: 1px 0;
    color: #111; }
  .heat th { font-weight: normal; font-size: 11px; text-align: left; padding: 0 .4rem 0 0;
    white-space: nowrap; }
  .heat th.time { max-width: 22px; overflow: visible; padding: 0; }
  .round td { text-align: left !important; } .round th { text-align: left !important; }
  .round td:nth-child(n+5) { min-width: 9rem; }
  @media (prefers-color-scheme: dark) {
    body { background: #16181b; color: #e6e6e6; } .note { color: #b0b0b0; }
    .round td, .round th { border-color: #444; }
  }
</style>"""


def history_page(
    groups: Mapping[str, Recorded], patterns: Sequence[Pattern], title: str, *, most: int = WORST
) -> str:
    """Returns the page for groups by name; the `most` worst groups have timelines."""
    rows = {
        name: [row for row, _ in recorded if row.is_rebalance] for name, recorded in groups.items()
    }
    order = group_order(rows)
    parts = [_STYLE, f'<p class="note">{escaped(_span(rows))}</p>']
    if len(groups) > 1:
        parts.append("<h2>The worst groups</h2>")
        parts.append(
            table(GROUP_COLUMNS, [group_cells(one, rows, patterns) for one in order[:most]])
        )
        parts.append("<h2>Rebalances by group and time</h2>" + _heat_map(rows, order))
    parts.append(legend([row for name in order[:most] for row in rows[name]]))
    for name in order[:most]:
        mine = [one for one in patterns if one.group_id == name]
        parts.append(f"<h2>{escaped(name)}</h2>" + timeline(groups[name]))
        parts.append(_patterns(mine, groups[name]) + _details(rows[name]))
    return page(title, parts)


def _span(rows: Mapping[str, Sequence[RecordedRebalance]]) -> str:
    times = [row.time_ms for group in rows.values() for row in group]
    if not times:
        return "No rebalance is in these records."
    number = counted(len(times), "rebalance")
    found = f"{number} of {counted(len(rows), 'group')}"
    return f"{found}, {clock(min(times))} to {clock(max(times))} (UTC)."


def _heat_map(rows: Mapping[str, Sequence[RecordedRebalance]], order: Sequence[str]) -> str:
    """Returns a table of groups by times; the darker, the more rebalances."""
    times = [row.time_ms for group in rows.values() for row in group]
    if not times:
        return ""
    first, last = min(times), max(times)
    week = _BINS_MS[-1]
    weeks = week * (1 + (last - first) // (week * (_MOST_BINS - 1)))
    size = next((one for one in _BINS_MS if (last - first) // one < _MOST_BINS - 1), weeks)
    start = first // size
    counts: dict[str, Counter[int]] = defaultdict(Counter)
    for name, group in rows.items():
        counts[name].update(row.time_ms // size - start for row in group)
    bins = range(last // size - start + 1)
    most = max(counts[name][i] for name in order for i in bins)
    heads = "".join(
        f'<th class="time" scope="col">{clock((start + i) * size)[5:16] if i % 6 == 0 else ""}</th>'
        for i in bins
    )
    lines = [
        f'<tr><th scope="row">{escaped(cut(name, 30))}</th>'
        + "".join(_heat(counts[name][i], most) for i in bins)
        + "</tr>"
        for name in order[:_MOST_GROUPS]
    ]
    left = len(order) - len(lines)
    note = f" {left} more groups are not shown." if left > 0 else ""
    heads = f'<tr><th scope="col">group</th>{heads}</tr>'
    shown = scrolled(f'<table class="heat">{heads}{"".join(lines)}</table>')
    return f'{shown}<p class="note">A column is {_length(size)}, UTC.{note}</p>'


def _heat(number: int, most: int) -> str:
    if not number:
        return '<td style="background:rgba(128,128,128,.12)"></td>'
    hue, light = 50 - 50 * number / most, 80 - 22 * number / most
    return f'<td style="background:hsl({hue:.0f},85%,{light:.0f}%)">{number}</td>'


def _length(ms: int) -> str:
    names = {"week": 604_800_000, "day": 86_400_000, "hour": 3_600_000, "minute": 60_000}
    name, unit = next((name, unit) for name, unit in names.items() if ms % unit == 0)
    return counted(ms // unit, name)


def _patterns(patterns: Sequence[Pattern], recorded: Recorded) -> str:
    ids = {m.member_id for _, one in recorded if one is not None for m in one.members}
    names = short_names(sorted(ids))
    told = "".join(f"<li>{escaped(pattern_text(one, names))}</li>" for one in patterns)
    return f"<ul>{told}</ul>" if told else ""


def _details(rows: Sequence[RecordedRebalance]) -> str:
    ids = {one for row in rows for cause in row.causes for one in cause.members}
    names = short_names(sorted(ids))
    cells = [
        [
            clock(row.time_ms),
            str(row.generation_id),
            str(row.members),
            str(row.moved + row.gained),
            row_text(row, names),
            shortened("; ".join(one.detail for one in row.causes if one.detail), names),
        ]
        for row in rows[-_MOST_ROWS:]
    ]
    columns = ["time (UTC)", "generation", "members", "moves", "causes", "evidence"]
    left = len(rows) - len(cells)
    note = f'<p class="note">{left} earlier ones are not shown.</p>' if left else ""
    summary = f"<summary>Rebalances: {len(rows)}</summary>"
    return f"<details>{summary}{table(columns, cells)}{note}</details>"
