# SPDX-License-Identifier: Apache-2.0
"""`balanced` as a plug-in of the brokers: its targets, and the plans that foretell them."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance import GroupSpec
from kafka_rebalance.bulk import assign_lines
from kafka_rebalance.notes.all_notes import plan_notes
from kafka_rebalance.simulator.from_group import scenario_from_group
from tests.support.broker_groups import broker_group
from tests.support.generate_server import topic_id
from tests.test_balanced import CASES, racked_group
from tools.balanced_in_brokers import in_broker, is_single

if TYPE_CHECKING:
    from kafka_rebalance.assignors.registry import Engine
    from tests.support.oracle import Oracle

NAME = "consumer/balanced"


@pytest.mark.oracle
def test_the_plug_in_answers_as_balanced(server_oracle: Oracle) -> None:
    """Ids in the order of names, and one owner of each partition: then all targets are equal."""
    lines: list[dict[str, Any]] = [case["case"] for case in CASES]
    assert 0 < sum(map(is_single, lines)) < len(lines)
    answers = server_oracle.ask_many(map(in_broker, lines))
    for line, answer in zip(lines, answers, strict=True):
        expected = kr.assign(GroupSpec.from_dict(line), "balanced")
        assert answer == {"assignment": expected.to_dict()}


def tied_line(number: int) -> dict[str, Any]:
    """Returns a line of topics of one partition, which three members read: all are alike."""
    names = [f"t{number}-{n}" for n in range(5)]
    topics = [{"name": name, "partitions": 1} for name in names]
    members = [{"member_id": f"m{n}", "topics": names} for n in range(3)]
    return {"group_id": "tied", "topics": topics, "members": members}


@pytest.mark.oracle
def test_ids_break_ties_in_brokers(server_oracle: Oracle) -> None:
    rng = random.Random(35)
    others = 0
    drawn = [racked_group(rng).to_dict() for _ in range(150)]
    for line in map(in_broker, [*drawn, *(tied_line(n) for n in range(10))]):
        topics = [topic | {"topic_id": topic_id(topic["name"])} for topic in line["topics"]]
        group = GroupSpec.from_dict(line | {"topics": topics})
        answer = server_oracle.ask(json.loads(group.to_json()))["assignment"]
        assert kr.assign(group).to_dict() == kr.assign(group, engine="reference").to_dict()
        assert kr.assign(group).to_dict() == answer
        by_names = kr.assign(group, "balanced")
        others += {who: {*map(tuple, owned)} for who, owned in answer.items()} != {
            who: {*owned} for who, owned in by_names.items()
        }
    assert others


@pytest.mark.oracle
def test_large_groups_are_spread_in_turn(server_oracle: Oracle) -> None:
    """Beyond 100,000 pairs of a partition and a subscriber, topics do not count in the flow."""
    rng = random.Random(36)
    names = [f"t{n}" for n in range(12)]
    topics = [
        {"name": name, "partitions": 90, "racks": [[rng.choice("abc")] for _ in range(90)]}
        for name in names
    ]
    members = [
        {
            "member_id": f"m{n}",
            "topics": names if n % 9 else names[:5],
            "rack_id": rng.choice("abc"),
        }
        for n in range(120)
    ]
    line = in_broker({"group_id": "g", "topics": topics, "members": members})
    first = GroupSpec.from_dict(line)
    left = first.owning(kr.assign(first)).edited(members=first.owning(kr.assign(first)).members[7:])
    for group in (first, left):
        answer = server_oracle.ask(json.loads(group.to_json()))
        assert answer == {"assignment": kr.assign(group).to_dict()}


def test_lines_of_such_groups_are_answered(engine: Engine) -> None:
    group = broker_group(NAME, [[0, 1, 2], [3, 4, 5]])
    (answer,) = assign_lines([group.to_json().encode()], engine=engine)
    assert json.loads(answer.line) == {
        "group_id": group.group_id,
        "assignor": NAME,
        "assignment": kr.assign(group, engine=engine).to_dict(),
    }


def test_a_plan_says_that_the_brokers_need_the_jar() -> None:
    group = broker_group("consumer/uniform", [[0, 1, 2], [3, 4, 5]])
    for plan in (
        kr.plan(group, NAME, ["add-members=1"]),
        kr.plan(group, None, [f"switch-assignor={NAME}"]),
        kr.plan(replace(group, assignor="range"), None, ["switch-protocol=consumer/balanced"]),
    ):
        assert plan.rounds[-1].assignor == NAME
        (note,) = (one for one in plan_notes(plan) if one.kind == "jar")
        assert "all brokers need its jar" in note.text


def test_only_groups_that_run_it_compare_it_unasked() -> None:
    halves = [[0, 1, 2], [3, 4, 5]]
    for own in (NAME, "consumer/uniform"):
        met = [one.assignor for one in kr.compare(broker_group(own, halves)).candidates]
        assert (NAME in met) == (own == NAME)


def test_the_simulator_refuses_it_in_words() -> None:
    group = broker_group(NAME, [[0, 1, 2], [3, 4, 5]])
    with pytest.raises(kr.GroupError, match="plays consumer/uniform and consumer/range; `plan`"):
        scenario_from_group(group)
