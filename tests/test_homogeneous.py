# SPDX-License-Identifier: Apache-2.0
"""`consumer/uniform` on groups that are larger than the generated ones, with equal subscriptions.

The core sorts a member's new target by the slots of Java's tables, and makes the tables only where
a slot may become a tree. These groups have long rows of partitions, also beyond 65,535, and many
topics, whose ids often share one hash. Members join and leave, topics come, grow and are left.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

import kafka_rebalance as kr
from tests.support.generate_sent import group_of
from tests.support.generate_server import topic_id
from tests.support.oracle import Oracle
from tests.support.seeds import Seeds
from tools.judge import ENGINES

Group = dict[str, Any]
Answer = dict[str, list[list[Any]]]


def _rounds(
    rng: random.Random, most_topics: int, sizes: tuple[int, int], oracle: Oracle
) -> Iterator[tuple[Group, Answer]]:
    """Yields the groups of some rounds, each with Kafka's answer, from which the next begins."""
    hashes = rng.choice([1, 3, 12])
    topics = {f"t{i}": rng.randint(*sizes) for i in range(rng.randint(1, most_topics))}
    members = [f"m{i}" for i in range(rng.randint(1, 12))]
    owned: Answer = {}
    for _ in range(rng.randint(2, 4)):
        group = _group(rng, topics, members, owned, hashes)
        owned = oracle.ask(group)["assignment"]
        yield group, owned
        members = [m for m in members if rng.random() < 0.8] or members[:1]
        members += [f"n{rng.randrange(10**6)}" for _ in range(rng.randint(0, 3))]
        for name in [*topics]:
            topics[name] += rng.choice([0, 0, 0, 1, 30])
        for _ in range(rng.randint(0, 2)):
            topics[f"u{rng.randrange(10**6)}"] = rng.randint(*sizes)


def _group(
    rng: random.Random,
    topics: dict[str, int],
    members: list[str],
    owned: Answer,
    hashes: int,
) -> Group:
    subscribed = [name for name in topics if rng.random() < 0.95] or [*topics]
    return {
        "group_id": "g",
        "assignor": "consumer/uniform",
        "topics": [
            {"name": name, "partitions": count, "topic_id": topic_id(name, hashes)}
            for name, count in topics.items()
        ],
        "members": [
            {"member_id": m, "topics": subscribed, "owned_partitions": _owned(owned.get(m, []))}
            for m in members
        ],
    }


def _owned(pairs: list[list[Any]]) -> list[dict[str, Any]]:
    lists: dict[str, list[int]] = {}
    for topic, partition in pairs:
        lists.setdefault(topic, []).append(partition)
    return [{"topic": topic, "partitions": numbers} for topic, numbers in lists.items()]


@pytest.mark.seeds(quick=4, whole=4)
@pytest.mark.parametrize(
    ("most_topics", "sizes"),
    [(30, (1, 3)), (120, (1, 12)), (30, (20, 200)), (1, (65_500, 65_560))],
)
def test_large_groups_are_answered_as_by_kafka(
    most_topics: int, sizes: tuple[int, int], seeds: Seeds, server_oracle: Oracle
) -> None:
    for seed in seeds:
        rounds = list(_rounds(random.Random(seed), most_topics, sizes, server_oracle))
        for number, (group, expected) in enumerate(rounds, 1):
            # Rows of 65,536 take the reference seconds, so it answers only the last round.
            is_last = number == len(rounds)
            for engine in ENGINES if is_last or most_topics > 1 else ("rust",):
                answer = kr.assign(group_of(group), engine=engine)
                assert answer.to_dict() == expected, engine
