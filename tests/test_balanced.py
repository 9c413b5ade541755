# SPDX-License-Identifier: Apache-2.0
"""`balanced` reaches the proven optimum, whatever the order of a group's lists."""

from __future__ import annotations

import gzip
import json
import random
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance import GroupSpec, Member, Topic
from kafka_rebalance.assignors.balance.balanced import PREFER, Objective
from kafka_rebalance.assignors.balance.figures import balance_figures
from kafka_rebalance.bulk import assign_lines
from kafka_rebalance.cli import main
from tests.test_possible import small_group

if TYPE_CHECKING:
    from kafka_rebalance.assignors.registry import Engine

VECTORS = Path(__file__).resolve().parent / "vectors" / "balanced.jsonl.gz"
CASES: list[dict[str, Any]] = [*map(json.loads, gzip.decompress(VECTORS.read_bytes()).splitlines())]
ORDERS = [",".join(order) for order in permutations(PREFER)]


def racked_group(rng: random.Random) -> GroupSpec:
    """Makes a small random group in which some members and replicas have racks."""
    group = small_group(rng)
    racks = ["a", "b", "c"]
    topics = [
        replace(one, racks=tuple((rng.choice(racks),) for _ in range(one.partitions)))
        if rng.random() < 0.8
        else one
        for one in group.topics
    ]
    members = [replace(one, rack_id=rng.choice([*racks, "", None])) for one in group.members]
    members = [
        replace(one, group_instance_id=rng.choice([None, f"i{rng.random()}"])) for one in members
    ]
    return group.edited(topics=tuple(topics), members=tuple(members))


def shuffled(group: GroupSpec, rng: random.Random) -> GroupSpec:
    members = [
        replace(
            one,
            topics=tuple(rng.sample(one.topics, len(one.topics))),
            owned_partitions=tuple(rng.sample(one.owned_partitions, len(one.owned_partitions))),
        )
        for one in rng.sample(group.members, len(group.members))
    ]
    topics = tuple(rng.sample(group.topics, len(group.topics)))
    return group.edited(topics=topics, members=tuple(members))


@pytest.mark.parametrize("order", ["rack,moves,topics", "topics,rack,moves", "moves,rack,topics"])
def test_the_answer_is_as_good_as_proven(order: str, engine: Engine) -> None:
    cases = [case for case in CASES if order in case["best"]]
    assert len(cases) > 10
    for case in cases[:: 4 if engine == "reference" else 1]:
        group, best = GroupSpec.from_dict(case["case"]), case["best"][order]
        answer = kr.assign(group, f"balanced?prefer={order}", engine=engine)
        assert sorted(answer.counts(), reverse=True) == best["loads"]
        found = balance_figures(group, answer, Objective(order.split(",")))
        names = ("moves", "taken", "in_rack", "topic_pairs")
        assert {name: found[name] for name in names} == {name: best[name] for name in names}
        assert found["exact"]


def test_no_order_of_lists_changes_the_answer_and_engines_agree() -> None:
    rng = random.Random(33)
    groups = [GroupSpec.from_dict(case["case"]) for case in CASES]
    for n, group in enumerate([*groups, *(racked_group(rng) for _ in range(300))]):
        name = f"balanced?prefer={ORDERS[n % len(ORDERS)]}"
        answer = kr.assign(group, name)
        assert answer == kr.assign(shuffled(group, rng), name)
        lines = [group.to_json().encode()]
        assert assign_lines(lines, name) == assign_lines(lines, name, engine="reference")


def test_its_own_answer_stays_and_no_answer_is_worse_than_to_keep_all() -> None:
    rng = random.Random(34)
    for n in range(300):
        group = racked_group(rng)
        name = f"balanced?prefer={ORDERS[n % len(ORDERS)]}"
        answer = kr.assign(group, name)
        assert answer.anomalies == ()
        assert kr.assign(group.owning(answer), name) == answer
        assert sorted(answer.counts()) == sorted(kr.plans.best_possible(group).assignment.counts())


def test_a_fresh_group_is_dealt_round_and_round(engine: Engine) -> None:
    members = tuple(Member(name, ("t", "u")) for name in ("c", "a", "b"))
    group = GroupSpec("g", (Topic("u", 4), Topic("t", 4)), members)
    answer = kr.assign(group, "balanced", engine=engine)
    assert str(answer) == "c: t[2] u[1]\na: t[0, 3] u[2]\nb: t[1] u[0, 3]"


@pytest.mark.parametrize("setting", ["prefer=rack", "prefer=rack,rack,moves", "budget", ""])
def test_wrong_settings_are_refused(setting: str, engine: Engine) -> None:
    group = GroupSpec("g", (Topic("t", 1),), (Member("a", ("t",)),))
    with pytest.raises(kr.GroupError, match="has a wrong setting; give prefer=rack,moves,topics"):
        kr.assign(group, f"balanced?{setting}", engine=engine)


def test_the_command_prefers(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    file = tmp_path / "groups.jsonl"
    file.write_text(json.dumps(CASES[0]["case"]) + "\n")
    lines = []
    for engine in ("rust", "reference"):
        arguments = ["assign", str(file), "--assignor", "balanced", "--engine", engine]
        assert main([*arguments, "--prefer", "moves,rack,topics"]) == 0
        lines.append(capsysbinary.readouterr().out)
    assert lines[0] == lines[1]
    assert (
        json.loads(lines[0])["balance"]["moves"] == CASES[0]["best"]["rack,moves,topics"]["moves"]
    )
    assert main(["assign", str(file), "--prefer", "moves,rack,topics"]) != 0
