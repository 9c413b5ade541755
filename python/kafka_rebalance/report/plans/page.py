# SPDX-License-Identifier: Apache-2.0
"""Writes a plan as one HTML page that loads nothing else: no font, no image; its script is inline.

The script lets a reader choose a member or a topic: the grid and the rounds then show only its
part. Without the script, the page shows everything.
"""

import json
from enum import Enum
from importlib.resources import files
from itertools import groupby

from kafka_rebalance.errors import shown
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.html_tables import escaped
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.plans.figures import count_rows, figure_rows
from kafka_rebalance.plans.possible.curve import COLUMNS, Curve
from kafka_rebalance.plans.rebalance_plan import RebalancePlan
from kafka_rebalance.plans.rounds import Round

from ..text.pages import bar_chart, page, scrolled, table
from ..text.sentences import counted, shortened
from . import plan as text
from .figures import CURVE_NOTE


class Cell(Enum):
    """What happens to one partition at one member during the plan."""

    KEPT = "kept"
    REVOKED = "revoked"
    GAINED = "gained"


class Grid(Frozen):
    """Cells by row and partition. Each member before or after the plan has a row, new ones last.

    A member that returns from a restart keeps its row. `names` holds the short name of each row's
    member, `counts` its numbers of partitions before and after (None: it is absent), and `known_as`
    all names that it has during the plan.
    """

    title: str
    names: list[str]
    partitions: list[TopicPartition]
    cells: dict[tuple[int, TopicPartition], Cell]
    counts: list[tuple[int | None, int | None]]
    known_as: list[list[str]]


def grid_of(plan: RebalancePlan) -> Grid:
    names = text.names_in_plan(plan)
    origins = plan.steps[-1].origins
    rows = {member.member_id: row for row, member in enumerate(plan.group.members)}
    row_of = dict(rows)
    for member in plan.final.members:
        origin = origins.get(member.member_id, member.member_id)
        row_of[member.member_id] = rows.setdefault(origin, len(rows))
    known_as = [[names[member_id]] for member_id in rows]
    for member_id, origin in origins.items():
        if origin != member_id:
            known_as[rows[origin]].append(names[member_id])
    before = _by_row(plan.before, row_of)
    after = _by_row(plan.after, row_of)
    partitions = sorted({tp for _, tp in before | after})
    cells = {
        place: Cell.KEPT
        if place in before and place in after
        else (Cell.REVOKED if place in before else Cell.GAINED)
        for place in before | after
    }
    old, new = ({row_of[m]: len(held[m]) for m in held} for held in (plan.before, plan.after))
    return Grid(
        plan.title,
        [names[member_id] for member_id in rows],
        partitions,
        cells,
        [(old.get(row), new.get(row)) for row in range(len(rows))],
        known_as,
    )


def _by_row(held: Assignment, row_of: dict[str, int]) -> set[tuple[int, TopicPartition]]:
    return {(row_of[member_id], tp) for member_id, owned in held.items() for tp in owned}


_MOST_CELLS = 40_000
_SIGNS = {Cell.KEPT: "", Cell.REVOKED: "−", Cell.GAINED: "+"}


def plan_page(plan: RebalancePlan) -> str:
    """Returns the page: figures, a grid of members and partitions if not too large, all rounds."""
    grid = grid_of(plan)
    names = text.names_in_plan(plan)
    answer = escaped(shortened(plan.summary, names))
    marks = (f'<span class="{one.value}">{sign}</span>{one.value}' for one, sign in _SIGNS.items())
    key = f'<p class="key">{"".join(marks)}</p>'
    parts = [f"<p>{answer}</p>", _figures(plan), _choice(grid), key]
    if len(grid.names) * len(grid.partitions) <= _MOST_CELLS:
        parts.append(_cells(grid))
    else:
        parts.append('<p class="note">Too large for a grid; the rounds list all changes.</p>')
    for step in plan.steps:
        cause = escaped(shortened(step.cause, names))
        parts += [f"<h2>{cause}{escaped(note)}</h2>" for note in text.step_notes(step)]
        for number, one in enumerate(step.rounds, 1):
            parts.append(_round(text.round_title(plan, cause, number, one), one, names))
    if plan.made_up:
        parts.append(
            '<p class="note">* made-up id: the broker will choose another, and ids break ties.</p>'
        )
    script = files("kafka_rebalance.report.plans").joinpath("follow.js").read_text("utf-8")
    return page(grid.title, [*parts, f"<script>\n{script}</script>"])


def _figures(plan: RebalancePlan) -> str:
    figures = plan.figures()
    rows = [*figure_rows(plan, figures), *count_rows(figures)]
    shown = table(("", "before", "after", "possible"), rows, "figures")
    reasons = "".join(f"<li>{escaped(reason)}</li>" for reason in plan.possible.reasons()[:10])
    why = f"<p>The best possible balance, and why none is better:</p><ul>{reasons}</ul>"
    return f"{shown}\n{why}"


def _choice(grid: Grid) -> str:
    """Returns the form in which a reader chooses a member or a topic; the script unhides it."""
    topics = dict.fromkeys(tp.topic for tp in grid.partitions)
    members = zip(grid.names, grid.known_as, strict=True)
    options = {
        "member": [(name, json.dumps([*map(shown, known_as)])) for name, known_as in members],
        "topic": [(topic, topic) for topic in topics],
    }
    chosen = "".join(
        f'<label>Follow a {what}: <select id="{what}"><option value="">all</option>'
        + "".join(f'<option value="{escaped(v)}">{escaped(name)}</option>' for name, v in each)
        + "</select></label> "
        for what, each in options.items()
    )
    return f'<form class="choice" hidden>{chosen}<output aria-live="polite"></output></form>'


def _cells(grid: Grid) -> str:
    topics = [(t, len(list(run))) for t, run in groupby(grid.partitions, key=lambda tp: tp.topic)]
    firsts = {tp for tp in grid.partitions if tp.partition == 0} | set(grid.partitions[:1])
    heads = "".join(
        f'<th class="topic" scope="colgroup" colspan="{n}" data-columns="{n}">{escaped(topic)}</th>'
        for topic, n in topics
    )
    numbers = "".join(f'<th scope="col">{tp.partition}</th>' for tp in grid.partitions)
    sides = '<th scope="col">before</th><th scope="col">after</th>'
    lines = [
        f'<tr><th class="member" scope="col">member</th>{sides}{heads}</tr>',
        f'<tr><td class="count" colspan="3"></td>{numbers}</tr>',
    ]
    for row, name in enumerate(grid.names):
        counts = "".join(
            f'<td class="count">{"-" if n is None else n}</td>' for n in grid.counts[row]
        )
        cells = []
        for tp in grid.partitions:
            cell = grid.cells.get((row, tp))
            style, sign = ("", "") if cell is None else (cell.value, _SIGNS[cell])
            first = " first" if tp in firsts else ""
            what = "" if cell is None else f' title="{escaped(f"{tp} {cell.value}: {name}")}"'
            cells.append(f'<td class="{style}{first}"{what}>{sign}</td>')
        head = f'<th class="member" scope="row">{escaped(name)}</th>'
        lines.append(f"<tr>{head}{counts}{''.join(cells)}</tr>")
    return scrolled(f'<table class="grid">{"".join(lines)}</table>')


def _round(title: str, one: Round, names: dict[str, str]) -> str:
    rows = text.round_rows(one, names)
    unread = f"{counted(len(one.unavailable), 'partition')} without a reader in this round"
    notes = "; ".join([unread, *text.quiet_notes(one)])
    columns = text.ROUND_COLUMNS[: 5 if any(row[4] for row in rows) else 4]
    shown = table(columns, [row[: len(columns)] for row in rows]) if rows else ""
    return f"<section><h2>{title}</h2>\n<p>{notes}.</p>\n{shown}</section>"


def curve_page(curve: Curve, title: str) -> str:
    """Returns an HTML page: the summary, a chart of the fullest member, and the table."""
    rows = curve.rows()
    fullest = {"fullest": [int(row[1]) for row in rows]}
    picture = bar_chart("Partitions of the fullest member", [row[0] for row in rows], fullest)
    parts = [f"<p>{escaped(curve.summary)}</p>", picture, table(COLUMNS, rows)]
    return page(title, [*parts, f'<p class="note">{escaped(CURVE_NOTE)}</p>'])
