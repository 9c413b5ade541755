# SPDX-License-Identifier: Apache-2.0
"""Weights and capacities from a file or a live group reach `weighted` in every command."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from kafka_rebalance import GroupError, GroupSpec, Member, Topic, TopicPartition
from kafka_rebalance.cli import main, weights
from kafka_rebalance.group.given_weights import read_weights
from kafka_rebalance.present.description import describe

if TYPE_CHECKING:
    from pathlib import Path

    from kafka_rebalance.group.given_weights import Kind


def owned(*partitions: int) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition("t", p) for p in partitions)


GROUP = GroupSpec(
    "g",
    (Topic("t", 6, weights=(None, 5, None, None, None, None)), Topic("u", 1)),
    (
        Member("big-1", ("t",), client_id="big-1", owned_partitions=owned(0, 1, 2)),
        Member("c-2", ("t",), client_id="c", owned_partitions=owned(3, 4, 5)),
    ),
    "range",
)
LINES = """# records a second
topic,partition,weight
t, 0, 90
t 2 60

{"topic": "t", "weight": 1}
gone 7
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "group.jsonl").write_text(GROUP.to_json(), encoding="utf-8")
    (tmp_path / "weights").write_text(LINES, encoding="utf-8")
    (tmp_path / "members").write_text("big-* 2\n", encoding="utf-8")
    return tmp_path


def test_the_more_specific_line_decides_and_other_weights_stay() -> None:
    given = read_weights(LINES.split("\n"), "weight", "f").put_in(GROUP)
    assert given.topics[0].weights == (90, 1, 60, 1, 1, 1)
    assert given.topics[1].weights is None
    alone = read_weights(["t 0 90"], "weight", "f").put_in(GROUP)
    assert alone.topics[0].weights == (90, 5, None, None, None, None)
    rows = [
        "* 4",
        "big-* 2",
        '{"client_id": "c", "capacity": 0.5}',
        '{"member_id": "c", "capacity": 9}',
    ]
    assert [m.capacity for m in read_weights(rows, "capacity", "f").put_in(GROUP).members] == [
        2,
        0.5,
    ]


@pytest.mark.parametrize(
    ("kind", "line", "problem"),
    [
        ("weight", "t x 1", 'f line 2: "t x 1" is not TOPIC PARTITION WEIGHT'),
        ("weight", "t 0 -1", "f line 2.weight: not a weight from 0"),
        ("weight", "t 0 nan", "f line 2.weight: not a weight from 0"),
        ("weight", '{"topic": "t", "wieght": 1}', "f line 2.wieght: not a field here; "),
        ("weight", '{"topic": "t"}', "f line 2: give TOPIC PARTITION WEIGHT"),
        ("weight", '{"topic": "t", "partition": "0", "weight": 1}', "f line 2.partition: a string"),
        ("weight", "{", "f line 2: not JSON"),
        ("weight", "a 0 3", "f line 2: says again what line 1 says"),
        ("capacity", "c 0", "f line 2.capacity: not a capacity from 0.001"),
        ("capacity", "c", 'f line 2: "c" is not CLIENT CAPACITY'),
    ],
)
def test_wrong_lines_are_errors_with_their_place(kind: Kind, line: str, problem: str) -> None:
    first = "a 0 1" if kind == "weight" else "a 1"
    with pytest.raises(GroupError) as caught:
        read_weights([first, line], kind, "f")
    assert str(caught.value).startswith(problem)


@pytest.mark.usefixtures("files")
def test_a_file_weighs_groups_in_assign_and_plan(capsys: pytest.CaptureFixture[str]) -> None:
    ours = ["--assignor", "weighted", "--weights", "weights", "--capacity", "members"]
    assert main(["assign", "group.jsonl", *ours, "--budget", "none"]) == 0
    told = capsys.readouterr()
    balance = json.loads(told.out)["balance"]
    assert (balance["greatest"], balance["taken"]) == (63.0, 1)
    assert "weights: 1 topic in no group: gone" in told.err
    assert main(["plan", "group.jsonl", *ours, "--budget", "none", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["moves"] == 1


@pytest.mark.usefixtures("files")
def test_weights_need_the_assignor_and_a_group_to_measure(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["plan", "group.jsonl", "--weights", "weights"]) != 0
    assert "--weights: only --assignor weighted has this option" in capsys.readouterr().err
    assert main(["plan", "group.jsonl", "--assignor", "weighted", "--weights", "lag"]) != 0
    assert "--weights: lag is read from one group of a cluster" in capsys.readouterr().err
    assert weights.rounded(0) == 0


@pytest.mark.usefixtures("files")
def test_an_overloaded_member_is_a_finding(capsys: pytest.CaptureFixture[str]) -> None:
    """big-1 carries 151 / 2, and the mean is 154 / 3; without the 60, c-2 carries 63."""
    given = ("group.jsonl", "--weights", "weights", "--capacity", "members")
    assert main(["describe", "group.jsonl", "--json"]) == 0
    assert "overloaded" not in capsys.readouterr().out
    assert main(["describe", *given]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    fault = "the fullest member carries 1.47 times the mean load; 1 move would bring it to 1.23"
    assert f"overloaded: big-1: {fault}" in shown
    ask = "plan --assignor weighted --budget none --weights weights --capacity members group.jsonl"
    assert main(ask.split()) == 0
    assert f"kafka-rebalance {ask} --group g" in shown
    moves = " ".join(capsys.readouterr().out.split())
    assert "carries 1.47 times the mean load before, and 1.23 times after" in moves
    assert main(["check", *given, "--fail-on", "overloaded"]) == 4
    assert f"g: overloaded: {fault}" in capsys.readouterr().out
    assert main(["check", *given, "--fail-on", "overloaded", "--add-members", "1"]) == 0


def test_uneven_counts_of_weighted_are_no_finding() -> None:
    """Without weights, nobody knows what its leader answers next."""
    members = [replace(one, topics=("t",), generation_id=1) for one in GROUP.members]
    moved = owned(0, 1, 2, 3, 4), owned(5)
    claiming = tuple(one.owning(tps, 1) for one, tps in zip(members, moved, strict=True))
    plain = GROUP.edited(topics=(Topic("t", 6),), members=claiming, assignor="weighted")
    assert describe(plain).findings == ()
    weighed = plain.edited(topics=(Topic("t", 6, weights=(1, 1, 1, 1, 9, 1)),))
    assert {one.kind for one in describe(weighed).findings} == {"overloaded", "moves"}


@pytest.mark.usefixtures("files")
def test_scale_counts_by_weights(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scale", "group.jsonl", "--weights", "weights", "--members", "2,6", "--json"]) == 0
    two, six = json.loads(capsys.readouterr().out)["counts"]
    assert (two["busiest"], six["busiest"]) == (151, 90)
    with pytest.raises(SystemExit):
        main(["scale", "group.jsonl", "--weights", "lag"])
    assert "the lag of a live group is read by itself" in capsys.readouterr().err
