# SPDX-License-Identifier: Apache-2.0
"""Plans of groups that the broker assigns, step by step beside Kafka's own coordinator."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import kafka_rebalance as kr
from tests.support.broker_groups import broker_group
from tests.support.coordinator_oracle import JAR
from tests.support.planned_groups import pair
from tools.differential_broker_plans import RANGE, SHARE, UNIFORM, compare
from tools.judge import Block

if TYPE_CHECKING:
    from kafka_rebalance.assignors.registry import Engine


@pytest.mark.oracle
@pytest.mark.skipif(not JAR.is_file(), reason="no oracle: run `make judges`")
@pytest.mark.parametrize(
    ("seed", "assignors"),
    [(300009, (SHARE,)), (100000, (SHARE,)), (100005, (SHARE,)), (2, (UNIFORM, RANGE))],
)
def test_every_step_is_as_planned(seed: int, assignors: tuple[str, ...]) -> None:
    outcome = compare(Block(seed, 43), assignors=assignors)
    assert outcome.differences == []
    assert outcome.met["with topics without partitions"] >= 10 * (SHARE in assignors)


@pytest.mark.parametrize("engine", ["reference", "rust"])
def test_an_empty_group_between_two_memberships_has_a_generation(engine: Engine) -> None:
    """Kafka's coordinator counts it, too: generation 5 is followed by 7, as in a consumer group."""
    classic = pair("range")
    classic = classic.edited(members=classic.members[:1], generation_id=7)
    modern = broker_group("consumer/uniform", [[0, 1, 2]])
    for group in (classic, modern):
        (only,) = group.members
        plan = kr.plan(group, None, [f"bounce-members={only.member_id}"], engine=engine)
        assert [one.generation_id for one in plan.rounds] == [(group.generation_id or 0) + 2]
        assert plan.final.generation_id == (group.generation_id or 0) + 2


def test_a_round_keeps_a_topic_whose_last_partition_moves() -> None:
    group = broker_group("share/simple", [[0, 1, 2, 3]])
    first = group.topics[0]
    topics = (first, replace(first, name="u", partitions=1, topic_id="AAAAAAAAAAEAAAAAAAAABw"))
    names = ("u", first.name)
    owned = (kr.TopicPartition("u", 0), *group.members[0].owned_partitions)
    member = replace(group.members[0], topics=names, owned_partitions=owned)
    plan = kr.plan(group.edited(topics=topics, members=(member,)), None, ["add-members=3"])
    kept = [one.owned_topics for one in plan.final.members if one.owned_topics]
    assert kept
    again = kr.GroupSpec.from_json(plan.final.to_json())
    assert [one.owned_topics for one in again.members if one.owned_topics] == kept
