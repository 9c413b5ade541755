# SPDX-License-Identifier: Apache-2.0
"""Groups on which Kafka's sticky assignors never end: smallest cases, the detector, warnings."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import kafka_rebalance as kr
import kafka_rebalance._core as _core
from kafka_rebalance.cli import main
from kafka_rebalance.java.hash_table import HashTable
from kafka_rebalance.notes import endless
from kafka_rebalance.notes.never_ends import STOP_ALL, endless_note
from tests.support.contract_lines import noted
from tests.support.oracle import JAR, ask_once
from tests.support.planned_groups import pair
from tools import never_ends, smaller_groups

if TYPE_CHECKING:
    from kafka_rebalance.assignors.registry import Engine

ROOT = Path(__file__).resolve().parent.parent
LINES = never_ends.SMALLEST.read_bytes().splitlines()
SMALLEST = [json.loads(line) for line in LINES]
JAVA = ROOT / "docs/reports/NeverEnds.java"
IDS = [group["group_id"] for group in SMALLEST]


# The smallest cases -------------------------------------------------------------------------------


@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
@pytest.mark.parametrize("line", LINES, ids=IDS)
def test_the_smallest_cases_never_end(line: bytes, assignor: str, engine: Engine) -> None:
    with pytest.raises(kr.NeverEnds, match=f"{assignor} assignor never ends here"):
        kr.assign(kr.GroupSpec.from_json(line), assignor, engine=engine)


@pytest.mark.parametrize("group", SMALLEST, ids=IDS)
def test_the_smallest_groups_end_without_any_part_of_them(group: dict[str, Any]) -> None:
    """If a member, topic, subscription, claim or part of a topic is left out, the assignor ends."""
    parts = list(smaller_groups.parts_left_out(group))
    assert len(parts) > 20
    assert never_ends.hanging(parts) == []


@pytest.mark.oracle
@pytest.mark.usefixtures("oracle")
@pytest.mark.parametrize("group", SMALLEST, ids=IDS)
def test_kafkas_class_never_ends_for_the_smallest_groups(group: dict[str, Any]) -> None:
    assert ask_once(group, within_s=5) is None


@pytest.mark.oracle
@pytest.mark.usefixtures("oracle")
def test_groups_near_the_smallest_ones_end_exactly_where_kafkas_class_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert never_ends.judge(seed=5, groups=8) == 0
    out = capsys.readouterr().out
    assert "4 groups that end: Kafka's class answers otherwise in 0" in out
    assert "4 groups that never end: Kafka's class answers 0" in out


def test_the_trace_in_the_docs_is_what_the_tool_prints(capsys: pytest.CaptureFixture[str]) -> None:
    never_ends.trace()
    printed = capsys.readouterr().out.splitlines()
    page = (ROOT / "docs/never-ends.md").read_text(encoding="utf-8")
    shown = page.partition("```text\n")[2].partition("```")[0].splitlines()
    assert len(shown) > 10
    assert shown == printed[: len(shown)]


# The Java program of the report -------------------------------------------------------------------


def _java(*arguments: str) -> list[str]:
    return ["java", "-cp", f"{JAR.parent}/lib/*", str(JAVA), *arguments]


@pytest.mark.oracle
@pytest.mark.usefixtures("oracle")
def test_the_java_program_ends_without_a_member() -> None:
    ran = subprocess.run(
        _java("without-m3"), capture_output=True, text=True, timeout=120, check=True
    )
    assert sorted(ran.stdout.splitlines()) == [
        "m0: [a-3, b-0, b-1]",
        "m1: [d-0, c-0, c-1]",
        "m2: [c-2, a-0, a-1, a-2]",
    ]


@pytest.mark.oracle
@pytest.mark.usefixtures("oracle")
def test_the_java_program_never_ends(tmp_path: Path) -> None:
    """Two looks at the running program, at least 3 s apart, find it in `performReassignments`."""
    out = tmp_path / "out.txt"
    with out.open("w") as file, subprocess.Popen(_java(), stdout=file) as process:
        try:
            for seen in (1, 2):
                for _ in range(60):
                    time.sleep(3)
                    assert process.poll() is None
                    process.send_signal(signal.SIGQUIT)  # a JVM prints its threads
                    if out.read_text(encoding="utf-8").count("performReassignments") >= seen:
                        break
        finally:
            process.kill()
    text = out.read_text(encoding="utf-8")
    assert text.count("GeneralAssignmentBuilder.performReassignments") >= 2
    assert "m0: [" not in text


# The state of a hash table ------------------------------------------------------------------------


# START: ten keys that share one of a table's 64 slots. AGAIN: keys that are then removed and
# added again, in this order. MORE: one more such key, only in the second table.
START = [512, 384, 448, 0, 64, 192, 576, 320, 256, 128]
AGAIN = [192, 384, 384, 192, 320]
MORE = 192


def _table(again: list[int]) -> HashTable[int]:
    table = HashTable[int](64)
    for key in START:
        table.put(key, key, key)
    for key in again:
        table.remove(key)
        table.put(key, key, key)
    return table


def test_tables_of_one_order_may_differ_in_their_trees() -> None:
    """Two tables have equal orders, but different orders after the next removal."""
    once, more = _table(AGAIN), _table([*AGAIN, MORE])
    assert once.keys() == more.keys()
    assert once.state() != more.state()
    once.remove(384)
    more.remove(384)
    assert once.keys() != more.keys()


def test_a_chain_and_a_tree_of_one_order_differ() -> None:
    tree, chain = HashTable[int](64), HashTable[int](64)
    for key in range(0, 640, 64):
        tree.put(key, key, key)
    for key in tree:
        if len(chain) < 8:
            chain.put(key, key, key)
    for key in list(tree)[8:]:
        tree.remove(key)
    assert list(tree) == list(chain)
    assert tree.state() != chain.state()


# The detector -------------------------------------------------------------------------------------

GROUP = kr.GroupSpec.from_json(LINES[0])


def _without(group: kr.GroupSpec, member_id: str) -> kr.GroupSpec:
    members = tuple(m for m in group.members if m.member_id != member_id)
    return group.edited(members=members)


def test_a_group_that_hangs_now_has_ways_out_that_end() -> None:
    found = endless(GROUP)
    assert found is not None
    assert found.now
    assert found.hangs
    assert found.after is None
    changes = {way.change: way.for_good for way in found.ways_out}
    assert changes["switch-assignor=range"]
    assert changes["resubscribe=a,b,c,d"]
    assert False in changes.values()
    for change in changes:
        if change != STOP_ALL:
            assert kr.plan(GROUP, changes=[change]).settled


def test_under_another_assignor_members_send_what_they_send_under_it() -> None:
    """Under range, kafka-python's members sent no claims; under sticky, they send claims and
    hang.
    """
    sent: dict[str, Any] = {"subscription_version": 0, "user_data": "none"}
    members = tuple(replace(member, **sent) for member in GROUP.members)
    on_range = GROUP.edited(assignor="range", members=members)
    found = endless(on_range, "sticky")
    assert found is not None
    assert found.now
    with pytest.raises(kr.NeverEnds):
        kr.plan(on_range, "sticky")
    as_sent = endless(on_range.edited(assignor="sticky"))
    assert as_sent is not None
    assert not as_sent.now


def test_the_change_asked_for_is_named_when_it_hangs() -> None:
    """m3 subscribes only to b. The change lets it subscribe to d, too; then the assignor hangs."""
    members = tuple(replace(m, topics=("b",)) if m.member_id == "m3" else m for m in GROUP.members)
    found = endless(GROUP.edited(members=members), changes=["resubscribe=m3:b,d"])
    assert found is not None
    assert not found.now
    assert found.after == "resubscribe=m3:b,d"
    assert found.ways_out


def test_next_changes_that_hang_are_named_and_hang() -> None:
    """Some variants of a smallest case end, but hang after one more change; `endless` names this
    change.
    """
    rng = random.Random(3)
    around = [smaller_groups.changed(SMALLEST[0], rng) for _ in range(400)]
    hangs = {json.dumps(group) for group in never_ends.hanging(around)}
    named = 0
    for line in (line for line in map(json.dumps, around) if line not in hangs):
        group = kr.GroupSpec.from_json(line)
        found = endless(group)
        if found is not None and found.following:
            named += 1
            assert found.ways_out
            for change in found.following:
                with pytest.raises(kr.NeverEnds):
                    kr.plan(group, changes=[change])
        if named == 3:
            break
    assert named == 3


@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
def test_assignors_that_always_end_cost_nothing(assignor: str) -> None:
    assert endless(GROUP, assignor, most_plays=0) is None


def test_equal_subscriptions_cost_nothing() -> None:
    members = tuple(kr.Member(f"m{n}", ("a", "b")) for n in range(3))
    assert endless(GROUP.edited(members=members), most_plays=0) is None


def test_the_budget_cuts_it_short_and_says_so() -> None:
    found = endless(GROUP, most_plays=3)
    assert found is not None
    assert found.now
    assert (found.tried, found.untried) == (2, 10)
    assert "10 more were not played: the budget was spent" in endless_note(found).text
    small = endless(GROUP, most_work=60)
    assert small is not None
    assert small.untried > 0


def test_both_engines_find_the_same_changes_that_never_end(engine: Engine) -> None:
    assert endless(GROUP, engine=engine) == endless(GROUP, engine="reference")


# Warnings of the commands -------------------------------------------------------------------------


@pytest.fixture
def hanging_file(tmp_path: Path) -> Path:
    file = tmp_path / "groups.jsonl"
    file.write_bytes(LINES[0] + b"\n")
    return file


def test_plan_tells_of_a_hang_and_a_way_out(
    hanging_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", str(hanging_file)]) == 3
    told = capsys.readouterr().err
    assert "sticky assignor never ends here" in told
    assert "NEVER ENDS: sticky computes for ever at this group's next rebalance." in told
    assert "The assignor always ends (played) after: switch-assignor=range" in told


def test_plan_reports_a_hang_as_json(
    hanging_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", str(hanging_file), "--json"]) == 3
    (found,) = noted(json.loads(capsys.readouterr().out), "hangs")
    assert found["now"] is True
    assert {"change": "switch-assignor=range", "for_good": True} in found["ways_out"]


def test_plan_warns_of_what_ends_now(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "groups.jsonl"
    file.write_text(_without(GROUP, "m3").to_json() + "\n", encoding="utf-8")
    assert main(["plan", str(file)]) == 0
    told = capsys.readouterr().out
    assert "different subscriptions can hang a leader under sticky" in " ".join(told.split())
    assert main(["plan", str(file), "--json"]) == 0
    (found,) = noted(json.loads(capsys.readouterr().out), "hangs")
    assert found["now"] is False


def test_compare_warns(hanging_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(hanging_file)]) == 0
    told = capsys.readouterr().out
    assert "NEVER ENDS: sticky computes for ever" in told
    assert main(["compare", str(hanging_file), "--json"]) == 0
    found = noted(json.loads(capsys.readouterr().out), "hangs")
    assert [(one["assignor"], one["now"]) for one in found] == [("sticky", True)]


def test_no_warning_is_printed_for_equal_subscriptions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "groups.jsonl"
    members = tuple(kr.Member(f"m{n}", ("a", "b")) for n in range(3))
    file.write_text(GROUP.edited(members=members).to_json() + "\n", encoding="utf-8")
    assert main(["plan", str(file)]) == 0
    assert " hang" not in capsys.readouterr().out


# The tool -----------------------------------------------------------------------------------------


def test_the_tool_counts(capsys: pytest.CaptureFixture[str]) -> None:
    never_ends.shares(seed=1, groups=1)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + len(never_ends.SHAPES) * 12 + 1


def test_the_tool_looks_for_a_smaller_case() -> None:
    command = [sys.executable, "-m", "tools.never_ends", "smallest", "--seconds", "2"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "members, " in ran.stdout


def test_the_command_does_not_play_a_plan_that_ended_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def assign(*_: object) -> object:
        raise AssertionError("an assignor ran outside of the plan")

    monkeypatch.setattr(_core, "assign", assign)
    path = tmp_path / "groups.jsonl"
    path.write_text(pair("cooperative-sticky").to_json() + "\n")
    assert main(["plan", "--add-members", "1", "--json", str(path)]) == 0
