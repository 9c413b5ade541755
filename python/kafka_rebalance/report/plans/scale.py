# SPDX-License-Identifier: Apache-2.0
"""Prints and draws what each number of members of a group brings."""

import math
from collections.abc import Sequence

from kafka_rebalance.group.html_tables import escaped
from kafka_rebalance.report.text.names import cut
from kafka_rebalance.report.text.pages import bar_chart, page, table
from kafka_rebalance.report.text.sentences import print_wrapped
from kafka_rebalance.report.text.tables import print_filled_table
from kafka_rebalance.scaling import Count, Scaled

from .figures import median_text, seconds_notes

_LONGEST_ID = 40
_FIGURES = (
    *("fullest", "possible", "busiest", "lag", "catch up s"),
    *("moves", "no reader", "idle", "settles", "unread"),
)
_WHY = {
    "ids": "the ids of new members",
    "leaving": "which members leave (figures: those that joined last)",
    "leader": "which member leads",
}


def print_scaled(found: Sequence[Scaled]) -> None:
    """Prints one group's answer in words, a row for each count, and what the figures assume; of
    several groups, the rows of the present count and of the next that helps.
    """
    alone = len(found) == 1
    if alone:
        print_wrapped(f"{found[0].group_id}: {found[0].because}.")
    rows = [
        ["" if alone else cut(one.group_id, _LONGEST_ID), *_row(one, count)]
        for one in found
        for count in (one.counts if alone else _steps(one))
    ]
    print_filled_table(("group", "members", *_FIGURES), rows, right=_FIGURES)
    for note in _notes(found[0]) if alone else ["--group G shows one group in detail."]:
        print_wrapped(note)


def scale_page(scaled: Scaled) -> str:
    """Returns an HTML page: the answer, pictures of the fullest member and the moves, the table."""
    answered = [one for one in scaled.counts if one.error is None]
    names = [_row(scaled, one)[0] for one in answered]
    drawn = ""
    for title, bars in (
        ("Partitions of the fullest member", ("fullest", "possible")),
        ("What the step costs", ("moves", "stops")),
    ):
        series = {bar: [getattr(one, bar) for one in answered] for bar in bars}
        picture = bar_chart(title, names, series)
        drawn += f"<figure><figcaption>{title}</figcaption>\n{picture}</figure>"
    parts = [
        f"<p>{escaped(scaled.because)}.</p>",
        f'<div class="pictures">{drawn}</div>',
        table(("members", *_FIGURES), [_row(scaled, one) for one in scaled.counts]),
        *(f'<p class="note">{escaped(note)}</p>' for note in _notes(scaled)),
    ]
    return page(f"{scaled.group_id}, {scaled.assignor}: how many members", parts)


def _steps(scaled: Scaled) -> list[Count]:
    """Returns the least count that does as well as the present one, that one, and the next step."""
    worth = [one for one in scaled.counts if one.useful]
    as_well = [one for one in worth if one.members < scaled.members and not scaled.now.useful]
    return [*as_well[-1:], scaled.now, *[one for one in worth if one.members > scaled.members][:1]]


def _row(scaled: Scaled, one: Count) -> list[str]:
    """Returns the number of members with its mark, and the figures; none beside an error."""
    mark = "now" if one.members == scaled.members else "" if one.useful else "nothing"
    if one.error is not None:
        return [f"{one.members} error", *[""] * len(_FIGURES)]
    return [
        f"{one.members} {mark}".rstrip(),
        _ranged(one, "fullest"),
        f"{one.possible}",
        "" if one.busiest == one.fullest else _number(one.busiest),
        _number(one.lag),
        _number(one.catch_up_s),
        _ranged(one, "moves"),
        _ranged(one, "stops"),
        _ranged(one, "idle") if one.idle else "",
        *(
            "" if one.times is None else median_text(getattr(one.times, name))
            for name in ("settled", "unread")
        ),
    ]


def _number(value: float | None) -> str:
    return "" if value is None else "never" if value == math.inf else f"{value:,.6g}"


def _ranged(one: Count, name: str) -> str:
    least, most = one.ranges.get(name, (0, 0))
    return f"{getattr(one, name)}{f' ({least}-{most})' * (least < most)}"


def _notes(scaled: Scaled) -> list[str]:
    """Returns sentences about the ranges, about steps that never settle, and about the seconds."""
    depends = {why for one in scaled.counts for why in one.depends_on}
    on = "; on ".join(text for why, text in _WHY.items() if why in depends)
    found = [f"Ranges in brackets depend on {on}."] if on else []
    if "timing" in depends:
        found.append("Some steps can take one rebalance more, if a member is slow to join again.")
    found += [f"{one.members}: {one.error}." for one in scaled.counts if one.error]
    unsettled = [str(one.members) for one in scaled.counts if one.settled is False]
    if unsettled:
        found.append(f"The group never settles with {', '.join(unsettled)}.")
    for is_timed, why in ((True, scaled.times_assumed), (False, scaled.times_missing)):
        found += seconds_notes(why or "", is_timed=is_timed)
    return found
