# SPDX-License-Identifier: Apache-2.0
"""`describe` names the cause of an uneven group, and only if it is the cause."""

from __future__ import annotations

import random
import re

import pytest

import kafka_rebalance as kr
from kafka_rebalance.present.description import describe
from tests.test_labels import GROUPS

MOVES = re.compile(r"; a fullest member of \d+ is \d+ moves? away$")


def cause(group: kr.GroupSpec) -> str | None:
    """Returns the cause in the finding "uneven"; "" if it names none, None without a finding."""
    found = [one.text for one in describe(group).findings if one.kind == "uneven"]
    return None if not found else MOVES.sub("", found[0].partition("; the cause: ")[2])


def settled(assignor: str, counts: dict[str, int], topics_of: dict[str, str]) -> kr.GroupSpec:
    """Returns a group that owns what its assignor answers; a topic's name is a letter."""
    topics = tuple(kr.Topic(name, count) for name, count in counts.items())
    members = tuple(kr.Member(name, tuple(of), generation_id=1) for name, of in topics_of.items())
    group = kr.GroupSpec("g", topics, members, assignor, 1)
    return group.owning(kr.assign(group, assignor), generation_id=1)


def test_range_gives_the_first_members_more_of_every_topic() -> None:
    assert cause(GROUPS["j-uneven"]) == (
        "range shares out each topic by itself, and the first members by id (static ones first) "
        "have one partition more of each of 3 topics"
    )


@pytest.mark.parametrize("assignor", ["range", "librdkafka/range", "kafka-python/range"])
def test_the_cause_names_the_library_of_the_assignor(assignor: str) -> None:
    group = settled(assignor, {"a": 3, "b": 3}, {"x": "ab", "y": "ab"})
    assert cause(group) == (
        f"{assignor} shares out each topic by itself, and the first members by id (static ones "
        "first) have one partition more of each of 2 topics"
    )


def test_members_that_subscribe_to_different_topics() -> None:
    both = settled("range", {"a": 4, "b": 4}, {"x": "ab", "y": "b"})
    assert cause(both) == (
        "range shares out each topic by itself, and members subscribe to different topics"
    )
    turns = settled("roundrobin", {"a": 4, "b": 4}, {"x": "ab", "y": "b"})
    assert cause(turns) == (
        "members subscribe to different topics, and roundrobin passes over members without a "
        "topic, and counts nobody's partitions"
    )


def test_owners_that_the_assignor_would_not_choose() -> None:
    group = settled("sticky", {"a": 4}, {"x": "a"})
    joined = group.edited(members=(*group.members, kr.Member("y", ("a",))))
    assert cause(joined) == (
        "the owners are not what sticky answers now: the next rebalance makes it 2"
    )
    grown = settled("range", {"a": 3}, {"x": "a", "y": "a"}).edited(topics=(kr.Topic("a", 6),))
    assert cause(grown) == (
        "the owners are not what range answers now: the next rebalance makes it 3"
    )


def test_owners_are_not_the_cause_if_the_next_rebalance_does_not_help() -> None:
    """The recorded group, in which two other members own the partitions: range makes it 0-3 too."""
    group = GROUPS["j-uneven"]
    others = dict(zip(("ju-1", "ju-2"), ("ju-3", "ju-4"), strict=True))
    whole = {member.client_id: member for member in group.members}
    swapped = {whole[other].member_id: whole[one].owned_partitions for one, other in others.items()}
    group = group.owning(swapped, generation_id=2)
    assert kr.plan(group).moves == 6
    assert cause(group) == (
        "range shares out each topic by itself, and some members have one partition more of each "
        "of 3 topics"
    )
    # After the rebalance, this group is as uneven as before, and no rule fits its partitions.
    grown = settled("range", {"a": 3, "b": 3}, {"x": "ab", "y": "ab"}).edited(
        topics=(kr.Topic("a", 3), kr.Topic("b", 7))
    )
    assert cause(grown) == ""


def test_a_group_as_even_as_possible_has_no_cause() -> None:
    assert cause(settled("range", {"a": 5}, {"x": "a", "y": "a"})) is None


def test_the_claims_about_range_are_true_of_random_groups() -> None:
    """Counts the partitions of each topic again, from the assignment alone."""
    rng = random.Random(5)
    seen = set()
    for _ in range(300):
        names = "abc"[: rng.randint(1, 3)]
        counts = {name: rng.randint(1, 6) for name in names}
        ids = sorted(f"m{n}" for n in range(rng.randint(2, 4)))
        topics_of = {one: "".join(rng.sample(names, rng.randint(1, len(names)))) for one in ids}
        group = settled("range", counts, topics_of)
        text = cause(group)
        if text is None:
            continue
        held = kr.Assignment.owned(group)
        more = 0
        for name in {*"".join(topics_of.values())}:
            of = [one for one in ids if name in topics_of[one]]
            numbers = [sum(tp.topic == name for tp in held[one]) for one in of]
            assert numbers == sorted(numbers, reverse=True)
            more += numbers[0] > numbers[-1]
        different = len({frozenset(of) for of in topics_of.values()}) > 1
        assert ("different topics" in text) == different
        assert (f"each of {more} topics" in text) == (more > 1)
        assert ("of one topic" in text) == (more == 1)
        seen.add((different, min(more, 2)))
    assert {(False, 2), (True, 0), (True, 1), (True, 2)} <= seen
