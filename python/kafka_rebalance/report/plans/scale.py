# SPDX-License-Identifier: Apache-2.0
"""Prints and draws the figures of a group for each number of members."""

import math
from collections.abc import Sequence

from kafka_rebalance.group.html_tables import escaped
from kafka_rebalance.group.spec import first_of
from kafka_rebalance.scaling.counts import Count, Scaled

from ..text.pages import bar_chart, page, table
from ..text.sentences import GLOSSARY, counted, print_wrapped
from ..text.tables import print_filled_table
from .figures import median_text

_FIGURES = (
    *("fullest", "best possible", "moves", "no reader", "idle", "nobody left"),
    *("busiest", "lag", "catch up s", "stable s", "partition-s"),
)
_PICTURES = {
    "Partitions of the fullest member": {"fullest": "fullest", "best possible": "possible"},
    "Cost of the step": {"moves": "moves", "no reader": "stops"},
}
_NAMED = 3
_RANGES = (
    "Ranges in brackets: with other ids of new members, with other members that leave (figures: "
    "those that joined last), or with another leader."
)


def print_scaled(found: Sequence[Scaled]) -> None:
    """Prints one group's summary, rows and notes; for several groups, the rows of `_steps`."""
    alone = len(found) == 1
    print_wrapped(f"{found[0].group_id}: {found[0].summary}." if alone else _answer(found))
    rows = [
        ["" if alone else one.group_id, *_row(one, count)]
        for one in found
        for count in (one.counts if alone else _steps(one))
    ]
    print_filled_table(("group", "members", *_FIGURES), rows, right=_FIGURES, whole=alone)
    for note in _notes(found[0]) if alone else [f"--group G shows one group in detail. {GLOSSARY}"]:
        print_wrapped(note)


def _answer(found: Sequence[Scaled]) -> str:
    """Returns a sentence: how many groups need fewer members, gain from more, or gain from another
    assignor.
    """
    spare = {one.group_id: one for one in found if not one.now.useful}
    more = {one.group_id for one in found if one.now.members < max(one.worth, default=0)}
    worse = [one.group_id for one in found if one.now.possible < one.now.fullest]
    least = {name: _steps(one)[0].members for name, one in spare.items()}
    fewer = [
        f"{name} ({least[name]}, not {one.members})" if least[name] < one.members else name
        for name, one in spare.items()
    ]
    text = f"Fewer members do as well in {len(spare)} of {counted(len(found), 'group')}"
    text += f": {first_of(fewer, _NAMED)}" if fewer else ""
    text += f"; in {len(more)}, more members would lower the fullest member's load"
    text += " (some are in both)" if spare.keys() & more else ""
    if worse:
        which = first_of(worse, _NAMED)
        text += f"; in {len(worse)}, another assignor could: {which} (see compare)"
    return f"{text}."


def scale_page(scaled: Scaled) -> str:
    """Returns an HTML page: the summary, charts of the fullest member and of moves, the table."""
    rows, pictures = [_row(scaled, one) for one in scaled.counts], []
    for title, bars in _PICTURES.items():
        series = {label: [getattr(one, n) for one in scaled.counts] for label, n in bars.items()}
        drawn = bar_chart(title, [row[0] for row in rows], series)
        pictures.append(f"<figure><figcaption>{title}</figcaption>\n{drawn}</figure>")
    notes = (f'<p class="note">{escaped(note)}</p>' for note in _notes(scaled))
    columns = zip(("members", *_FIGURES), *rows, strict=True)
    heads, *cells = zip(*(each for each in columns if any(each[1:])), strict=True)
    shown = f'<div class="pictures">{"".join(pictures)}</div>'
    parts = [f"<p>{escaped(scaled.summary)}.</p>", shown, table(heads, cells)]
    return page(f"{scaled.group_id}, {scaled.assignor}: how many members", [*parts, *notes])


def _steps(scaled: Scaled) -> list[Count]:
    """Returns up to three counts: the smallest that is as good as the present one, the present one,
    the next useful one.
    """
    worth = [one for one in scaled.counts if one.useful]
    as_well = [one for one in worth if one.members < scaled.members and not scaled.now.useful]
    return [*as_well[-1:], scaled.now, *[one for one in worth if one.members > scaled.members][:1]]


def _row(scaled: Scaled, one: Count) -> list[str]:
    """Returns a row of strings: the number of members with its mark, then the figures."""
    mark = " now" if one.members == scaled.members else "" if one.useful else " nothing"
    times = () if one.times is None else (one.times.settled, one.times.unread)
    return [
        f"{one.members}{mark}{'' if one.settled else ', never settles'}",
        *(_ranged(one, name) for name in ("fullest", "possible", "moves", "stops", "idle")),
        _ranged(one, "unsubscribed") if one.may_lose else "",
        *map(_number, (None if one.busiest == one.fullest else one.busiest, one.lag)),
        _number(one.catch_up_s),
        *([median_text(each) for each in times] or ["", ""]),
    ]


def _number(value: float | None) -> str:
    return "" if value is None else "never" if value == math.inf else f"{value:,.6g}"


def _ranged(one: Count, name: str) -> str:
    least, most = one.ranges.get(name, (0, 0))
    return f"{getattr(one, name)}{f' ({least}-{most})' * (least < most)}"


def _notes(scaled: Scaled) -> list[str]:
    found = [_RANGES] if any(one.ranges for one in scaled.counts) else []
    if any(one.may_lose for one in scaled.counts):
        found.append("Nobody left: partitions of topics to which no remaining member subscribes.")
    found += [f"{members}: {error}." for members, error in scaled.errors.items()]
    if scaled.times_assumed:
        what = "No figures in seconds"
        if any(one.times for one in scaled.counts):
            what = "stable s (until no rebalance is left) and partition-s (without a reader) are "
            what += "simulated"
        found.append(f"{what}: {scaled.times_assumed}. {GLOSSARY}")
    return found
