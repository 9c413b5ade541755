# SPDX-License-Identifier: Apache-2.0
"""Results shown in notebooks and at Python's prompt are small tables and short strings."""

from __future__ import annotations

import re
from functools import cache
from html.parser import HTMLParser

import pytest

import kafka_rebalance as kr
from kafka_rebalance.group.html_tables import MOST_CHARACTERS, MOST_ROWS

EVIL = "<b>&\"'"


@cache
def _values(group: kr.GroupSpec) -> dict[str, object]:
    assigned = kr.assign(group)
    planned = kr.plan(group.owning(assigned), None, ["add-members=1"])
    return {
        "GroupSpec": group,
        "Assignment": assigned,
        "Delta": kr.assign(group, "roundrobin") - assigned,
        "RebalancePlan": planned,
        "Description": kr.describe(group.owning(assigned)),
        "Comparison": kr.compare(group, assignors=["range", "sticky"]),
        "Round": planned.rounds[0],
        "Step": planned.steps[0],
        "Samples": planned.sample(2),
        "Possible": planned.possible,
    }


def _group(members: int, partitions: int, name: str) -> kr.GroupSpec:
    topics = (kr.Topic(f"{name}-t", partitions), kr.Topic("u", 1))
    named = (kr.Member(f"{name}-{n:04d}", (f"{name}-t", "u")) for n in range(members))
    return kr.GroupSpec(f"{name}-g", topics, tuple(named), "range")


SMALL, LARGE = _group(3, 5, "a"), _group(1_000, 40_000, "n" * 200)
WITH_TABLES = ("GroupSpec", "Assignment", "Delta", "RebalancePlan", "Comparison", "Round")


class _Cells(HTMLParser):
    """Collects the strings of a table's rows; fails on a tag that our tables do not use."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.notes: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, _: list[tuple[str, str | None]]) -> None:
        assert tag in {"p", "table", "tr", "th", "td"}
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in {"th", "td"}:
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open == ["p"]:
            self.notes.append(data)
        else:
            self.rows[-1][-1] += data


def _table(value: object) -> _Cells:
    page = value._repr_html_()  # type: ignore[attr-defined]
    assert isinstance(page, str)
    return _Cells(page)


@pytest.mark.parametrize("name", ["Samples", "Possible", "Step", "Description", "RebalancePlan"])
def test_results_are_hashable(name: str) -> None:
    one, other = _values(SMALL)[name], _values.__wrapped__(SMALL)[name]
    assert one == other
    assert hash(one) == hash(other)


def test_a_description_shows_members_and_findings() -> None:
    owned = (kr.TopicPartition("t", 0), kr.TopicPartition("t", 1))
    members = (kr.Member("<a>", ("t",), owned_partitions=owned), kr.Member("b", ("t",)))
    group = kr.GroupSpec("g", (kr.Topic("t", 3),), members, "range")
    found = _table(kr.describe(group, lags=dict.fromkeys(owned, 5)))
    assert found.notes[1] == "GroupSpec g: 3 partitions, 1 topic, 2 members, range"
    assert found.rows[:3] == [["member", "partitions", "lag"], ["<a>", "2", "10"], ["b", "0", "0"]]
    assert found.rows[3] == ["finding", "what is wrong", "members", "partitions"]
    assert [row[0] for row in found.rows[4:]] == ["unread", "idle", "uneven", "moves"]
    assert _table(kr.describe(group)).rows[1] == ["<a>", "2", "not read"]


@pytest.mark.parametrize("name", WITH_TABLES)
def test_a_notebook_shows_a_small_table(name: str) -> None:
    for group in (SMALL, LARGE):
        found = _table(_values(group)[name])
        assert 2 <= len(found.rows) <= MOST_ROWS + 1
        assert len({len(row) for row in found.rows}) == 1
        assert all(len(cell) <= MOST_CHARACTERS for row in found.rows for cell in row)
        is_answer = hasattr(_values(group)[name], "summary")  # the first note, which is not cut
        assert all(len(note) <= MOST_CHARACTERS for note in found.notes[is_answer:])


def test_rows_that_are_left_out_are_counted() -> None:
    for name in ("GroupSpec", "Assignment"):
        assert _table(_values(LARGE)[name]).notes[1] == "… and 980 more"
        assert len(_table(_values(SMALL)[name]).notes) == 1


def test_the_tables_show_what_the_values_hold() -> None:
    values = _values(SMALL)
    assert _table(values["GroupSpec"]).rows[1] == ["a-0000", "a-t, u", "0"]
    assert _table(values["Assignment"]).rows[1] == ["a-0000", "3", "u[0] a-t[0, 1]"]
    assert _table(values["Delta"]).rows[1] == ["a-0000", "1", "u[0] a-t[1]", "a-t[3]"]
    assert _table(values["RebalancePlan"]).rows[1] == ["members", "3", "4", ""]
    assert [row[0] for row in _table(values["Comparison"]).rows] == [
        "assignor",
        "range",
        "sticky <",
    ]


@pytest.mark.parametrize("name", WITH_TABLES)
def test_names_are_escaped(name: str) -> None:
    """The parser refuses a `<b>` that comes from a name."""
    found = _table(_values(_group(3, 5, EVIL))[name])
    assert any(EVIL in text for text in [*found.notes, *(row[0] for row in found.rows)])


def test_a_candidate_without_figures_has_its_error_in_the_table() -> None:
    group = kr.GroupSpec("g", (kr.Topic("t", 1),), (kr.Member("m", ("t",)),), "range")
    compared = kr.compare(group, assignors=["range", "consumer/range"])
    assert "topic_id: missing" in _table(compared).rows[2][1]


@pytest.mark.parametrize("name", _values(SMALL))
def test_a_repr_fits_a_screen(name: str) -> None:
    for group in (SMALL, LARGE):
        text = repr(_values(group)[name])
        assert re.match(rf"<?{name}\b", text)
        assert "\n" not in text
        assert len(text) <= 500


def test_print_shows_the_table_of_a_plan() -> None:
    planned = kr.plan(SMALL.owning(kr.assign(SMALL)), None, ["add-members=1"])
    summary, blank, title, heads, *rows = str(planned).splitlines()
    assert (summary, blank, title) == (planned.summary, "", planned.title)
    assert heads.split() == ["before", "after", "best", "possible"]
    assert rows[0].split() == ["members", "3", "4"]
    assert {len(row) for row in (heads, rows[1], rows[2])} == {len(heads)}


def test_a_simulated_run_has_its_answer_and_a_row_for_each_rebalance() -> None:
    group = SMALL.owning(kr.assign(SMALL))
    run = kr.simulate(kr.scenario(group, ["add-members=1"]))
    titled = "a-g: adding 1 member (assumed: starting a partition 0 ms, stopping one 0 ms)"
    assert str(run) == f"{titled}: {run.summary}"
    assert run.summary.startswith("1 rebalance after the start-up; ")
    found = _table(run)
    assert found.notes == [run.summary, titled]
    assert [row[-1] for row in found.rows[2:]] == [str(one.causes) for one in run.rebalances[1:]]
