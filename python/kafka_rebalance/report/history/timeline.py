# SPDX-License-Identifier: Apache-2.0
"""One group's history as SVG: a row for each member, a column for each record, coloured by cause.

Columns are in order of time; below every eighth column are its time and its generation. A member
that comes back under a new id stays in its row if its name is unique in the group.
"""

from collections import Counter
from collections.abc import Sequence

from kafka_rebalance.group.html_tables import escaped
from kafka_rebalance.history.all_groups import Recorded
from kafka_rebalance.history.group_log import RecordedGeneration, RecordedMember
from kafka_rebalance.history.recorded import RecordedRebalance
from kafka_rebalance.report.text.names import counted, cut, short_names

from .table import clock, row_text

LOOKS = {
    "began": ("#4c78a8", "0"),
    "came": ("#3d8b40", "C"),
    "back": ("#a87400", "B"),
    "left": ("#8a6245", "L"),
    "timed out": ("#b3404a", "T"),
    "gone": ("#6f6f6f", "?"),
    "assignor switch": ("#9a5b91", "W"),
    "resubscription": ("#2a8a85", "R"),
    "partitions added": ("#5a5fb0", "P"),
    "second round": ("#47799d", "2"),
    "static restart": ("#a0662a", "S"),
    "after-effect": ("#5f7d64", "a"),
    "asked for": ("#c2571a", "A"),
    "coordinator": ("#222222", "!"),
}
"""The colour and the letter of each cause; records with another cause are grey."""

OTHER = ("#7d7d7d", "·")
MOST_COLUMNS, MOST_MEMBERS = 120, 40
_COLUMN, _ROW, _LEFT, _TOP = 18, 16, 130, 26
_LABEL_EVERY = 8


def timeline(recorded: Recorded) -> str:
    """Returns the picture of one group's last records, with a note on the records that it leaves
    out.
    """
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
    """Returns the colours and letters of the causes that occur."""
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
        "see its causes.</p>"
    )


def _rows(generations: Sequence[RecordedGeneration]) -> dict[str, dict[int, RecordedMember]]:
    """Returns name -> column -> member; a name that is not unique is replaced by member ids."""
    shared = {
        identity
        for one in generations
        for identity, times in Counter(map(_name, one.members)).items()
        if times > 1
    }
    ids = short_names({m.member_id for one in generations for m in one.members})
    rows: dict[str, dict[int, RecordedMember]] = {}
    for x, one in enumerate(generations):
        for member in one.members:
            name = _name(member)
            rows.setdefault(ids[member.member_id] if name in shared else name, {})[x] = member
    return dict(sorted(rows.items(), key=lambda item: (min(item[1]), item[0])))


def _name(member: RecordedMember) -> str:
    return member.group_instance_id or member.client_id


def _x(column: int) -> int:
    return _LEFT + column * _COLUMN


def _column(x: int, row: RecordedRebalance, bottom: int) -> str:
    colour, letter = LOOKS.get(row.cause, OTHER)
    told = f"generation {row.generation_id}, {clock(row.time_ms)}: {row_text(row, {})}"
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
