# SPDX-License-Identifier: Apache-2.0
"""Tables keep names whole at 80 columns, and texts do not claim what was not computed."""

from __future__ import annotations

import json
from argparse import Namespace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import kafka_rebalance as kr
from kafka_rebalance.cli import fleet, fleet_summary, main
from kafka_rebalance.report.plans.plan import print_explanation
from kafka_rebalance.report.text.tables import table_lines

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

ID = "payments-settlement-eu-west"
ASSIGNOR = "kafka-python/cooperative-sticky"


def test_names_stay_whole_at_80_columns() -> None:
    """They are copied to --group and --assignor."""
    columns = ("group", "assignor", "rounds", "moves (least)", "no reader", "before", "best")
    row = (ID, ASSIGNOR, "1", "0 (0)", "20", "6-7", "6-7")
    lines = list(table_lines(columns, [row], 80, whole=True))
    assert max(map(len, lines)) <= 80
    assert sum(ID in line.split() for line in lines) == 1
    assert sum(ASSIGNOR in line.split() for line in lines) == 1


def test_no_name_is_broken_if_more_columns_need_the_room() -> None:
    """The names then have a line of their own, above the figures."""
    columns = (
        *("group", "assignor", "rounds", "moves (least)", "no reader", "waits", "no leader"),
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
    columns = ("group", "runs", "recommended", "a member", "no reader")
    row = ("g" * 52, ASSIGNOR, ASSIGNOR, "1-2 -> 1", "20 -> 4")
    lines = list(table_lines(columns, [row], 80, whole=True, names=3))
    assert max(map(len, lines)) <= 80
    assert any("1-2 -> 1" in line for line in lines)
    assert any("20 -> 4" in line for line in lines)
    assert {*row[:3]} <= {word for line in lines for word in line.split()}


def test_groups_that_are_left_out_are_named_in_full_at_80_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    topics, members = (kr.Topic("t", 4),), (kr.Member("m0", ("t",)),)
    ids = [f"{ID}-{n}" for n in range(3)] + ["x" * 90]
    groups = [kr.GroupSpec(one, topics, members, "stream") for one in ids[1:]]
    groups.append(kr.GroupSpec(ID, topics, members, "range"))
    file = tmp_path / "groups.jsonl"
    file.write_text("".join(f"{one.to_json()}\n" for one in groups), encoding="utf-8")
    assert main(["plan", str(file), "--partitions", "t=6"]) == 0
    out = capsys.readouterr().out
    assert {*ids[1:]} <= {word.strip(",.") for word in out.split()}
    assert all(len(line) <= 80 or line == f"{ids[-1]}." for line in out.splitlines())


def test_a_group_of_many_is_named_in_full(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
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
    print_explanation(kr.plan(group), "t-3")
    out = capsys.readouterr().out
    assert f" {member_id} " in out.replace("\n", " ")
    assert any(line.startswith("     ") for line in out.splitlines())


def _share() -> kr.GroupSpec:
    members = tuple(kr.Member(f"m{n}", ("t",)) for n in range(2))
    topic = kr.Topic("t", 4, topic_id="qm3fKNpfQPakq046WaBiSg")
    return kr.GroupSpec("g", (topic,), members, "share/simple")


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
    assert "Recommended: share/simple is the only one that was compared." in out
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
    assert "No figures in seconds: no change is given.\n" in capsys.readouterr().out
    assert main(["compare", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["times_missing"] == "no change is given"


def test_a_fleet_of_one_group_has_one_group_and_one_change(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    args = Namespace(json=False, word="assign", output="out")
    done: Any = SimpleNamespace(groups=1, errors=0, never_ends=0, counts={}, seconds=1.0)
    fleet._report(args, done, {}, {}, None)
    assert capsys.readouterr().out.splitlines()[0] == "1 group in 1.0 s (1 a second)"
    counts = {"groups": 1, "errors": 0, "uneven": 0, "changes": [""], "seconds": 1.0}
    rest: dict[str, Any] = {
        "most_frequent_error": None,
        "left_out": {},
        "output": "out",
        "report": "page",
    }
    monkeypatch.setattr(fleet_summary, "write_summary", lambda *_, **__: counts | rest)
    spark: Any = None
    assert fleet_summary.summarise(args, spark, plain=True) == 0
    assert capsys.readouterr().out.splitlines()[0] == "1 group, 1 change, in 1.0 s"
