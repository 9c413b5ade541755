# SPDX-License-Identifier: Apache-2.0
"""Tables keep names whole at 80 columns, and sentences do not claim facts that were not
computed.
"""

from __future__ import annotations

import json
import re
from argparse import Namespace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance.cli import fleet, fleet_summary, main
from kafka_rebalance.plans import best_possible
from kafka_rebalance.report.plans.page import plan_page
from kafka_rebalance.report.plans.plan import names_in_plan, print_explanation, print_plan
from kafka_rebalance.report.text.tables import table_lines

if TYPE_CHECKING:
    from pathlib import Path

WIDTHS = (80, 90, 100, 120)
ID = "payments-settlement-eu-west"
ASSIGNOR = "kafka-python/cooperative-sticky"


def test_names_stay_whole_at_80_columns() -> None:
    """Readers copy names to --group and --assignor."""
    columns = ("group", "assignor", "rounds", "moves (best)", "no reader", "before", "best")
    row = (ID, ASSIGNOR, "1", "0 (0)", "20", "6-7", "6-7")
    lines = list(table_lines(columns, [row], 80, whole=True))
    assert max(map(len, lines)) <= 80
    assert sum(ID in line.split() for line in lines) == 1
    assert sum(ASSIGNOR in line.split() for line in lines) == 1


def test_no_name_is_broken_if_more_columns_need_the_room() -> None:
    """The names then have a line of their own, above the figures."""
    columns = (
        *("group", "assignor", "rounds", "moves (best)", "no reader", "waits", "no leader"),
        *("before", "after", "best"),
    )
    figures = ("1", "0 (0)", "20", "20", "20", "6-7", "6-7", "6-7")
    rows = [(ID, ASSIGNOR, *figures), (f"{ID}-{ID}", "librdkafka/cooperative-sticky", *figures)]
    lines = list(table_lines(columns, rows, 80, whole=True, names=2))
    assert max(map(len, lines)) <= 80
    at = next(i for i, line in enumerate(lines) if "─" in line)
    assert lines[at + 1].split() == [ID, ASSIGNOR]
    assert " ".join(lines[at + 2].split()) == " ".join(figures)
    assert lines[at + 4].split() == ["librdkafka/cooperative-sticky"]


def test_a_figure_stays_whole_if_one_more_name_can_stand_above() -> None:
    columns = ("group", "runs", "recommended", "per member", "no reader")
    row = ("g" * 52, ASSIGNOR, ASSIGNOR, "1-2 -> 1", "20 -> 4")
    lines = list(table_lines(columns, [row], 80, whole=True, names=3))
    assert max(map(len, lines)) <= 80
    assert any("1-2 -> 1" in line for line in lines)
    assert any("20 -> 4" in line for line in lines)
    assert {*row[:3]} <= {word for line in lines for word in line.split()}


@pytest.mark.parametrize("columns", WIDTHS)
def test_groups_that_are_left_out_are_named_in_full(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    columns: int,
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    topics, members = (kr.Topic("t", 4),), (kr.Member("m0", ("t",)),)
    ids = [f"{ID}-{n}" for n in range(3)] + ["x" * 90]
    groups = [kr.GroupSpec(one, topics, members, "stream") for one in ids[1:]]
    groups.append(kr.GroupSpec(ID, topics, members, "range"))
    file = tmp_path / "groups.jsonl"
    file.write_text("".join(f"{one.to_json()}\n" for one in groups), encoding="utf-8")
    assert main(["plan", str(file), "--partitions", "t=6"]) == 0
    out = capsys.readouterr().out
    assert {*ids[1:]} <= {word.strip(",;") for word in out.split()}
    most = min(columns, 100)
    assert all(len(line) <= most or line == f"{ids[-1]};" for line in out.splitlines())


@pytest.mark.parametrize("columns", WIDTHS)
def test_a_group_of_many_is_named_in_full(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    columns: int,
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    topics, members = (kr.Topic("t", 4),), (kr.Member("m0", ("t",)),)
    ids = [f"{ID}-{n}-of-the-second-region" for n in range(2)]
    file = tmp_path / "groups.jsonl"
    groups = [kr.GroupSpec(one, topics, members, "cooperative-sticky") for one in ids]
    file.write_text("".join(f"{one.to_json()}\n" for one in groups), encoding="utf-8")
    for word in ("plan", "compare", "describe"):
        assert main([word, str(file)]) == 0
        words = capsys.readouterr().out.split()
        assert [one for one in words if one in ids] == ids
        assert "cooperative-sticky" in words


def test_an_explanation_keeps_long_names_whole(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    member_id = "m" * 90
    group = kr.GroupSpec("g", (kr.Topic("t", 4),), (kr.Member(member_id, ("t",)),), "range")
    print_explanation(kr.plan(group).explain("t-3"), {})
    out = capsys.readouterr().out
    assert f" {member_id} " in out.replace("\n", " ")
    assert any(line.startswith("     ") for line in out.splitlines())


def _owning(assignor: str, counts: dict[str, int], members: dict[str, str]) -> kr.GroupSpec:
    """Returns a group that owns what its assignor answers; a topic's name is a letter."""
    topics = tuple(kr.Topic(name, count) for name, count in counts.items())
    there = tuple(kr.Member(name, tuple(of)) for name, of in members.items())
    group = kr.GroupSpec("g", topics, there, assignor)
    return group.owning(kr.assign(group))


def _printed(capsys: pytest.CaptureFixture[str], file: Path, *words: str) -> str:
    first, *rest = words
    assert main([first, str(file), *rest]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("columns", WIDTHS)
def test_titles_and_the_limits_of_a_better_balance_fit(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    columns: int,
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    names = tuple(f"telemetry.of-the-{n}-region" for n in range(3))
    members = tuple(kr.Member(f"m{n}", names) for n in range(2))
    group = kr.GroupSpec(ID * 2, tuple(kr.Topic(name, 3) for name in names), members, "range")
    file = tmp_path / "groups.jsonl"
    file.write_text(f"{group.owning(kr.assign(group)).to_json()}\n", encoding="utf-8")
    whole = ("--group", ID * 2)
    changed = _printed(capsys, file, "plan", *whole, "--remove-members", "1")
    planned = _printed(capsys, file, "plan", *whole)
    told = " ".join(planned.split())
    assert f"9 partitions of {', '.join(names)} can go to 2 members only: 1 must hold 5," in told
    described = _printed(capsys, file, "describe", *whole)
    for out in (changed, planned, described):
        lines = [one for one in out.splitlines() if not one.startswith("  kafka-rebalance ")]
        assert max(map(len, lines)) <= min(columns, 100)


def test_one_thing_is_not_written_as_many() -> None:
    assert best_possible(_owning("range", {"t": 1}, {"a": "t"})).reasons() == [
        "1 partition of t can go to 1 member only: each must hold 1"
    ]
    circle = kr.plan(_owning("roundrobin", {"t": 1, "u": 2}, {"a": "t", "b": "t", "c": "u"}))
    assert circle.explain("u-0")[2].endswith("passing over 1 member: it does not subscribe to u")
    circle = kr.plan(_owning("roundrobin", {"t": 1, "u": 2}, {"a": "u", "b": "u", "c": "t"}))
    assert circle.explain("t-0")[2].endswith("passing over 2 members: they do not subscribe to t")
    better = kr.compare(_owning("range", {"t": 2}, {"a": "t"}), ["add-members=1"])
    assert "leaves 1 partition without a reader, range 2, and" in better.reason
    both = _owning("roundrobin", {"t": 2, "u": 2}, {"a": "tu", "b": "tu"})
    better = kr.compare(both, ["add-members=1"], assignors=["roundrobin", "sticky"])
    assert better.reason.startswith("sticky makes 1 move, roundrobin 2, is")


KEEP = {1: "1 member keeps what it has", 2: "2 members keep what they have"}


def test_members_that_keep_theirs_are_counted_if_there_are_any(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The test looks at the two rounds of a plan, on the page and in the terminal."""
    keep = {"a": (0, 1), "ab": (1, 2)}
    for members, counts in keep.items():
        group = _owning("cooperative-sticky", {"t": len(members) + 1}, dict.fromkeys(members, "t"))
        plan = kr.plan(group, None, ["add-members=1"])
        print_plan(plan, None, names_in_plan(plan), everything=False)
        for shown in (plan_page(plan), capsys.readouterr().out):
            found = re.findall(r"\d+ members? keeps? what (?:it has|they have)", shown)
            assert found == [KEEP[count] for count in counts if count]
            assert "1 partition without a reader in this round" in shown


def test_members_without_partitions_are_idle_and_keep_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    group = _owning("range", {"t": 2}, {"a": "t", "b": "t"})
    for count, idle in ((1, "1 member is idle"), (2, "2 members are idle")):
        plan = kr.plan(group, None, [f"add-members={count}"])
        print_plan(plan, None, names_in_plan(plan), everything=False)
        out = capsys.readouterr().out
        for shown in (plan_page(plan), out):
            assert f"2 members keep what they have; {idle}" in shown
        # No row has a made-up id, so no star refers to one.
        assert f"\n{count} member id{' is a' if count == 1 else 's are'} placeholder" in out


def test_a_static_bounce_of_members_that_own_nothing_claims_no_reader(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    group = kr.GroupSpec("g", (kr.Topic("t", 3),), (kr.Member("a", ("t",), "s"),), "range")
    file = tmp_path / "groups.jsonl"
    file.write_text(f"{group.to_json()}\n", encoding="utf-8")
    out = _printed(capsys, file, "plan", "--group", "g", "--bounce-members", "s")
    assert "causes no rebalance; nothing moves.\n" in out
    assert "has a reader" not in out


def _share() -> kr.GroupSpec:
    members = tuple(kr.Member(f"m{n}", ("t",)) for n in range(2))
    topic = kr.Topic("t", 4, topic_id="qm3fKNpfQPakq046WaBiSg")
    return kr.GroupSpec("g", (topic,), members, "share/simple")


def test_one_assignor_alone_is_no_advice() -> None:
    topics = (kr.Topic("t", 4),)
    members = (kr.Member("a", ("t",)), kr.Member("b", ("t",)))
    found = kr.compare(kr.GroupSpec("g", topics, members, "range"), assignors=["sticky"])
    assert found.summary.startswith("No advice: only sticky was compared; getting there costs ")


def test_no_least_moves_are_claimed_for_a_share_group(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "groups.jsonl"
    file.write_text(f"{_share().to_json()}\n", encoding="utf-8")
    assert main(["plan", str(file), "--bounce-members", "m0"]) == 0
    (moves,) = [one for one in capsys.readouterr().out.splitlines() if one.startswith(" moves")]
    assert len(moves.split()) == 2
    assert main(["compare", str(file), "--bounce-members", "m0"]) == 0
    out = capsys.readouterr().out
    (row,) = [one for one in out.splitlines() if one.startswith(" share/simple <")]
    assert "(" not in row
    assert "Keep share/simple: it is the only one that was compared." in out
    assert main(["plan", str(file), "--bounce-members", "m0", "--json"]) == 0
    line = json.loads(capsys.readouterr().out)
    assert (line["moves"] > 0, line["least_moves"]) == (True, None)
    assert line["possible"]["least_moves"] is None
    assert main(["compare", str(file), "--bounce-members", "m0", "--json"]) == 0
    (candidate,) = json.loads(capsys.readouterr().out)["candidates"]
    assert (candidate["moves"] > 0, candidate["least_moves"]) == (True, None)


def test_without_a_change_there_are_no_seconds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "groups.jsonl"
    group = kr.GroupSpec("g", (kr.Topic("t", 4),), (kr.Member("m0", ("t",)),), "range")
    file.write_text(f"{group.to_json()}\n", encoding="utf-8")
    assert main(["compare", str(file)]) == 0
    assert "No figures in seconds: no change is given. docs/glossary.md" in capsys.readouterr().out
    assert main(["compare", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["times_missing"] == "no change is given"


def test_a_fleet_of_one_group_has_one_group_and_one_change(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    args = Namespace(json=False, word="assign", output="out")
    done: Any = SimpleNamespace(groups=1, errors=0, never_ends=0, counts={}, seconds=1.0)
    there: Any = SimpleNamespace(args=args)
    fleet._report(there, done, {}, {}, None)
    assert capsys.readouterr().out.splitlines()[:2] == [
        "1 group is assigned.",
        "1 group in 1.0 s (1 a second)",
    ]
    counts = {"groups": 1, "errors": 0, "uneven": 0, "changes": [""], "seconds": 1.0}
    rest: dict[str, Any] = {
        "summary": "All is even.",
        "most_frequent_error": None,
        "left_out": {},
        "output": "out",
        "report": "page",
    }
    monkeypatch.setattr(fleet_summary, "write_summary", lambda *_, **__: counts | rest)
    answered: Any = SimpleNamespace(args=args)
    assert fleet_summary.summarise(answered) == 0
    assert capsys.readouterr().out.splitlines()[:3] == [
        "All is even.", "", "1 group, 1 change, in 1.0 s",
    ]  # fmt: skip


def test_the_clusters_of_a_page_begin_with_the_largest() -> None:
    """Only rows without a change count; clusters of one size are in the order of their names."""
    figures = {"errors": 0, "uneven": 0, "moves": 0}
    sizes = (("us", "", 2), ("eu", "", 9), ("ap", "", 2), ("me", "add-members=1", 99))
    rows = [{"cluster": name, "change": change, "groups": n} | figures for name, change, n in sizes]
    found = fleet_summary._clusters(rows)
    assert [(one["cluster"], one["groups"]) for one in found] == [("eu", 9), ("ap", 2), ("us", 2)]
