# SPDX-License-Identifier: Apache-2.0
"""The report on a fleet as one HTML page that loads nothing else: no script, no font.

`Totals` is a row of SUMMARY_SCHEMA (`spark/schema.py`); its change is "" for the next rebalance.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.html_tables import escaped
from kafka_rebalance.plans.changes.members import RemoveMembers
from kafka_rebalance.plans.changes.text import change_from_text

from .text.pages import bar_chart, page, scrolled
from .text.sentences import counted, cut, in_words

Totals = Any


class Bin(Frozen):
    """The number of groups whose figure is from `low` to `high`, both included."""

    low: int
    high: int
    groups: int

    @property
    def name(self) -> str:
        return f"{self.low:,}" if self.low == self.high else f"{self.low:,}-{self.high:,}"


class WorstGroup(Frozen):
    """One of the worst groups: its figures after `change`, and a command that prints its plan."""

    cluster: str | None
    group_id: str
    change: str
    spread: int
    possible: int
    without_reader: int
    moves: int
    command: str


class FleetReport(Frozen):
    """The data of the page. `spreads` and `possible` are histograms: the groups' spreads now, and
    the best possible ones.

    `without_rack` counts the groups with members whose racks are unknown (0 if no change loses a
    rack). `named` holds, for "uneven" and each figure of `worst_changes`, the groups that the
    summary names, each with its figure.
    """

    title: str
    notes: Sequence[str]
    spreads: Sequence[Bin]
    possible: Sequence[Bin]
    changes: Sequence[Totals]
    racks: Mapping[str, Totals]
    clusters: Sequence[Totals]
    worst: Sequence[WorstGroup]
    named: Mapping[str, Sequence[tuple[str, int]]]
    without_rack: int = 0

    @property
    def summary(self) -> str:
        """Returns sentences: the groups to look at first, and the groups that the worst changes
        harm.

        Names of groups and racks are written as they are: escape them before printing.
        """
        now = (self.changes or [Counter()])[0]
        uneven, errors, every = now["uneven"], now["errors"], f"{_number(now, 'affected'):,}"
        said = [f"None of {every} groups ends less even than possible"]
        if uneven:
            ends = "group ends" if uneven == 1 else "groups end"
            said = [f"Begin with {self._named('uneven')}: {uneven:,} of {every} {ends} less even "]
            said[0] += "than possible (`compare` shows what helps)"
        if errors:
            said.append(
                f"{counted(errors, 'group')} {'has an error' if errors == 1 else 'have errors'}"
            )
        for figure, worst in worst_changes(self.changes).items():
            change = change_from_text(worst["change"])
            what = change.in_words()
            who = f"{what[0].upper()}{what[1:]} leaves"
            if figure == "without_members":
                said.append(f"{who} no member in {self._named(figure, worst[figure])}")
                continue
            until = "for a rebalance or more"
            if figure == "waiting":
                lost = isinstance(change, RemoveMembers)
                until = "until sessions end" if lost else "while their members are down"
            left = f"{counted(worst[figure], 'partition')} without a reader {until}"
            said.append(f"{who} {left}: {self._named(figure, worst[f'with_{figure}'])}")
        said += [rackless(self.without_rack).removeprefix("; ")] if self.without_rack else []
        return ". ".join(said) + "."

    def _named(self, figure: str, groups: int = 0) -> str:
        """Returns the names of the worst groups by this figure, then `N more` of all `groups`.
        Each name has its count if the figure counts partitions.
        """
        found = self.named.get(figure, ())
        count = figure in ("waiting", "unavailable")
        return first_of([f"{name} ({n:,})" if count else name for name, n in found], groups)


def first_of(names: Sequence[str], groups: int) -> str:
    """Returns these names as text, and `N more` if there are more `groups` than names."""
    more = groups - len(names)
    return in_words([*names, f"{more:,} more"] if more > 0 else names)


def group_name(row: Mapping[str, Any]) -> str:
    """Returns a group's id, after the name of its cluster if that is known."""
    group = "a line without an id" if row["group_id"] is None else cut(row["group_id"], 60)
    return f"{cut(row['cluster'], 60)}/{group}" if row.get("cluster") is not None else group


def worst_changes(changes: Sequence[Totals]) -> dict[str, Totals]:
    """Returns harm (a figure) -> the change with the most of it; a harm that no change does is left
    out.
    """
    figures, played = ("without_members", "waiting", "unavailable"), changes[1:]
    worst = {name: max(played, key=lambda one: one[name], default=None) for name in figures}
    return {name: one for name, one in worst.items() if one is not None and one[name]}


def rackless(groups: int) -> str:
    """Returns a clause on the groups with members whose racks are unknown; "" for none."""
    text = f"; {counted(groups, 'group')} {'has' if groups == 1 else 'have'} members without "
    return f"{text}client.rack, played as if outside the lost rack" if groups else ""


_MOST_BARS = 12


def fleet_page(report: FleetReport) -> str:
    parts = [f"<p>{escaped(report.summary)}</p>"]
    parts += [f'<p class="note">{escaped(note)}</p>' for note in report.notes]
    parts.append('<div class="pictures">')
    parts += [_imbalance(report), _moves(report.changes)]
    if report.racks:
        parts.append(_racks(report))
    parts.append("</div>")
    parts.append("<h2>Each change alone</h2>" + _changes(report.changes))
    if report.clusters:
        parts.append("<h2>Clusters</h2>" + _clusters(report))
    parts.append(_worst(report))
    return page(report.title, parts)


def _imbalance(report: FleetReport) -> str:
    now, best = ({one.low: one for one in bins} for bins in (report.spreads, report.possible))
    both = {**best, **now}
    series = {
        name: [bins[low].groups if low in bins else 0 for low in sorted(both)]
        for name, bins in (("groups now", now), ("groups at best", best))
    }
    names = [both[low].name for low in sorted(both)]
    title = "How even the groups are: partitions between the fullest and the emptiest member"
    return _figure(title, bar_chart("Groups by spread, now and at best", names, series))


def _moves(changes: Sequence[Totals]) -> str:
    shown = changes[:_MOST_BARS]
    series = {
        "partitions moved, with the groups' assignors": [one["moves"] for one in shown],
        "needed for the best balance": [one["least_moves"] for one in shown],
    }
    names = [one["change"] or "next rebalance" for one in shown]
    return _figure("Moves by change", bar_chart("Moves by change", names, series))


def _racks(report: FleetReport) -> str:
    shown = dict(list(report.racks.items())[:_MOST_BARS])
    series = {
        "groups that lose members": [one["with_waiting"] for one in shown.values()],
        "groups with partitions without a reader in the rebalance": [
            one["with_unavailable"] for one in shown.values()
        ],
        "groups with partitions without a leader": [
            one["with_leaderless"] for one in shown.values()
        ],
    }
    chart = bar_chart("Groups hurt by the loss of each rack", list(shown), series)
    return _figure("Groups hurt by the loss of a rack", chart)


def _figure(title: str, svg: str) -> str:
    return f"<figure><figcaption>{escaped(title)}</figcaption>\n{svg}</figure>"


_COLUMNS = {
    "groups affected": "affected",
    "errors": "errors",
    "moves": "moves",
    "for the best balance": "least_moves",
    "moves of a group: half": "p50",
    "99%": "p99",
    "most": "max",
    "no member left": "without_members",
    "uneven after": "uneven",
    "never stable": "unsettled",
    "no reader": "with_unavailable",
    "lose members": "with_waiting",
    "no leader": "with_leaderless",
}
"""Heading of a column in the table of changes -> the name that `_number` takes for its figure."""


def _number(row: Totals, name: str) -> Any:
    """Returns the number called `name`: a percentile of moves, "affected" (the number of groups
    with figures), or a column of `row`.
    """
    if name in ("p50", "p99", "max"):
        return row["group_moves"][name] or 0
    if name == "affected":
        return row["groups"] - row["errors"] - row["not_affected"] - row["without_members"]
    return row[name]


def _changes(changes: Sequence[Totals]) -> str:
    rows = [
        [one["change"] or "next rebalance", *(f"{_number(one, n):,}" for n in _COLUMNS.values())]
        for one in changes
    ]
    note = (
        "The last six columns count groups: those without a member that reads, those that end less "
        "even than possible, those whose assignor moves partitions for ever, those with partitions "
        "that nobody reads for a rebalance, those with members in a lost rack, and those with "
        "partitions that lose all known replicas."
    )
    return _table(["change", *_COLUMNS], rows) + f'<p class="note">{note}</p>'


def _clusters(report: FleetReport) -> str:
    rows = [
        [one["cluster"] or "", *(f"{one[n]:,}" for n in ("groups", "errors", "uneven", "moves"))]
        for one in report.clusters
    ]
    heads = ["cluster", "groups", "errors", "uneven", "moves in the next rebalance"]
    return _table(heads, rows)


def _worst(report: FleetReport) -> str:
    if not report.worst:
        return ""
    has_cluster = any(one.cluster is not None for one in report.worst)
    heads = [
        *(["cluster"] if has_cluster else []),
        "group", "change", "spread", "best possible", "times without a reader", "moves",
        "explained by",
    ]  # fmt: skip
    rows = [
        [
            *([escaped(one.cluster or "")] if has_cluster else []),
            escaped(one.group_id),
            escaped(one.change or "next rebalance"),
            *(f"{n:,}" for n in (one.spread, one.possible, one.without_reader, one.moves)),
            f"<code>{escaped(one.command)}</code>",
        ]
        for one in report.worst
    ]
    note = (
        "The groups that end the furthest from the best possible, each with the change that does "
        "it; then those whose partitions are most often without a reader (once while their member "
        "or leader is away, and once in each rebalance), then with the most moves. Run a command "
        "in the directory in which this page was made."
    )
    return f'<h2>The worst groups</h2><p class="note">{note}</p>' + _marked(heads, rows)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return _marked(heads, [[escaped(cell) for cell in row] for row in rows])


def _marked(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a table that scrolls in its own box; columns of numbers are aligned on the right."""
    columns = ([row[i].replace(",", "") for row in rows] for i in range(len(heads)))
    texts = [not all(map(str.isdigit, cells)) for cells in columns]
    styles = [' class="text"' if is_text else "" for is_text in texts]

    def line(tag: str, cells: Sequence[str]) -> str:
        pairs = zip(cells, styles, strict=True)
        end = tag.partition(" ")[0]
        return "<tr>" + "".join(f"<{tag}{style}>{one}</{end}>" for one, style in pairs) + "</tr>"

    head = line('th scope="col"', [escaped(one) for one in heads])
    body = "".join(line("td", row) for row in rows)
    return scrolled(f'<table class="fleet">{head}{body}</table>')
