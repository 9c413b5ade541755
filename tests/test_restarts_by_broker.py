# SPDX-License-Identifier: Apache-2.0
"""Restarts in groups that the broker assigns: plans agree with our coordinator and Kafka's own."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance.cli import main
from kafka_rebalance.notes.other_courses import other_pause
from kafka_rebalance.plans.rebalance_plan import parse_changes, played
from kafka_rebalance.simulator.timing import timed_each
from tests.modern_live.judge import owned
from tests.prediction.told import RealIds
from tests.support.broker_groups import broker_group, broker_line, note_kinds
from tests.support.broker_transitions import Command, Transitions
from tests.support.contract_lines import noted
from tests.test_watch_by_broker import ASSIGNORS
from tests.test_watch_by_broker import command as command  # a fixture

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.parametrize("away", ["0s", "10s"])
@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_restarts_end_as_planned(
    assignor: str, away: str, command: Callable[[Command], Command]
) -> None:
    """Each member restarts once, before a heartbeat of the other members or long after it."""
    came_back_alike = 0
    for seed in range(8):
        group = Transitions(command, random.Random(seed), assignor, standby=seed % 2)
        if len(group.members) < 2:
            group.join()
        before = group.settled()
        changes = parse_changes(
            [f"bounce-members={one.member_id},away={away}" for one in before.members]
        )
        seen, ids = [], []
        for one in before.members:
            if away == "0s":
                ids.append(group.restart(one.member_id, lambda: None))
            else:
                ids.append(group.restart(one.member_id, group.settled))
            seen.append(group.settled())
        planned = kr.plan(before, None, changes)
        real = played(before, changes, "reference", RealIds("g", ids, planned.newcomers))
        steps = [one for one in real.steps if "comes back" in one.cause]
        for step, found in zip(steps, seen, strict=True):
            assert owned(step.after) == owned(found), (seed, step.cause)
            assert step.after.generation_id == found.generation_id
        came_back_alike += not real.moves
    # The assignor of tasks also weighs standby tasks, so that some tasks move in any case.
    assert away != "0s" or came_back_alike >= (0 if assignor == "streams/sticky" else 3)


@pytest.mark.parametrize("assignor", ["consumer/uniform", "consumer/range"])
def test_both_courses_are_shown_unless_the_time_away_decides(assignor: str) -> None:
    group = broker_group(assignor, [[0, 1], [2, 3], [4, 5]])
    slow = kr.plan(group, None, ["bounce-members=m1"])
    other = other_pause(slow)
    assert other is not None
    quick = kr.plan(group, None, ["bounce-members=m1,away=0s"])
    assert (other.rebalances, other.moves) == (len(quick.rounds), quick.moves)
    assert (len(quick.rounds), not quick.moves) == (1, assignor == "consumer/uniform")
    assert (len(slow.rounds), other.is_sooner, other.chance) == (2, True, None)
    assert quick.final.generation_id == slow.final.generation_id == 7
    assert {str(tp) for tp in quick.waiting} == {"t-2", "t-3"}
    assert bool(quick.unavailable) == bool(quick.moves)
    for text in ("bounce-members=m1,away=0s", "bounce-members=m1,away=5s", "remove-members=1"):
        assert "pause" not in note_kinds(kr.plan(group, None, [text]))
    # With two other members, the chance to be back first is (1 - 1/5) ** 2, or (1 - 4/5) ** 2.
    for text, course, chance in (("away=1s", False, 0.64), ("away=4s", True, 0.96)):
        found = other_pause(kr.plan(group, None, [f"bounce-members=m1,{text}"]))
        assert found is not None
        assert (found.is_sooner, found.chance) == (course, chance)
    static = kr.plan(group, None, ["bounce-members=*,static"])
    assert "pause" not in note_kinds(static)


def test_a_member_that_is_alone_moves_nothing() -> None:
    """The broker counts its leave and its return, and computes one target."""
    (only,) = kr.plan(broker_group("consumer/uniform", [[0, 1, 2]]), None, ["bounce-members"]).steps
    assert [one.generation_id for one in only.rounds] == [7]
    assert sum(len(tps) for tps in only.rounds[0].gained.values()) == 3  # t[3] to t[5] had no owner


def _said(tmp_path: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    file = tmp_path / "g.jsonl"
    lines = [broker_line("consumer/uniform", [[0, 1], [2, 3], [4, 5]])]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    assert main([arguments[0], str(file), *arguments[1:]]) == 0
    return " ".join(capsys.readouterr().out.split())


def test_the_headline_has_both_courses_and_json_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = _said(tmp_path, capsys, "plan", "--bounce-members")
    first = text.index("Restarting every member takes 6 rebalances and ")
    sooner = text.index("If all restarted members are back before another member's heartbeat: 3 ")
    assert first < sooner < text.index("round 1")
    assert "Assumed: restarted members are away for 10 s" in text
    answer: dict[str, Any] = json.loads(
        _said(tmp_path, capsys, "plan", "--bounce-members", "--json")
    )
    (detail,) = noted(answer, "pause")
    assert {**detail["other"], "elsewhere": 0} == {
        "is_sooner": True, "rebalances": 3, "moves": 0, "elsewhere": 0, "chance": None,
    }  # fmt: skip
    exact = _said(tmp_path, capsys, "plan", "--bounce-members", "*,away=10s")
    assert "pause" not in exact
    assert "6 rebalances" in exact


def test_a_table_of_many_groups_says_what_it_assumes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "g.jsonl"
    line = broker_line("consumer/uniform", [[0, 1], [2, 3], [4, 5]])
    lines = [line, {**line, "group_id": "h"}, {**line, "group_id": "i", "assignor": "range"}]
    file.write_text("".join(f"{json.dumps(one)}\n" for one in lines), encoding="utf-8")
    assert main(["plan", str(file), "--bounce-members"]) == 0
    assert "Assumed for 3 groups: how long restarted" in " ".join(capsys.readouterr().out.split())
    assert main(["plan", str(file), "--bounce-members", "*,away=1m"]) == 0
    assert "Assumed for" not in capsys.readouterr().out


def test_a_comparison_assumes_the_time_of_the_plan() -> None:
    group = broker_group("consumer/uniform", [[0, 1], [2, 3], [4, 5]])
    for text, away in (("", "10 s"), ("*,away=90s", "90 s"), ("*,away=0s", "0 s")):
        changes = parse_changes([f"bounce-members={text}"])
        _, said = timed_each(group, changes, ["consumer/uniform"])
        assert f"members that restart are away for {away}," in said
