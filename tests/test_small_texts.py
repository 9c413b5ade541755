# SPDX-License-Identifier: Apache-2.0
"""Tables keep names whole at 80 columns, and texts do not claim what was not computed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import kafka_rebalance as kr
from kafka_rebalance.cli import main
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
