# SPDX-License-Identifier: Apache-2.0
"""New topics of groups that the broker assigns: their ids are made up, and vary in samples like
members' ids.
"""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest

import kafka_rebalance as kr
from kafka_rebalance.cli import main
from kafka_rebalance.plans.changes.made_up import MadeUp
from kafka_rebalance.plans.rebalance_plan import parse_changes, played
from tests.modern_live.judge import owned
from tests.support.broker_groups import broker_group, broker_line, note_kinds
from tests.support.broker_transitions import Command, Transitions, topic_id
from tests.test_watch_by_broker import command as command  # a fixture

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ASSIGNORS = ("consumer/uniform", "consumer/range", "share/simple")


class RealTopics(MadeUp):
    """Uses the ids of topics that a coordinator chose."""

    def topic_id(self, name: str) -> str:
        super().topic_id(name)
        return topic_id(name)


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_a_topic_that_is_created_ends_as_planned_with_its_real_id(
    assignor: str, command: Callable[[Command], Command]
) -> None:
    """The members subscribe to the topic before it exists, so all of them have one target."""
    checked = 0
    for seed in range(20):
        group = Transitions(command, random.Random(seed), assignor)
        new = [name for name in ("u", "v") if name not in group.topics]
        for member_id, member in group.members.items():
            member |= {"topics": sorted({*member["topics"], "u", "v"}), "fresh": True}
            group.beat(member_id)
        before = group.settled()
        if not new:
            continue
        group.create()
        change = f"add-topics {new[0]}={group.topics[new[0]]}"
        after = group.settled()
        real = played(before, parse_changes([change]), "rust", RealTopics("g"))
        assert owned(real.final) == owned(after), seed
        assert len(real.rounds) == 1
        checked += 1
    assert checked > 5


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_the_id_of_a_new_topic_is_a_guess(assignor: str) -> None:
    group = broker_group(assignor, [[0, 1], [2, 3], [4, 5]])
    plan = kr.plan(group, None, ["add-topics new=4", "add-topics x=1"])
    assert plan.topic_ids_guessed
    assert plan.figures().depends_on_ids
    assert not plan.newcomers
    ids = [topic.topic_id for topic in plan.final.topics]
    assert len({*ids}) == 3
    assert plan == kr.plan(group, None, ["add-topics new=4", "add-topics x=1"])
    samples = plan.sample()
    assert samples.to_dict()["varied"] == ["topic_ids"]
    assert note_kinds(plan)[-1] == "new topics"


def test_draws_have_other_ids_and_other_owners() -> None:
    """Four topics of one partition each: uniform assigns them in the order of their ids."""
    group = broker_group("consumer/uniform", [[0, 1, 2], [3, 4, 5]])
    plan = kr.plan(group, None, ["add-topics a=1,b=1,c=1,d=1"])
    depends = {tp.topic for tp in plan.sample(32).depends}
    assert depends
    assert depends <= set("abcd")


def test_a_leader_reads_no_topic_ids() -> None:
    line = broker_line("range", [[0, 1, 2], [3, 4, 5]])
    group = kr.GroupSpec.from_dict(line)
    plan = kr.plan(group, None, ["add-topics new=4"])
    assert not plan.has_guesses
    switched = kr.plan(group, None, ["add-topics new=4", "switch-protocol=consumer"])
    assert switched.topic_ids_guessed


def test_the_text_says_that_topic_ids_are_made_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "g.jsonl"
    line = broker_line("consumer/uniform", [[0, 1, 2], [3, 4, 5]])
    file.write_text(json.dumps(line), encoding="utf-8")
    assert main(["plan", str(file), "--add-topics", "new=3"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "The ids of new topics are placeholders: brokers choose others" in text
    assert "In 8 samples of topic ids" in text
    assert "new topics: Assumed: all members read the new topics from one target on" in text
