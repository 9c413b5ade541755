# SPDX-License-Identifier: Apache-2.0
"""Patterns of KIP-848 that strangers chose: matched as `re` does, but in linear time."""

from __future__ import annotations

import random
import re

import pytest

from kafka_rebalance.coordinator.consumer_group.group import ConsumerGroup
from kafka_rebalance.coordinator.coordinator import Coordinator
from kafka_rebalance.coordinator.machine.events import (
    ClusterTopic,
    PatternsDue,
    Received,
    TopicsChanged,
)
from kafka_rebalance.java.regular_expressions import InvalidPattern, _translated, compiled
from kafka_rebalance.wire.broker_groups import ConsumerGroupHeartbeat

LONG = "a" * 249
"""A topic name of the greatest length."""
HARMFUL = [
    "(a*)*b",
    "(a|aa)+b",
    "(a|a?)+b",
    "((a+)+)+b",
    "(.*){1,100}b",
    "(a+a+)+b",
    "(a*)*" * 50 + "b",
]
ATOMS = (
    "a", "b", "A", "-", "_", "[ab]", "[^a]", ".", r"\d", r"\w", r"\W", r"\s", "[a-c]", "(?:ab|c)",
    "^", "$", r"\b", r"\Aa", r"c\z", "(?i:b)", "(?i:[^a])", "(?i:[A-B])", "[[:alpha:]]", r"[\d_-]",
    "(?s:.)", r"\Qa.b\E", "(?P<x>a)", "",
)  # fmt: skip
REPEATS = ("*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}", "*?", "+?", "??", "{0}")


@pytest.mark.parametrize("pattern", HARMFUL)
def test_patterns_that_take_long_elsewhere(pattern: str) -> None:
    """With `re`, each of these patterns would practically never end."""
    matcher = compiled(pattern)
    assert not matcher.matches(LONG)
    assert matcher.matches("a" * 248 + "b")


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("((a{100}){100}){100}", "the pattern has more than 10000 states"),
        ("(.{1,1000}){1,9}b", "the pattern has more than 10000 states"),
        ("(" * 5_000 + ")" * 5_000, "expression nests too deeply"),
    ],
)
def test_patterns_without_measure_are_refused(pattern: str, problem: str) -> None:
    with pytest.raises(InvalidPattern, match=problem):
        compiled(pattern)


def _drawn(rng: random.Random, depth: int) -> str:
    kind = rng.random() if depth else 0.0
    if kind < 0.3:
        return rng.choice(ATOMS)
    if kind < 0.55:
        return _drawn(rng, depth - 1) + _drawn(rng, depth - 1)
    if kind < 0.7:
        return f"({_drawn(rng, depth - 1)}|{_drawn(rng, depth - 1)})"
    return f"({_drawn(rng, depth - 1)}){rng.choice(REPEATS)}"


def test_random_patterns_match_as_with_re() -> None:
    rng = random.Random(1)
    matched = compared = 0
    while compared < 10_000:
        pattern = _drawn(rng, 4)
        try:
            matcher, other = compiled(pattern), re.compile(_translated(pattern), re.ASCII)
        except (InvalidPattern, re.error):
            continue  # two groups of one name
        for _ in range(10):
            name = "".join(rng.choices("abcA1-_. ", k=rng.randint(0, 7)))
            found = other.fullmatch(name) is not None
            assert matcher.matches(name) is found, (pattern, name)
            matched += found
            compared += 1
    assert 500 < matched < 9_500


def test_the_coordinator_resolves_a_harmful_pattern() -> None:
    coordinator = Coordinator()
    topics = (ClusterTopic(LONG, (1, 1), 1), ClusterTopic("aab", (1, 2), 1))
    coordinator.handle(TopicsChanged(topics, 1), 0)
    joins = ConsumerGroupHeartbeat(
        group_id="g", member_id="A", member_epoch=0, rebalance_timeout_ms=9_000,
        subscribed_topic_regex="(a*)*b", topic_partitions=(),
    )  # fmt: skip
    effects = coordinator.handle(Received(1, joins, api_version=1), 0)
    (due,) = [one for one in effects if isinstance(one, PatternsDue)]
    coordinator.handle(due, 0)
    group = coordinator.groups()["g"]
    assert isinstance(group, ConsumerGroup)
    assert list(group.counts) == ["aab"]
