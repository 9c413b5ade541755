# SPDX-License-Identifier: Apache-2.0
"""Prints and draws what each number of members of a group brings."""

import math
from collections.abc import Sequence

from kafka_rebalance.group.html_tables import escaped
from kafka_rebalance.report.text.names import cut
from kafka_rebalance.report.text.pages import bar_chart, page, table
from kafka_rebalance.report.text.sentences import print_wrapped
from kafka_rebalance.report.text.tables import print_filled_table, print_table
from kafka_rebalance.scaling import Count, Scaled, choose
from kafka_rebalance.scaling.sentences import read_text

_LONGEST_ID = 40
_COLUMNS = (
    "fullest", "possible", "records/s", "lag", "catch up s", "moves", "stop", "idle", "settled s",
    "unread s",
)  # fmt: skip
_WHY = {
    "ids": "the ids of new members",
    "leaving": "which members leave (figures: those that joined last)",
    "leader": "which member leads",
}


def print_scaled(scaled: Scaled) -> None:
    """Prints the answer in words, a row for each count, and what the figures assume."""
    print_wrapped(f"{scaled.group_id}: {scaled.because}.")
    if scaled.load.is_known:
        print_wrapped(f"For an autoscaler: {choose(scaled).because}.")
    print_filled_table(_columns(scaled), _rows(scaled), right=_COLUMNS)
    for note in _notes(scaled):
        print_wrapped(note)


def print_many(scaled: Sequence[Scaled]) -> None:
    """Prints a line for each group: the present count, the least that does as well, the next."""
    heads = (
        "group", "assignor", "members", "fullest", "enough", "next step", "then", "moves", "stop",
    )  # fmt: skip
    rows = []
    for one in scaled:
        row = [cut(one.group_id, _LONGEST_ID), one.assignor, f"{one.members}", read_text(one.now)]
        enough = [members for members in one.worth if members <= one.members]
        steps = [each for each in one.counts if each.useful and each.members > one.members]
        row.append(f"{enough[-1]}" if enough else "")
        row += [f"{n}" for each in steps[:1] for n in (each.members, read_text(each))]
        row += [f"{n}" for each in steps[:1] for n in (each.moves, each.stops)]
        rows.append(row + [""] * (len(heads) - len(row)))
    print_table(heads, rows, whole=True, names=2)


def scale_page(scaled: Scaled) -> str:
    """Returns an HTML page: the answer, pictures of the fullest member and the moves, the table."""
    answered = [one for one in scaled.counts if one.error is None]
    names = [_named(one, scaled) for one in answered]
    pictures = {
        "What each number brings": {
            "partitions of the fullest member": [one.fullest or 0 for one in answered],
            "the least possible": [one.possible or 0 for one in answered],
        },
        "What the step to it costs": {
            "moves": [one.moves or 0 for one in answered],
            "partitions that stop": [one.stops or 0 for one in answered],
        },
    }
    drawn = "".join(
        f"<figure><figcaption>{title}</figcaption>\n{bar_chart(title, names, bars)}</figure>"
        for title, bars in pictures.items()
    )
    parts = [
        f"<p>{escaped(scaled.because)}.</p>",
        f'<div class="pictures">{drawn}</div>',
        table(_columns(scaled), _rows(scaled)),
        *(f'<p class="note">{escaped(note)}</p>' for note in _notes(scaled)),
    ]
    return page(f"{scaled.group_id}, {scaled.assignor}: how many members", parts)


def _columns(scaled: Scaled) -> list[str]:
    return ["members" if scaled.per_replica == 1 else "replicas", *_COLUMNS]


def _rows(scaled: Scaled) -> list[list[str]]:
    return [[_named(one, scaled), *_figures(one)] for one in scaled.counts]


def _named(one: Count, scaled: Scaled) -> str:
    """Returns the number of replicas; marks the present one, useless ones and those with errors."""
    if one.members == scaled.members:
        return f"{one.replicas} now"
    mark = "error" if one.error is not None else "" if one.useful else "nothing"
    return f"{one.replicas} {mark}".rstrip()


def _figures(one: Count) -> list[str]:
    if one.error is not None:
        return [""] * len(_COLUMNS)
    times = one.times
    return [
        _ranged(one, "fullest"),
        f"{one.possible}",
        _number(one.rate),
        _number(one.lag),
        _number(one.catch_up_s),
        _ranged(one, "moves"),
        _ranged(one, "stops"),
        _ranged(one, "idle") if one.idle else "",
        "" if times is None else ("never" if times.settled_s is None else f"{times.settled_s:.1f}"),
        "" if times is None else f"{times.unread_partition_s:,.1f}",
    ]


def _number(value: float | None) -> str:
    return "" if value is None else "never" if value == math.inf else f"{value:,.0f}"


def _ranged(one: Count, name: str) -> str:
    value = f"{getattr(one, name)}"
    least, most = one.ranges.get(name, (None, None))
    return value if least is None else f"{value} ({least}-{most})"


def _notes(scaled: Scaled) -> list[str]:
    """Returns sentences about the ranges, about steps that never settle, and about the seconds."""
    depends = dict.fromkeys(why for one in scaled.counts for why in one.depends_on)
    draws = max((one.draws for one in scaled.counts), default=0)
    found = []
    if draws:
        on = "; on ".join(text for why, text in _WHY.items() if why in depends)
        ranges = f"Ranges in brackets depend on {on}" if on else "No figure varies"
        found.append(f"{ranges}: each step was played up to {draws} times with others.")
    if "timing" in depends:
        found.append("Some steps can take one rebalance more, if a member is slow to join again.")
    found += [f"{one.replicas}: {one.error}." for one in scaled.counts if one.error]
    unsettled = [str(one.replicas) for one in scaled.counts if one.settled is False]
    if unsettled:
        found.append(f"The group never settles with {', '.join(unsettled)}.")
    missing = dict.fromkeys(one.times_missing for one in scaled.counts if one.times_missing)
    found += [f"No figures in seconds: {why}." for why in missing]
    if scaled.assumed is not None:
        found.append(
            "Seconds until it has settled, and partition-seconds without a reader, are simulated, "
            f"as `simulate --from` does it: {scaled.assumed}."
        )
    return found
