# SPDX-License-Identifier: Apache-2.0
"""Histories as one HTML page that loads nothing else: the worst groups, a heat map, timelines."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files

from kafka_rebalance.group.html_tables import escaped
from kafka_rebalance.history.all_groups import Recorded
from kafka_rebalance.history.group_log import RecordedGeneration, RecordedMember
from kafka_rebalance.history.patterns import Pattern
from kafka_rebalance.history.recorded import RecordedRebalance

from ..text.pages import page, scrolled, table
from ..text.sentences import counted, cut, member_names, shortened
from .table import (
    GROUP_COLUMNS,
    WORST,
    answer_of,
    clock,
    group_cells,
    group_order,
    names_in,
    pattern_text,
    row_text,
)

_BINS_MS = (60_000, 600_000, 3_600_000, 21_600_000, 86_400_000, 604_800_000)
_MOST_BINS, _MOST_GROUPS, _MOST_ROWS = 48, 40, 200


def history_page(groups: Mapping[str, Recorded], patterns: Sequence[Pattern], title: str) -> str:
    """Returns the page for records by group id; only the worst groups have timelines."""
    rows = {
        name: [row for row, _ in recorded if row.is_rebalance] for name, recorded in groups.items()
    }
    order = group_order(rows, patterns)
    style = files("kafka_rebalance.report.history").joinpath("page.css").read_text(encoding="utf-8")
    every = [row for group in rows.values() for row in group]
    answer, span = "", "No rebalance is in these records."
    if times := [row.time_ms for row in every]:
        answer = f"<p>{escaped(answer_of(every, len(rows)))}</p>"
        span = f"{clock(min(times))} to {clock(max(times))} (UTC)."
    parts = [f"<style>\n{style}</style>", answer, f'<p class="note">{escaped(span)}</p>']
    if len(groups) > 1:
        parts.append("<h2>The worst groups</h2>")
        parts.append(
            table(GROUP_COLUMNS, [group_cells(one, rows, patterns) for one in order[:WORST]])
        )
        parts.append("<h2>Rebalances by group and time</h2>" + _heat_map(rows, order))
    parts.append(legend([row for name in order[:WORST] for row in rows[name]]))
    for name in order[:WORST]:
        parts.append(f"<h2>{escaped(name)}</h2>" + timeline(groups[name]))
        names = _names(one for _, one in groups[name] if one is not None)
        mine = (pattern_text(one, names) for one in patterns if one.group_id == name)
        told = "".join(f"<li>{escaped(text)}</li>" for text in mine)
        parts.append((f"<ul>{told}</ul>" if told else "") + _details(rows[name]))
    return page(title, parts)


def _heat_map(rows: Mapping[str, Sequence[RecordedRebalance]], order: Sequence[str]) -> str:
    """Returns a table of groups by times: the darker a cell, the more rebalances."""
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
    names = {"week": 604_800_000, "day": 86_400_000, "hour": 3_600_000, "minute": 60_000}
    name, unit = next((name, unit) for name, unit in names.items() if size % unit == 0)
    return f'{shown}<p class="note">A column is {counted(size // unit, name)}, UTC.{note}</p>'


def _heat(number: int, most: int) -> str:
    if not number:
        return '<td style="background:rgba(128,128,128,.12)"></td>'
    hue, light = 50 - 50 * number / most, 80 - 22 * number / most
    return f'<td style="background:hsl({hue:.0f},85%,{light:.0f}%)">{number}</td>'


def _details(rows: Sequence[RecordedRebalance]) -> str:
    names = names_in(rows)
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


LOOKS = {
    "started": ("#4c78a8", "0"),
    "joined": ("#3d8b40", "J"),
    "rejoined": ("#a87400", "r"),
    "left": ("#8a6245", "L"),
    "timed out": ("#b3404a", "T"),
    "gone": ("#6f6f6f", "?"),
    "assignor switch": ("#9a5b91", "W"),
    "resubscription": ("#2a8a85", "R"),
    "partitions added": ("#5a5fb0", "P"),
    "partitions ready": ("#4f7f8f", "p"),
    "topics changed": ("#7a6fa8", "t"),
    "settings changed": ("#8f6f4f", "s"),
    "member changed": ("#6f8f4f", "m"),
    "second round": ("#47799d", "2"),
    "static restart": ("#a0662a", "S"),
    "probing": ("#8c8c3c", "w"),
    "follow-up": ("#5f7d64", "f"),
    "requested": ("#c2571a", "Q"),
    "coordinator": ("#222222", "!"),
}
"""The colour and the letter of each cause; a record with any other cause is grey."""

OTHER = ("#7d7d7d", "·")
MOST_COLUMNS, MOST_MEMBERS = 120, 40
_COLUMN, _ROW, _LEFT, _TOP = 18, 16, 130, 26
_LABEL_EVERY = 8


def timeline(recorded: Recorded) -> str:
    """Returns a picture of a group's last records, and a sentence on what is left out."""
    columns = [(row, one) for row, one in recorded if one is not None][-MOST_COLUMNS:]
    rows = _rows([one for _, one in columns])
    shown = list(rows)[:MOST_MEMBERS]
    width = _LEFT + len(columns) * _COLUMN + 80
    bottom = _TOP + len(shown) * _ROW
    parts = [_column(x, row, bottom) for x, (row, _) in enumerate(columns)]
    for y, name in enumerate(shown):
        top = _TOP + y * _ROW
        label = escaped(cut(name, 19))
        parts.append(f'<text x="{_LEFT - 6}" y="{top + 12}" text-anchor="end">{label}</text>')
        parts += _cells([one for _, one in columns], rows[name], top)
    height = bottom + 34
    label = f"timeline of {recorded[0][0].group_id}"
    left = [
        *([f"{len(rows) - len(shown)} more members"] if len(rows) > len(shown) else []),
        *(["earlier records"] if len(columns) < len(recorded) else []),
    ]
    note = f'<p class="note">Not shown: {", ".join(left)}.</p>' if left else ""
    return (
        f'<div class="scroll"><svg class="history" role="img" aria-label="{escaped(label)}" '
        f'viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
        f'<text x="{_LEFT - 6}" y="17" text-anchor="end">cause</text>{"".join(parts)}'
        f"</svg></div>{note}"
    )


def legend(rows: Sequence[RecordedRebalance]) -> str:
    kinds = {row.cause for row in rows}
    marks = "".join(
        f'<span class="item"><span class="cause" style="background:{colour}">{letter}</span>'
        f"{escaped(kind)}</span> "
        for kind, (colour, letter) in LOOKS.items()
        if kind in kinds
    )
    return (
        f'<p class="legend">{marks}</p><p class="note">A bar is a member with its number of '
        "partitions; a line before it marks a new member id. Hold the pointer over a column to "
        "see its causes, or open the table below it.</p>"
    )


def _rows(generations: Sequence[RecordedGeneration]) -> dict[str, dict[int, RecordedMember]]:
    """Returns member's name -> number of the picture's column (a generation) -> the member in it.
    If members share a name, the short forms of their ids replace it.
    """
    shared = {
        identity
        for one in generations
        for identity, times in Counter(map(_name, one.members)).items()
        if times > 1
    }
    ids = _names(generations)
    rows: dict[str, dict[int, RecordedMember]] = {}
    for x, one in enumerate(generations):
        for member in one.members:
            name = _name(member)
            rows.setdefault(ids[member.member_id] if name in shared else name, {})[x] = member
    return dict(sorted(rows.items(), key=lambda item: (min(item[1]), item[0])))


def _names(generations: Iterable[RecordedGeneration]) -> dict[str, str]:
    clients = {m.member_id: m.client_id for one in generations for m in one.members}
    return member_names(dict(sorted(clients.items())))


def _name(member: RecordedMember) -> str:
    return member.group_instance_id or member.client_id


def _x(column: int) -> int:
    return _LEFT + column * _COLUMN


def _column(x: int, row: RecordedRebalance, bottom: int) -> str:
    colour, letter = LOOKS.get(row.cause, OTHER)
    text = row_text(row, names_in([row]))
    told = f"generation {row.generation_id}, {clock(row.time_ms)}: {text}"
    moves = f"; {counted(row.moved + row.gained, 'move')}"
    text = (
        f'<g><title>{escaped(told + moves)}</title><rect x="{_x(x)}" y="4" width="{_COLUMN - 1}" '
        f'height="17" fill="{colour}"/><text class="letter" x="{_x(x) + (_COLUMN - 1) / 2}" y="16" '
        f'text-anchor="middle">{letter}</text></g>'
    )
    if x % _LABEL_EVERY == 0:
        text += (
            f'<path class="tick" d="M{_x(x)} {bottom + 2}v5"/>'
            f'<text x="{_x(x)}" y="{bottom + 19}">{clock(row.time_ms)[5:]}</text>'
            f'<text class="faint" x="{_x(x)}" y="{bottom + 31}">{row.generation_id}</text>'
        )
    return text


def _cells(
    generations: Sequence[RecordedGeneration], present: dict[int, RecordedMember], top: int
) -> list[str]:
    parts = []
    last: str | None = None
    for x, one in enumerate(generations):
        member = present.get(x)
        if member is None:
            continue
        number = len(member.assigned)
        told = f"{member.member_id}, generation {one.generation_id}: {counted(number, 'partition')}"
        parts.append(
            f'<g><title>{escaped(told)}</title><rect class="{"held" if number else "idle"}" '
            f'x="{_x(x)}" y="{top + 2}" width="{_COLUMN}" height="{_ROW - 4}"/>'
            f'<text class="number" x="{_x(x) + _COLUMN / 2}" y="{top + 12}" text-anchor="middle">'
            f"{number if number < 1000 else ''}</text></g>"
        )
        if member.member_id != last:
            parts.append(f'<path class="new" d="M{_x(x) + 1} {top}v{_ROW}"/>')
        last = member.member_id
    return parts
