# SPDX-License-Identifier: Apache-2.0
"""The sentences of explanations, for groups whose explanations were once untrue or unclear."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

import kafka_rebalance as kr
from kafka_rebalance import GroupSpec, Member, Topic, TopicPartition
from kafka_rebalance.assignors.python_libraries import PYTHON_LIBRARIES

if TYPE_CHECKING:
    pass

T0 = TopicPartition("t", 0)


def said(members: tuple[Member, ...], assignor: str, topic: Topic) -> list[str]:
    """Returns the explanation of t-0 in a plan of one round, without its first and last line."""
    plan = kr.plan(GroupSpec("g", (topic,), members), assignor, engine="reference")
    (heading, *steps), rounds = plan.explain("t-0"), len(plan.rounds)
    assert heading == "a rebalance without a change, round 1 (eager):"
    assert rounds == 1
    return steps[:-1]


def test_two_claims_of_one_generation_and_a_newer_one() -> None:
    """The newest claim is believed; in the constrained algorithm, nobody keeps the partition."""
    generations = {"a": 1, "b": 1, "c": 2}
    claimants = tuple(
        Member(m, ("t",), owned_partitions=(T0,), generation_id=g) for m, g in generations.items()
    )
    story = (
        "  1. claims: a claims it (generation 1); b claims it (generation 1, too), so that neither "
        "is believed; c claims it (generation 2, newer than generation 1) and is believed"
    )
    idle = Member("d", ("t", "u"))  # makes subscriptions differ
    assert said((*claimants, idle), "sticky", Topic("t", 1)) == [
        story,
        "  2. subscriptions: members subscribe to different topics: the general algorithm",
        "  3. keep: c keeps it for now",
        "  4. balance: balancing leaves it with c",
    ]
    assert said(claimants, "sticky", Topic("t", 1)) == [
        story,
        "  2. subscriptions: all subscribe to the same topics: the constrained algorithm",
        (
            "  3. keep: 1 partition to 3 members: 0 or 1 each; nobody keeps a partition that is "
            "claimed twice in one generation"
        ),
        "  4. to hand out: it is one of 1, for 3 members that may have one more",
        "  5. in turn: by id, the next is a, which may have one more",
    ]


def test_the_pass_without_racks_does_not_speak_of_racks() -> None:
    members = (Member("a", ("t",), rack_id="r1"), Member("b", ("t", "u"), rack_id="r1"))
    steps = said(members, "sticky", Topic("t", 2, (("r2",), ("r1",))))
    assert steps[2:] == [
        "  3. keep: it has no owner that could keep it",
        "  4. fewest first: no subscriber is near a replica or without a rack",
        "  5. fewest first: b has the fewest (0) of its subscribers, ties by id",
        "  6. balance: balancing leaves it with b",
    ]


def test_a_topic_to_which_racks_make_no_difference_takes_no_part_in_the_rack_pass() -> None:
    everywhere, split = Topic("t", 1, (("r1", "r2"),)), Topic("u", 2, (("r1",), ("r2",)))
    members = (Member("a", ("t",), rack_id="r1"), Member("b", ("u",), rack_id="r2"))
    plan = kr.plan(GroupSpec("g", (everywhere, split), members), "range", engine="reference")
    assert plan.explain("t-0")[1:] == [
        "  1. shares: t is shared out by itself: 1 partition to 1 member, 1 each",
        "  2. rack pass: t takes no part, because racks make no difference to it",
        "  3. ranges: a is number 1 in the order of ids, static members first, and has t-0",
        "  nobody -> a",
    ]


def test_a_partition_may_be_given_as_text() -> None:
    plan = kr.plan(GroupSpec("g", (Topic("t", 1),), (Member("a", ("t",)),)), "range")
    assert plan.explain("t-0") == plan.explain("t[0]") == plan.explain(T0)
    with pytest.raises(kr.GroupError, match="partition: there is no t-5, and no change makes it"):
        plan.explain("t-5")
    with pytest.raises(kr.GroupError, match='partition: "t" is not TOPIC-PARTITION, as payments-3'):
        plan.explain("t")


@pytest.mark.parametrize("assignor", ["kafka-python/range", "librdkafka/range"])
def test_an_assignor_with_kafkas_whole_answer_is_explained_by_its_steps(assignor: str) -> None:
    steps = said((Member("a", ("t",)), Member("b", ("t",))), assignor, Topic("t", 2))
    assert steps == [
        (
            f"  1. assignor: {assignor} has steps of its own; for this group, Kafka's range gives "
            "every member the same partitions in this round, by these steps"
        ),
        "  2. shares: t is shared out by itself: 2 partitions to 2 members, 1 each",
        "  3. ranges: a is number 1 in the order of ids, static members first, and has t-0",
    ]


def test_kafkas_steps_are_not_offered_for_an_answer_that_differs() -> None:
    """librdkafka mixes static and dynamic members; Kafka's range sorts the static ones first."""
    members = (Member("a", ("t",)), Member("b", ("t",), group_instance_id="z"))
    step, outcome = said(members, "librdkafka/range", Topic("t", 2))
    assert step.endswith("Kafka's range gives it to another member, so its steps "
                         "(--assignor range) are not these")  # fmt: skip
    assert outcome == (
        "  2. outcome: nobody claimed it; a, which claimed 0 partitions, gets it, and holds 1 "
        "afterwards; none of the 2 subscribers claimed fewer"
    )
    group = GroupSpec("g", (Topic("t", 2),), members)
    assert T0 in kr.assign(group, "range")["b"]
    assert T0 in kr.assign(group, "librdkafka/range")["a"]


def settled(assignor: str) -> GroupSpec:
    """Two members with three partitions each; all tested assignors keep this assignment."""
    topics = (Topic("t", 6, topic_id="kBxzrTyqT9CWFMeWiOjlag"),)
    members = tuple(
        Member(
            name,
            ("t",),
            owned_partitions=tuple(TopicPartition("t", p) for p in range(first, first + 3)),
            generation_id=3,
        )
        for name, first in (("a", 0), ("b", 3))
    )
    return GroupSpec("g", topics, members, assignor, 3)


def test_librdkafka_is_explained_by_its_own_steps() -> None:
    """A third member joins: the partition that it will get is withheld in the first round."""
    group = settled("librdkafka/cooperative-sticky")
    plan = kr.plan(group.edited(members=(*group.members, Member("c", ("t",)))))
    first, second = plan.rounds
    (tp,) = [one for one in first.withheld["c"] if one in first.revoked["a"]]
    lines = plan.explain(tp)
    assert lines[1] == "  1. claims: a (generation 3) claims it"
    assert lines[2] == "  2. keep: a keeps it for now"
    assert lines[3].startswith("  3. balance: a has 3, c ")
    assert lines[4] == (
        "  4. withhold: a may still be reading it: it is withheld from c in this round, and the "
        "next round assigns again"
    )
    assert lines[5] == "  a -> nobody"
    assert tp in second.gained["c"]


@pytest.mark.parametrize(
    ("library", "user_data", "generation"),
    [("kafka-python", "none", "generation 4"), ("aiokafka", "partitions", "no generation")],
)
def test_claims_are_those_that_the_librarys_class_reads(
    library: str, user_data: Literal["none", "partitions"], generation: str
) -> None:
    """Kafka's sticky cannot read kafka-python's user data; the library's own class reads them."""
    owned = tuple(TopicPartition("t", p) for p in range(6))
    member = Member(
        "m",
        ("t",),
        owned_partitions=owned,
        generation_id=4,
        subscription_version=0,
        user_data=user_data,
        client_library=library,
    )
    group = GroupSpec("g", (Topic("t", 6),), (member,), f"{library}/sticky", 4)
    assert read_by_the_class(library, member) == (set(owned), 4 if generation[-1] == "4" else -1)
    text = kr.plan(group).explain("t-5")
    assert f"  2. claims: m claims it ({generation})" in text
    assert "from the claims that this class reads" in text[1]
    assert "m keeps it" in text[4]


def read_by_the_class(library: str, member: Member) -> tuple[set[TopicPartition], int]:
    """Returns the claims and the generation that the class reads from the member's bytes."""
    package = {"kafka-python": "kafka", "aiokafka": "aiokafka"}[library]
    module = f"{package}.coordinator.assignors.sticky.sticky_assignor"
    made = pytest.importorskip(module).StickyPartitionAssignor
    sent = PYTHON_LIBRARIES[f"{library}/sticky"]._library.sends(made, member)
    read = made.parse_member_metadata(sent)
    return {TopicPartition(*tp) for tp in read.partitions}, read.generation
