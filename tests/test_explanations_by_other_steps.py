# SPDX-License-Identifier: Apache-2.0
"""Explanations by another assignor's steps name the owners in the rounds of a plan."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import pytest

import kafka_rebalance as kr
from kafka_rebalance import GroupSpec, Member, Topic, TopicPartition
from kafka_rebalance.explain import facts
from kafka_rebalance.explain.facts import Fact
from kafka_rebalance.explain.reasons import reasons
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.plans.rounds import Round, subscribed_partitions

LIKE = {
    "librdkafka/range": "range",
    "kafka-python/range": "range",
    "kafka-python/sticky": "sticky",
    "kafka-python/cooperative-sticky": "cooperative-sticky",
    "aiokafka/roundrobin": "roundrobin",
}
"""An assignor -> Kafka's classic assignor with the most similar rule."""


def holders(owned: Mapping[str, Sequence[TopicPartition]], tp: TopicPartition) -> list[str]:
    return [member_id for member_id, theirs in owned.items() if tp in theirs]


def named(fact: Fact) -> str:
    """Returns the owner that the last fact of an explanation names."""
    return str(getattr(fact, "destination", None) or getattr(fact, "member_id", None))


def random_rounds(assignor: str, plans: int) -> Iterator[Round]:
    """Yields the rounds of plans in which one or two members join."""
    for seed in range(plans):
        rng = random.Random(seed)
        topics = tuple(
            Topic(f"t{n}", rng.randint(1, 6), topic_id=f"kBxzrTyqT9CWFMeWiOj{n}ag")
            for n in range(rng.randint(1, 3))
        )
        subscription = tuple(topic.name for topic in topics)
        owned: list[list[TopicPartition]] = [[] for _ in range(rng.randint(2, 4))]
        everything = [TopicPartition(t.name, p) for t in topics for p in range(t.partitions)]
        rng.shuffle(everything)
        for n, tp in enumerate(everything):
            owned[n % len(owned) if rng.random() < 0.8 else rng.randrange(len(owned))].append(tp)
        members = tuple(
            Member(f"m{n}", subscription, owned_partitions=tuple(sorted(own)), generation_id=3)
            for n, own in enumerate(owned)
        )
        group = GroupSpec("g", topics, members, assignor, 3)
        for step in kr.plan(group, changes=[f"add-members={rng.randint(1, 2)}"]).steps:
            yield from step.rounds


def judge(one: Round, assignor: str, tp: TopicPartition) -> str:
    """Compares the explanation of a partition with the round; returns the kind of the case."""
    first, *steps = reasons(one.group, assignor, tp)
    owners, its = holders(one.assignment, tp), kr.assign(one.group, LIKE[assignor])
    mine = kr.assign(one.group, assignor)
    alike = all(set(mine[member_id]) == set(its[member_id]) for member_id in mine)
    if not owners:
        assert isinstance(first, facts.GivenToNobody)
        assert not steps
        named_by_its = [named(reasons(one.group, LIKE[assignor], tp)[-1])]
        return (
            "withheld, alike" if alike and holders(one.withheld, tp) != named_by_its else "withheld"
        )
    eager = LIKE[assignor] != "cooperative-sticky"
    assert isinstance(first, facts.Alike if alike else facts.Unknown if eager else facts.NotAlike)
    assert [named(steps[-1])] == owners
    if not alike:
        (outcome,) = steps
        assert isinstance(outcome, facts.Outcome)
        judge_outcome(one, tp, outcome)
    return "alike" if alike else "not alike"


def judge_outcome(one: Round, tp: TopicPartition, told: facts.Outcome) -> None:
    """Compares the fact with the round: claims before, owner and its number of partitions after."""
    claims = Assignment.owned(one.group)
    assert list(told.had) == holders(claims, tp)
    assert told.claimed == len(claims[told.member_id])
    assert told.holds == len(one.assignment[told.member_id])
    with_fewer = [m for m, owned in claims.items() if len(owned) < told.claimed]
    assert (told.fewer, told.subscribers) == (len(with_fewer), len(one.group.members))
    text = str(told)
    assert ("keeps it" in text) == (told.member_id in told.had)
    assert ("nobody claimed it" in text) == (not told.had)


KINDS = {
    "librdkafka/range": {"alike"},
    "kafka-python/range": {"alike"},
    "kafka-python/sticky": {"alike", "not alike"},
    "kafka-python/cooperative-sticky": {"alike", "not alike", "withheld", "withheld, alike"},
    "aiokafka/roundrobin": {"alike"},
}
"""The kinds of cases that occur among members that all subscribe to the same topics."""


@pytest.mark.parametrize("assignor", LIKE)
def test_the_steps_of_another_assignor_name_the_owner_of_the_round(assignor: str) -> None:
    """A withheld partition is explained without steps: some would name a wrong owner."""
    seen: Counter[str] = Counter()
    for one in random_rounds(assignor, 60):
        for tp in subscribed_partitions(one.group):
            seen[judge(one, assignor, tp)] += 1
    assert set(seen) == KINDS[assignor]


@pytest.mark.parametrize("assignor", ["balanced", "weighted", "balanced?prefer=topics,moves,rack"])
def test_a_round_that_gives_what_was_withheld_is_explained_by_that_answer(assignor: str) -> None:
    """`balanced` and `weighted` do not compute again: another computation has other ties."""
    explained = 0
    for seed in range(150):
        rng = random.Random(seed)
        names = tuple("abcdefgh"[: rng.randint(2, 8)])
        topics = tuple(Topic(name, rng.randint(1, 9)) for name in names)
        lists = [tuple(rng.sample(names, rng.randint(1, len(names)))) for _ in range(5)]
        owned: list[list[TopicPartition]] = [[] for _ in lists]
        for topic in topics:
            for partition in range(topic.partitions):
                if readers := [m for m, subscribed in enumerate(lists) if topic.name in subscribed]:
                    owned[rng.choice(readers)].append(TopicPartition(topic.name, partition))
        members = tuple(
            Member(f"m{m}", lists[m], owned_partitions=tuple(owned[m]), generation_id=3)
            for m in range(len(lists))
        )
        plan = kr.plan(
            GroupSpec("g", topics, members, assignor, 3),
            changes=[f"add-members={rng.randint(1, 5)}"],
        )
        for tp in {tp for one in plan.rounds[1:] for got in one.gained.values() for tp in got}:
            *_, said, end = plan.explain(tp)
            assert f"{end.split(' -> ')[1]}, which claimed" in said
            explained += 1
    assert explained > 150
