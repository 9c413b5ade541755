# SPDX-License-Identifier: Apache-2.0
"""Members that change their subscriptions at different moments, and a rack that is lost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import kafka_rebalance as kr
from kafka_rebalance.cli import main
from kafka_rebalance.notes.mixed_subscriptions import played_apart
from kafka_rebalance.notes.other_courses import extra_rebalances, played_further
from kafka_rebalance.plans.changes import change_from_text
from tests.support.contract_lines import noted
from tests.support.groups_by_library import said
from tests.test_planned_switches import running

if TYPE_CHECKING:
    from pathlib import Path

    from kafka_rebalance.assignors.registry import Engine

DIALECT = "librdkafka/cooperative-sticky"


@pytest.mark.parametrize(
    ("verb", "value", "is_bound"),
    [
        ("add-topics", "c=5", True),
        ("remove-topics", "b", True),
        ("resubscribe", "a", True),
        ("resubscribe", "j-1-abcd:a", False),
        ("remove-members", "1", False),
    ],
)
def test_a_change_of_all_subscriptions_is_assumed_to_have_one_moment(
    verb: str, value: str, is_bound: bool, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text = said(capsys, tmp_path, [running()], "plan", f"--{verb}", value)
    assert ("all members subscribe at one moment here" in text) == is_bound
    assert ("Played in 32 random orders" in text) == is_bound
    alone = running().edited(members=running().members[:1])
    assert extra_rebalances(alone, [change_from_text(f"{verb} {value}")]) is None


def test_a_topic_that_two_of_three_members_meet_first_ends_elsewhere(engine: Engine) -> None:
    """Checked by hand: two members subscribe and settle, then the third member does."""
    began = running(assignor=DIALECT)
    whole = kr.plan(began, changes=["add-topics c=5"], engine=engine)
    topics = (*began.topics, kr.Topic("c", 5))
    apart = began.edited(topics=topics)
    for member in began.members:
        change = kr.Resubscribe(("a", "b", "c"), member.member_id)
        apart = kr.plan(apart, changes=[change], engine=engine).final
    found = played_apart(whole)
    assert found.draws == 32
    assert found.rejoins > 0
    after = {m.member_id: set(m.owned_partitions) for m in apart.members}
    moved = {tp for one in after for tp in after[one] - set(whole.after[one])}
    assert moved
    assert moved <= set(found.partitions)


def test_range_ends_alike_in_every_order(engine: Engine) -> None:
    """Range's answer follows from the subscriptions alone; only the number of rebalances is
    larger.
    """
    found = played_apart(kr.plan(running(assignor="range"), None, ["add-topics c=5"]))
    assert found.partitions == ()
    assert found.rejoins == 2
    assert found.moves[1] > 0
    assert played_apart(kr.plan(running(), None, ["remove-topics=b"], engine=engine), 0).draws == 0


def test_the_orders_are_in_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "g.jsonl"
    file.write_text(f"{running().to_json()}\n", encoding="utf-8")
    assert main(["plan", str(file), "--add-topics", "c=5", "--samples", "8", "--json"]) == 0
    (extra,) = noted(json.loads(capsys.readouterr().out), "lower bound")
    assert (extra["cause"], extra["may_move"]) == ("subscriptions", True)
    assert extra["played"]["draws"] == 8


@pytest.mark.parametrize("assignor", ["librdkafka/range", DIALECT])
@pytest.mark.parametrize("library", ["java", "librdkafka"])
def test_each_member_of_librdkafka_sees_the_brokers_of_a_rack_go(
    assignor: str, library: str
) -> None:
    """In place of one rebalance, a real group had 5 under cooperative-sticky, and 2 under range."""
    members = tuple(
        kr.Member(f"m{i}", ("t",), rack_id=rack, client_library=library)
        for i, rack in enumerate("aabbc")
    )
    racks = tuple(("abc"[p % 3], "bca"[p % 3]) for p in range(9))
    began = kr.GroupSpec("g", (kr.Topic("t", 9, racks=racks),), members, assignor)
    plan = kr.plan(kr.plan(began).final, None, ["remove-rack=c"])
    extra = extra_rebalances(plan.group, plan.changes)
    if library == "java":
        assert extra is None
        return
    assert extra is not None
    assert (extra.cause, extra.may_move) == ("metadata", assignor == DIALECT)
    assert played_further(plan).rejoins == 3  # one of the four remaining members leads
    without = tuple(kr.Topic("t", 9) for _ in began.topics)
    assert extra_rebalances(began.edited(topics=without), plan.changes) is None
