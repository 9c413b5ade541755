# SPDX-License-Identifier: Apache-2.0
"""Each answer begins with a sentence that a person would say; JSON has it as `summary`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import kafka_rebalance as kr
from kafka_rebalance.cli import main

if TYPE_CHECKING:
    from pathlib import Path


def group(members: int, partitions: int, assignor: str = "cooperative-sticky") -> kr.GroupSpec:
    """Returns a group whose members own what the assignor gives them."""
    names = [f"c-{n}-{n:08x}-0000-0000-0000-000000000000" for n in range(1, members + 1)]
    topics = (kr.Topic("t", partitions),)
    one = kr.GroupSpec(
        "g", topics, tuple(kr.Member(name, ("t",), client_id=name[:3]) for name in names), assignor
    )
    return one.owning(kr.assign(one), generation_id=3)


def first(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Returns the first paragraph that a command prints, as one line."""
    assert main(arguments) == 0
    return " ".join(capsys.readouterr().out.partition("\n\n")[0].split())


@pytest.mark.parametrize(
    ("members", "partitions", "assignor", "change", "sentence"),
    [
        (
            10, 10, "cooperative-sticky", "add-members=2",
            ("2 of 12 members get nothing: there are 10 partitions. Adding 2 members moves nothing "
            "in 1 rebalance; every partition has a reader all the time."),
        ),
        (
            2, 4, "cooperative-sticky", "remove-members=1",
            ("Removing 1 member moves 2 of 4 partitions in 1 rebalance; 2 of them have no reader "
            "for one rebalance, the others are read on."),
        ),
        (
            2, 5, "range", "add-members=1",
            ("Adding 1 member moves 2 of 5 partitions in 1 rebalance; all 5 partitions have no "
            "reader meanwhile."),
        ),
        (
            2, 4, "range", "bounce-members=*,static",
            ("Restarting every member causes no rebalance; 4 partitions wait while their member is "
            "down."),
        ),
        (
            1, 1, "range", "bounce-members=*,static",
            ("Restarting every member causes no rebalance; 1 partition waits while its member is "
            "down."),
        ),
        (
            2, 4, "range", "resubscribe=t",
            "Subscribing every member to t causes no rebalance; nothing moves.",
        ),
    ],
)  # fmt: skip
def test_a_plan_begins_with_its_answer(
    members: int,
    partitions: int,
    assignor: str,
    change: str,
    sentence: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "g.jsonl"
    file.write_text(group(members, partitions, assignor).to_json(), encoding="utf-8")
    assert first(capsys, "plan", str(file), "--change", change) == sentence
    assert main(["plan", str(file), "--change", change, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["summary"] == sentence
    assert str(kr.plan(group(members, partitions, assignor), None, [change])).startswith(sentence)


def test_one_recommendation_has_its_price_in_its_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "g.jsonl"
    file.write_text(group(2, 5, "range").to_json(), encoding="utf-8")
    said = first(capsys, "compare", str(file), "--add-members", "1")
    compared = kr.compare(group(2, 5, "range"), ["add-members=1"])
    steps = compared.migration
    assert steps is not None
    assert (
        said
        == compared.summary
        == (
            "Switch to cooperative-sticky: it stops partitions 1 time, range 5, and is as even; "
            f"getting there costs {steps.rebalances} rebalances and {steps.moves} moves once."
        )
    )
    kept = kr.compare(group(2, 5), ["add-members=1"])
    assert kept.summary.startswith("Keep cooperative-sticky: it stops partitions 1 time, ")


def test_an_explanation_begins_with_the_owner(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "g.jsonl"
    file.write_text(group(2, 5).to_json(), encoding="utf-8")
    assert first(capsys, "explain", "t-0", str(file)) == "t-0 stays with c-1-0000 in 1 rebalance."
    said = first(capsys, "explain", "t-4", str(file), "--add-members", "1")
    assert said == "t-4 goes from c-1-0000 to c-3-1bc4* in 2 rebalances, nobody reads it in 1."


def test_a_simulation_begins_with_its_sums(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "rolling-bounce", "--json"]) == 0
    run = json.loads(capsys.readouterr().out)
    one = run["totals"]
    assert run["summary"] == first(capsys, "simulate", "rolling-bounce")
    assert run["summary"] == (
        f"{one['rebalances']} rebalances after the start-up; "
        f"{one['unavailable_ms'] / 1000:,.1f} partition-seconds without a reader, the longest "
        f"{one['longest_gap_ms'] / 1000:,.1f} s; settled at {one['settled_ms'] / 1000:,.1f} s."
    )
