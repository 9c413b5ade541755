# SPDX-License-Identifier: Apache-2.0
"""`describe` finds each kind of problem, in a small group that has it, and prints it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance import Member, Topic, TopicPartition, live
from kafka_rebalance.cli import main
from kafka_rebalance.notes.findings import FINDINGS
from kafka_rebalance.plans.leaders import plans_by_leader
from kafka_rebalance.present.description import describe
from kafka_rebalance.present.triage import TriagedGroup
from kafka_rebalance.report.groups.description import print_description, print_triage

if TYPE_CHECKING:
    pass

SAMPLE = Path(kr.__file__).parent / "data" / "captured_groups.jsonl"
BY_LEADER = Path(__file__).parent / "data" / "described_by_leader.jsonl"
NEVER_ENDS = Path(__file__).parent / "vectors" / "never_ends_smallest.jsonl"


def _tps(*texts: str) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(text[0], int(text[1:])) for text in texts)


def _member(name: str, topics: str, *owned: str, version: int | None = None) -> Member:
    return Member(
        name,
        tuple(topics),
        owned_partitions=_tps(*owned),
        generation_id=1,
        subscription_version=version,
    )


def _group(counts: dict[str, int], *members: Member, assignor: str = "sticky") -> kr.GroupSpec:
    topics = tuple(Topic(name, count) for name, count in counts.items())
    return kr.GroupSpec("g", topics, members, assignor)


def _racked(reader: str) -> kr.GroupSpec:
    member = Member("x", ("a",), owned_partitions=_tps("a0"), generation_id=1, rack_id=reader)
    return kr.GroupSpec("g", (Topic("a", 1, (("r1", None),)),), (member,), "range")


def _eager(topics: dict[str, int], *members: Member) -> kr.GroupSpec:
    fields: dict[str, Any] = {"rebalance_protocol": "eager"}
    return _group(topics, *members, assignor="cooperative-sticky").edited(**fields)


# Groups, each with the kinds of all its findings and the partitions that they name.
CASES: list[tuple[kr.GroupSpec, dict[str, tuple[str, ...]]]] = [
    (_group({"a": 2}, _member("x", "a", "a0"), _member("y", "a", "a1")), {}),
    (_group({"a": 2}, _member("x", "a"), _member("y", "a")), {"unread": ("a0", "a1")}),
    (_group({"a": 2}, _member("x", "a", "a0")), {"unread": ("a1",), "moves": ("a1",)}),
    (
        _group({"a": 1}, _member("x", "a", "a0"), _member("y", "a", "a0")),
        {"doubled": ("a0",)},
    ),
    (_group({"a": 1}, _member("x", "a", "a0", "a1", "b0")), {"stale": ("a1", "b0")}),
    (
        _group({"a": 1, "b": 0}, _member("x", "abc", "a0"), _member("y", "a")),
        {"idle": (), "missing": ()},
    ),
    (_group({"a": 1}, _member("x", "a", "a0"), _member("y", "a")), {"idle": ()}),
    (
        _group({"a": 4}, _member("x", "a", "a0", "a1", "a2"), _member("y", "a", "a3")),
        {"uneven": (), "moves": ("a2",)},
    ),
    (
        _group({"a": 1, "b": 1}, _member("x", "a", "a0"), _member("y", "b", "b0")),
        {"one subscriber": ()},
    ),
    (
        _group({"a": 2}, _member("x", "a", "a0", version=1), _member("y", "a", "a1")),
        {"mixed": ()},
    ),
    (_racked("r1"), {}),
    (_racked("r2"), {"across racks": ("a0",)}),
    (_group({"a": 1}, _member("x", "a", "a0"), assignor="stream"), {"foreign": ()}),
    (_eager({"a": 1}, _member("x", "a", "a0")), {"eager": ()}),
    # Kafka Streams assigns tasks, so an even number is unknown.
    (
        _group({"a": 3}, _member("x", "a", "a0", "a1", "a2"), _member("y", "a"), assignor="stream"),
        {"idle": (), "foreign": ()},
    ),
]


@pytest.mark.parametrize(("group", "expected"), CASES)
def test_findings(group: kr.GroupSpec, expected: dict[str, tuple[str, ...]]) -> None:
    described = describe(group)
    found = {one.kind: one.partitions for one in (*described.findings, *described.facts)}
    assert found == {kind: _tps(*names) for kind, names in expected.items()}


def test_a_group_that_hangs() -> None:
    group = kr.GroupSpec.from_dict(json.loads(NEVER_ENDS.read_text().splitlines()[0]))
    (hangs,) = [one for one in describe(group).findings if one.kind == "hangs"]
    assert "never ends" in hangs.text


def test_the_library_of_the_last_leader_has_the_name_that_its_users_know() -> None:
    one = _group({"a": 1}, _member("x", "a", "a0")).to_dict()
    group = kr.GroupSpec.from_dict({**one, "leader_library": "python"})
    (foreign,) = describe(group).facts
    assert foreign.text == (
        "the last leader used the assignor of kafka-python or aiokafka, which may answer otherwise "
        "than Kafka's (nothing to do)"
    )


@pytest.mark.parametrize("line", BY_LEADER.read_text().splitlines())
def test_the_next_rebalance_is_that_of_the_leaders_library(line: str) -> None:
    """Lines of a real cluster; the next rebalance of rd-rack gained these six partitions there."""
    group = kr.GroupSpec.from_dict(json.loads(line))
    moved = [one.partitions for one in describe(group).findings if one.kind == "moves"]
    expected = {
        "kp-sticky": [],
        "rd-rack": ["orders-2", "orders-4", "orders-3", "payments-0", "orders-5", "orders-6"],
    }[group.group_id]
    assert sorted(str(tp) for tps in moved for tp in tps) == sorted(expected)
    (led,) = plans_by_leader(group)
    assert led.plan is not None
    assert led.plan.figures().moves == len(expected)


def test_a_move_that_depends_on_the_leader_names_its_assignor() -> None:
    """Kafka's own assignor may lead as well, and moves other partitions than librdkafka's."""
    line = json.loads(BY_LEADER.read_text().splitlines()[1])
    line["leader"] = line["leader_library"] = None
    line["members"][0]["client_library"] = "java"
    moves = [one for one in describe(kr.GroupSpec.from_dict(line)).findings if one.kind == "moves"]
    assert {one.text for one in moves} == {
        f"the next rebalance moves them if {name} answers, whatever its cause"
        for name in ("cooperative-sticky", "librdkafka/cooperative-sticky")
    }
    assert len({one.partitions for one in moves}) == 2


def test_every_kind_has_a_case() -> None:
    """The last kinds are those of groups that the broker or Connect's leader assigns."""
    shown = {kind for _, expected in CASES for kind in expected} | {"hangs", "leaderless"}
    of_others = {"not ready", "assigning", "reconciling", "old topology", "no standby", "behind"}
    of_others |= {"end points", "never warm", "overloaded"}  # the last: test_given_weights.py
    assert shown - {"foreign"} | of_others | {"waits", "mismatch"} == {*FINDINGS} - {
        "stopped",
        "storm",
        "flapping",
        "rebalancing",
    }


def test_more_members_than_partitions_is_nothing_that_another_assignor_changes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (idle,) = describe(_group({"a": 1}, _member("x", "a", "a0"), _member("y", "a"))).findings
    assert idle.text.endswith("than members for their topics: remove members or add partitions")
    assert idle.ask is None
    members = _member("x", "ab", "a0", "b0"), _member("y", "ab")
    uneven = describe(_group({"a": 1, "b": 1}, *members, assignor="range"))
    assert {one.kind for one in uneven.findings if one.ask == "compare"} == {"idle", "uneven"}
    streams = _group({"a": 1}, _member("x", "a", "a0"), _member("y", "a"), assignor="stream")
    assert "add partitions" not in str([one.text for one in describe(streams).findings])
    print_description(describe(streams), "FILE", everything=False)
    assert "compare" not in capsys.readouterr().out


def test_partitions_without_a_leader_are_named_and_their_lag_is_unknown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    members = _member("x", "a", "a0", "a1"), _member("y", "a", "a2")
    group = _group({"a": 3}, *members)
    (here, lost) = _tps("a0", "a2")
    nobodys = TopicPartition("b", 0)
    one = describe(group, lags={here: 5}, leaderless=[lost, nobodys])
    (found,) = one.findings
    assert (found.kind, found.partitions) == ("leaderless", (lost,))
    assert [one.lag_of(m.member_id) for m in members] == [5, None]
    assert one.without_committed_offset == 1  # a1
    print_description(one, "FILE", everything=False)
    printed = " ".join(capsys.readouterr().out.split())
    assert (
        "1 partition without a committed offset: its lag is unknown (-), and in no sum; "
        "1 partition without a leader: its lag is unknown (-), and in no sum."
    ) in printed
    assert "leaderless: a-2: no leader answers, so no member can read here" in printed
    _print_rows(one, one)
    assert "with a committed offset and a leader; -" in " ".join(capsys.readouterr().out.split())


def _print_rows(*described: kr.Description) -> None:
    rows = [TriagedGroup.of(one) for one in described]
    print_triage(rows, rows)


def test_lags_are_added_up_by_member() -> None:
    group = _group({"a": 3}, _member("x", "a", "a0", "a1"), _member("y", "a", "a2"))
    lags = dict(zip(_tps("a0", "a2"), (5, 7), strict=True))
    one = describe(group, lags=lags)
    assert (one.lag, one.lag_of("x"), one.lag_of("y")) == (12, 5, 7)
    assert (describe(group).lag, describe(group).lag_of("x")) == (None, None)
    assert [member["lag"] for member in one.to_dict()["members"]] == [5, 7]


def test_a_lag_without_a_committed_offset_is_unknown_and_not_0(
    capsys: pytest.CaptureFixture[str],
) -> None:
    members = (_member("x", "a", "a0", "a1"), _member("y", "a", "a2"), _member("z", "a"))
    group = _group({"a": 3}, *members)
    (tp,) = _tps("a0")
    one = describe(group, lags={tp: 0})
    assert [one.lag, *(one.lag_of(m.member_id) for m in members)] == [0, 0, None, 0]
    assert one.to_dict()["without_committed_offset"] == 2
    none = describe(group, lags={})
    assert (none.lag, none.lag_of("x"), none.without_committed_offset) == (None, None, 3)
    assert describe(group).to_dict()["without_committed_offset"] is None
    print_description(one, "FILE", everything=False)
    printed = capsys.readouterr().out
    rows = [line.split() for line in printed.splitlines() if line[:2] in (" x", " y", " z")]
    assert [row[-1] for row in rows] == ["0", "-", "0"]
    assert (
        "Lag: 0 records in 1 partition; 2 partitions without a committed offset: their lag is "
        "unknown (-), and in no sum."
    ) in " ".join(printed.split())
    _print_rows(one, none)
    note = "lag: only of partitions with a committed offset; - if a group has none of these."
    assert note in capsys.readouterr().out


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kafka_rebalance", "describe", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_command_shows_one_group_and_what_to_ask_next() -> None:
    ran = _run(str(SAMPLE), "--group", "telemetry")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(
        "telemetry: 4 of 6 members own nothing, though each could own a partition; a more even "
        "assignment is\npossible.\n"
        "telemetry, range, generation "
    )
    assert "possible: 2-3" in ran.stdout
    asked = [line.split() for line in ran.stdout.splitlines() if line.startswith("  kafka-reb")]
    assert asked
    for _, *words in asked:
        again = [sys.executable, "-m", "kafka_rebalance", *words]
        assert subprocess.run(again, capture_output=True, check=False).returncode == 0


def test_the_table_shows_on_which_host_and_with_which_client_a_member_runs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["describe", str(BY_LEADER), "--group", "kp-sticky"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[3].split()[:4] == ["member", "host", "client", "owned"]
    of_members = [line.split()[1:3] for line in lines if " 127.0.0.1 " in line]
    assert of_members == [["127.0.0.1", "kafka-python"]] * 3


@pytest.mark.parametrize("owned", [(), ("a0", "a1")])
def test_partitions_that_nobody_reads_are_not_even(
    owned: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    group = _group({"a": 4}, *(_member(f"x{n}", "a", *owned[n : n + 1]) for n in range(2)))
    print_description(describe(group), "FILE", everything=False)
    out = capsys.readouterr().out
    assert f"Partitions per member: {len(owned) // 2} (possible: 2)." in out
    assert f"unread: a[{2 if owned else 0}-3]: no member owns " in out
    assert "Nothing to report" not in out


def test_the_command_shows_all_groups() -> None:
    ran = _run(str(SAMPLE), "--all")
    assert (ran.returncode, ran.stderr) == (0, "")  # one group is rebalancing
    assert ran.stdout.startswith("20 groups, each by its worst finding: 2 with idle ")
    assert sum(" sticky " in line for line in ran.stdout.splitlines()) >= 2


def test_the_command_as_json() -> None:
    (line,) = _run(str(SAMPLE), "--group", "telemetry", "--json").stdout.splitlines()
    group = next(one for one in map(json.loads, SAMPLE.open()) if one["group_id"] == "telemetry")
    assert json.loads(line) == describe(kr.GroupSpec.from_dict(group)).to_dict()


@pytest.mark.parametrize("group_id", ["kp-sticky", "rd-rack"])
def test_the_assignor_has_the_name_that_plan_has(
    group_id: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table of several groups shows that name too; JSON shows it beside the group's own
    name.
    """
    given = [str(BY_LEADER), "--group", group_id]
    titles = []
    for word in ("describe", "plan"):
        assert main([word, *given]) == 0
        out = capsys.readouterr().out
        titles.append(re.split("[,:] ", out[out.index(f"{group_id}, ") :])[:2])
    assert titles[0] == titles[1] == [group_id, titles[1][1]]
    assert "/" in titles[1][1]
    assert main(["describe", "--all", str(BY_LEADER)]) == 0
    assert titles[1][1] in capsys.readouterr().out
    assert main(["describe", *given, "--json"]) == 0
    line = json.loads(capsys.readouterr().out)
    assert line["assignors_by_leader"] == [f"{titles[1][1].split('/')[0]}/{line['assignor']}"]


def test_a_cluster_without_groups_to_show_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(live, "snapshot_lines", lambda *_, **__: iter(()))
    monkeypatch.setattr(live, "group_lags", lambda *_, **__: {})
    assert main(["describe", "--bootstrap-server", "broker:9092"]) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == "kafka-rebalance: broker:9092: there is no group\n"


def test_a_classic_streams_group_is_described_to_its_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No plan can be made with Kafka Streams' assignor, and a description needs no plan."""
    group = kr.GroupSpec("app", (Topic("t", 2),), (Member("a", ("t",)),), assignor="stream")
    path = tmp_path / "groups.jsonl"
    path.write_text(group.to_json() + "\n", encoding="utf-8")
    assert main(["describe", str(path)]) == 0
    printed = capsys.readouterr()
    assert "foreign: stream is Kafka Streams' own assignor" in printed.out
    assert printed.err == ""
    assert "compare" not in printed.out
