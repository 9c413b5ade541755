# SPDX-License-Identifier: Apache-2.0
"""`check`: which problems fail it, in each format, beside a baseline and a table of TOML."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance.checks.formats import harmless, text_lines
from kafka_rebalance.checks.verdict import Problem, Verdict
from kafka_rebalance.cli import main

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = "##[error]a::b\n::error::c"


def group(group_id: str, members: int, partitions: int, assignor: str = "range") -> kr.GroupSpec:
    """Returns a group whose members own what the assignor gives them."""
    names = tuple(kr.Member(f"m{n}", ("t",)) for n in range(members))
    one = kr.GroupSpec(group_id, (kr.Topic("t", partitions),), names, assignor)
    return one.owning(kr.assign(one), generation_id=1)


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a file with a healthy group, one with an idle member, one that nobody reads."""
    unread = kr.GroupSpec(HOSTILE, (kr.Topic("t", 4),), (kr.Member("m", ("t",)),), "range")
    file = tmp_path / "groups.jsonl"
    lines = [group("well", 2, 4), group("idle", 3, 2), unread]
    file.write_text("\n".join(one.to_json() for one in lines), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return file


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    code = main(["check", *map(str, arguments)])
    return code, capsys.readouterr().out


def test_a_lost_rack_of_members_without_racks_is_not_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "group.jsonl"
    in_racks = (kr.Topic("t", 4, racks=(("a", "b"),) * 4),)
    file.write_text(replace(group("g", 2, 4), topics=in_racks).to_json(), encoding="utf-8")
    code, out = run(capsys, file, "--remove-rack", "a")
    said = "Nothing was checked (exit code 3): 0 of 1 group checked (1 is not known); "
    assert (code, out.splitlines()[0]) == (3, f"{said}1 warning, no errors.")
    assert out.count("none of the 2 members has a client.rack") == 1
    assert run(capsys, file, "--remove-rack", "a", "--fail-on", "not known")[0] == 4


def test_errors_fail_and_warnings_are_noted(
    groups: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = run(capsys, groups)
    first, _, *problems = out.splitlines()
    assert (code, first) == (4, "Failed: 1 group of 3 (1 unread); also 1 warning.")
    assert [line.split()[0] for line in problems] == ["FAILS", "noted"]
    code, out = run(capsys, groups, "--group", "well")
    assert (code, out) == (0, "Passed: 1 group checked.\n")
    code, out = run(capsys, groups, "--group", "idle", "--fail-on", "uneven, idle")
    assert (code, out.splitlines()[0]) == (4, "Failed: 1 group of 1 (1 idle).")
    code, out = run(capsys, groups, "--group", "idle", "--fail-on", "warning", "--json")
    answer = json.loads(out)
    assert (code, answer["failed"]) == (4, True)
    (problem,) = answer["problems"]
    assert (problem["kind"], problem["see"]) == ("idle", "docs/findings.md#idle")


def test_a_change_has_its_plan_and_its_limits(
    groups: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change = ("--group", "well", "--add-members", "3")
    code, out = run(capsys, groups, *change)
    assert code == 0
    assert "noted  warning  well: idle: 1 of 5 members would get nothing" in out
    assert "\nwell: 1 of 5 members gets nothing: there are 4 partitions. Adding 3 members" in out
    code, out = run(capsys, groups, *change, "--max-stops", "3")
    assert (code, out.partition(";")[0]) == (4, "Failed: 1 group of 1 (1 max-stops)")
    assert "4 partitions without a reader, above the limit of 3" in out
    code, _ = run(capsys, groups, *change, "--max-stops", "4", "--max-moves", "4")
    assert code == 0
    code, out = run(capsys, groups, "--group", "well", "--remove-members", "2")
    assert code == 4
    assert "unread: no member is left: nobody reads 4 partitions" in out


def test_what_a_baseline_knows_does_not_fail(
    groups: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    baseline = tmp_path / "known.json"
    baseline.write_text(run(capsys, groups, "--json")[1], encoding="utf-8")
    code, out = run(capsys, groups, "--fail-on", "info", "--baseline", baseline)
    assert (code, out.splitlines()[0]) == (0, "Passed: 3 groups checked; 1 error, 1 warning.")
    more = groups.with_name("more.jsonl")
    more.write_text(group("new", 3, 2).to_json(), encoding="utf-8")
    assert run(capsys, more, "--fail-on", "warning", "--baseline", baseline)[0] == 4
    baseline.write_text("[]", encoding="utf-8")
    assert main(["check", str(groups), "--baseline", str(baseline)]) == 2
    assert "is not the output of check --format json" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ("max-lags = 3", "max-lags: is not a key; the keys are fail-on, change"),
        ('max-lag = "3"', 'max-lag: "3" is not a whole number from 0 on'),
        ("max-lag = true", 'max-lag: "True" is not a whole number from 0 on'),
        ("= 3", "is not TOML"),
    ],
)
def test_a_wrong_table_is_named_by_its_key(
    groups: Path, table: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"[tool.kafka-rebalance]\n{table}\n"
    groups.with_name("pyproject.toml").write_text(text, encoding="utf-8")
    assert main(["check", str(groups)]) == 2
    assert problem in capsys.readouterr().err


def test_the_table_has_the_options_that_are_not_given(
    groups: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = '[tool.kafka-rebalance]\nfail-on = ["idle"]\nchange = ["add-members=1"]\nmax-moves = 0\n'
    file = groups.with_name("pyproject.toml")
    file.write_text(text, encoding="utf-8")
    code, out = run(capsys, groups, "--group", "well")
    assert (code, out.splitlines()[0]) == (4, "Failed: 1 group of 1 (1 max-moves).")
    code, _ = run(capsys, groups, "--group", "well", "--max-moves", "9", "--fail-on", "error")
    assert code == 0
    other = groups.with_name("other.toml")
    other.write_text("[tool.other]\n", encoding="utf-8")
    assert main(["check", str(groups), "--config", str(other)]) == 2


def test_no_name_becomes_a_command_of_a_runner(
    groups: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for form in ("text", "github", "json", "sarif"):
        _, out = run(capsys, groups, "--format", form, "--fail-on", "warning")
        commands = [line for line in out.splitlines() if line.startswith("::")]
        assert "##[" not in out
        assert all(line.startswith(("::error file=", "::warning file=")) for line in commands)
        assert len(commands) == (2 if form == "github" else 0)
    assert harmless("  ::add-mask::x").lstrip().startswith("\\u003a")


def test_a_log_in_sarif_has_the_parts_that_its_schema_requires(
    groups: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log: dict[str, Any] = json.loads(run(capsys, groups, "--format", "sarif")[1])
    assert log["version"] == "2.1.0"
    (one,) = log["runs"]
    rules = one["tool"]["driver"]["rules"]
    for result in one["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["message"]["text"]
        assert result["level"] in ("error", "note")
        (place,) = result["locations"]
        assert place["physicalLocation"]["region"]["startLine"] in (2, 3)
    assert [one["level"] for one in one["results"]] == ["error", "note"]


def test_a_group_that_cannot_be_read_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "g.jsonl"
    file.write_text('{"group_id": "g", "topics": 3}\n' + group("well", 1, 1).to_json(), "utf-8")
    code, out = run(capsys, file)
    assert code == 4
    assert "FAILS  error    g: error: line 1: topics: a number is not a list" in out


def test_the_finding_moves_is_not_the_limit_of_moves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A warning does not fail a check that only errors fail."""
    swapped = group("g", 2, 4)
    first, second = swapped.members
    members = tuple(
        replace(one, owned_partitions=other.owned_partitions)
        for one, other in ((first, second), (second, first))
    )
    file = tmp_path / "g.jsonl"
    file.write_text(swapped.edited(members=members).to_json(), encoding="utf-8")
    code, out = run(capsys, file)
    assert code == 0
    assert "noted  warning  g: moves: " in out
    assert run(capsys, file, "--fail-on", "moves")[0] == 4
    assert main(["check", str(file), "--fail-on", "unevn"]) == 2
    assert "did you mean uneven?" in capsys.readouterr().err


def test_a_check_that_checks_nothing_does_not_pass(
    groups: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A typing error in a change, or a group that is not planned, must not look like success."""
    code, out = run(capsys, groups, "--partitions", "nosuch=40")
    assert code == 4
    assert 'all groups: error: partitions nosuch=40: the group has no topic "nosuch"' in out
    moving = groups.with_name("moving.jsonl")
    error = {"group_id": "g", "error": "state: PreparingRebalance, it is rebalancing: ask again"}
    moving.write_text(json.dumps(error), encoding="utf-8")
    code, out = run(capsys, moving, "--add-members", "1")
    assert code == 4
    assert "g: error: not planned, because its state is PreparingRebalance" in out
    for words in (
        ["--max-lag", "1"],
        ["--max-moves", "1"],
        ["--add-members", "1", "--max-lag", "1"],
    ):
        with pytest.raises(SystemExit) as raised:
            main(["check", str(groups), *words])
        assert raised.value.code == 2
    empty = groups.with_name("empty.jsonl")
    empty.write_text("", encoding="utf-8")
    assert main(["check", str(empty)]) == 3
    assert capsys.readouterr().out == "Nothing was checked: there is no group.\n"


@pytest.mark.parametrize(
    "table",
    ["fail-on = [1]", "max-moves = -1", 'client = "jav"', "change = [[]]"],
)
def test_values_in_the_table_are_checked(
    groups: Path, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = groups.with_name("pyproject.toml")
    file.write_text(f"[tool.kafka-rebalance]\n{table}\n", encoding="utf-8")
    assert main(["check", str(groups)]) == 2
    assert f"tool.kafka-rebalance.{table.partition(' ')[0]}: " in capsys.readouterr().err
    file.write_text('[tool.kafka-rebalance]\nsettings = ["c.properties"]\nmax-moves = 9\n', "utf-8")
    assert run(capsys, groups, "--group", "well", "--add-members", "1", "--max-moves", "0")[0] == 4
    file.write_text("[tool]\nkafka-rebalance = 1\n", encoding="utf-8")
    assert main(["check", str(groups)]) == 2
    file.write_bytes(b"# f\xfcr\n")
    assert main(["check", str(groups)]) == 2
    assert "is not TOML" in capsys.readouterr().err


def test_the_problems_that_fail_come_first() -> None:
    each = [Problem.of("g", kind, "…") for kind in ("idle", "uneven")]
    verdict = Verdict.of(1, each, fail_on=("uneven",))
    _, _, *lines = text_lines(verdict)
    assert [line.split()[0] for line in lines] == ["FAILS", "noted"]
