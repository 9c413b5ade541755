# SPDX-License-Identifier: Apache-2.0
"""Brute force, proofs and both engines agree on the best balance and its fewest moves."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

import kafka_rebalance as kr
from kafka_rebalance import GroupSpec, Member, Topic, TopicPartition
from kafka_rebalance.assignors.balance.flow import UNLIMITED, Flow
from kafka_rebalance.plans import best_possible
from tests.support.plan_checks import brute_force, check_witnesses


def small_group(rng: random.Random) -> GroupSpec:
    """Makes a random group with at most 20,000 assignments, few enough for brute force.

    In every sixth group each member reads one topic, and no two topics are of one size: so many
    groups have the most levels that are possible.
    """
    while True:
        alone = rng.random() < 1 / 6
        sizes = rng.sample(range(5), 4) if alone else [rng.randint(0, 4) for _ in range(4)]
        topics = tuple(Topic(f"t{n}", sizes[n]) for n in range(rng.randint(1, 4)))
        members = [
            [
                f"m{n}",
                [topics[n % len(topics)].name]
                if alone
                else [t.name for t in topics if rng.random() < 0.6],
            ]
            for n in range(rng.randint(1, 5))
        ]
        if rng.random() < 0.2:
            members.append(["twin", list(members[0][1])])
        choices = 1
        for topic in topics:
            choices *= (
                max(1, sum(topic.name in topics for _, topics in members)) ** topic.partitions
            )
        if choices <= 20_000:
            break
    owned: dict[str, list[TopicPartition]] = {str(name): [] for name, _ in members}
    for topic in topics:
        for partition in range(topic.partitions + (rng.random() < 0.1)):
            for _ in range(rng.choice([0, 1, 1, 1, 1, 2])):
                owner = str(rng.choice(members)[0])
                owned[owner].append(TopicPartition(topic.name, partition))
    return GroupSpec(
        "small",
        topics,
        tuple(
            Member(
                str(name),
                tuple(topics),
                owned_partitions=tuple(owned[str(name)]),
                generation_id=rng.choice([None, 1, 2, 2, 2]),
            )
            for name, topics in members
        ),
    )


@pytest.mark.soak
def test_five_thousand_small_groups_equal_brute_force() -> None:
    rng = random.Random(7)
    levels = 0
    for _ in range(5000):
        group = small_group(rng)
        possible = best_possible(group)
        found = (sorted(possible.assignment.counts(), reverse=True), possible.least_moves)
        assert found == brute_force(group), group
        check_witnesses(group, possible)
        levels = max(levels, len(possible.levels))
    assert levels >= 4


def test_both_engines_say_the_same() -> None:
    rng = random.Random(8)
    for _ in range(1000):
        group = small_group(rng)
        assert best_possible(group) == best_possible(group, engine="reference")


@pytest.mark.parametrize("subscriptions", ["same", "buckets", "random"])
def test_larger_groups_have_sound_witnesses(subscriptions: str) -> None:
    rng = random.Random(subscriptions)
    names = [f"t{n}" for n in range(20)]
    topics = tuple(Topic(name, rng.randint(1, 40)) for name in names)
    members = []
    for n in range(60):
        chosen = {"same": names, "buckets": names[n % 4 :: 4], "random": rng.sample(names, 3)}
        owned = tuple(
            TopicPartition(topic.name, p)
            for topic in topics
            for p in range(topic.partitions)
            if p % 60 == (n * 7) % 60
        )
        members.append(Member(f"m{n}", tuple(chosen[subscriptions]), owned_partitions=owned))
    group = GroupSpec("larger", topics, tuple(members))
    check_witnesses(group, best_possible(group))


def test_wrong_witnesses_are_refused() -> None:
    """`check_witnesses` finds a false proof."""
    group = GroupSpec("g", (Topic("t", 4),), (Member("a", ("t",)), Member("b", ("t",))))
    possible = best_possible(group)
    check_witnesses(group, possible)
    uneven = kr.Assignment.of({"a": [TopicPartition("t", p) for p in range(4)], "b": []})
    for wrong in (
        replace(possible, least_moves=3),
        replace(possible, assignment=uneven, balance=uneven.balance),
        replace(possible, topic_prices={"t": -1}),
        replace(possible, levels=(replace(possible.levels[0], load=3),)),
    ):
        with pytest.raises(AssertionError):
            check_witnesses(group, wrong)


def test_nobody_subscribes() -> None:
    group = GroupSpec("g", (Topic("t", 4),), (Member("a", ()), Member("b", ("unknown",))))
    possible = best_possible(group)
    assert possible.assignment.counts() == [0, 0]
    assert possible.least_moves == 0
    assert possible.reasons() == ["nothing is left for 2 members"]


def test_the_flow_uses_the_cheapest_arcs() -> None:
    """Of two units of flow, one fills the free arc; the other has to use the arc with a cost."""
    flow = Flow(4)
    free = flow.add(0, 1, 1)
    flow.add(0, 2, 1)
    flow.add(1, 3, UNLIMITED)
    paid = flow.add(2, 3, UNLIMITED, 5)
    assert flow.cheapest(0, 3) == 5
    assert (flow.sent(free), flow.sent(paid)) == (1, 1)
