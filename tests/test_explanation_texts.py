# SPDX-License-Identifier: Apache-2.0
"""The texts of explanations, for groups whose explanations were once untrue or unclear."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

import kafka_rebalance as kr
from kafka_rebalance import GroupSpec, Member, Topic, TopicPartition
from kafka_rebalance.assignors.python_libraries import PYTHON_LIBRARIES
from kafka_rebalance.plans.explanation import partition_from_text
from kafka_rebalance.plans.reasons import reasons

if TYPE_CHECKING:
    from tests.support.oracle import Oracle

T0 = TopicPartition("t", 0)


def said(members: tuple[Member, ...], assignor: str, topic: Topic) -> list[str]:
    """Returns the explanation of t-0 in a plan of one round, without its first and last line."""
    plan = kr.plan(GroupSpec("g", (topic,), members), assignor, engine="reference")
    (heading, *steps), rounds = plan.explain("t-0"), len(plan.rounds)
    assert heading == "rebalance as it is, round 1 (eager):"
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
        "  3. ranges: a is number 1 in the order of ids, static members first, and has t[0]",
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
        "  3. ranges: a is number 1 in the order of ids, static members first, and has t[0]",
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


LIKE = {
    "librdkafka/cooperative-sticky": ("cooperative-sticky", "librdkafka.md"),
    "consumer/range": ("range", "server-side.md"),
}
"""An assignor -> Kafka's classic one that is most like it, and the page that describes it."""


def settled(assignor: str) -> GroupSpec:
    """Two members with three partitions each, as all these assignors leave them."""
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


@pytest.mark.parametrize("assignor", LIKE)
def test_an_equal_answer_of_kafkas_is_explained_by_its_steps(assignor: str) -> None:
    kafkas, _ = LIKE[assignor]
    text = kr.plan(settled(assignor)).explain("t-2")
    its = kr.plan(settled(assignor), kafkas).explain("t-2")
    assert f"Kafka's {kafkas} gives every member the same partitions in this round" in text[1]
    assert [line.partition(". ")[2] for line in text[2:-1]] == [
        line.partition(". ")[2] for line in its[1:-1]
    ]
    assert text[-1] == its[-1] == "  a -> a"


@pytest.mark.oracle
def test_javas_class_gives_the_answer_that_is_called_equal(oracle: Oracle) -> None:
    group = settled("librdkafka/cooperative-sticky").edited(assignor="cooperative-sticky")
    answer = oracle.ask(group.to_dict())["assignment"]
    mine = kr.assign(group, "librdkafka/cooperative-sticky").to_dict()
    assert {m: sorted(owned) for m, owned in answer.items()} == mine


def test_other_answers_are_not_explained_by_kafkas_steps() -> None:
    """A third member: librdkafka and Kafka's class take other partitions from the two."""
    group = settled("librdkafka/cooperative-sticky")
    group = group.edited(members=(*group.members, Member("c", ("t",))))
    lines = kr.plan(group).explain("t-2")
    assert lines[1] == (
        "  1. assignor: librdkafka/cooperative-sticky has steps of its own "
        "(docs/behaviour/librdkafka.md), and for this group Kafka's cooperative-sticky makes "
        "another assignment, so its steps (--assignor cooperative-sticky) do not explain this owner"
    )
    assert kr.assign(group) != kr.assign(group, "cooperative-sticky")


def test_a_withheld_partition_is_not_explained_by_steps_that_name_another_member() -> None:
    """All answers are equal, but the two assignors withhold t-3 from different members."""
    assignor = "librdkafka/cooperative-sticky"
    owned = {"m0": ("t-3", "t-4", "u-0", "v-0"), "m1": ("t-2", "t-5"), "m2": ("t-0", "t-1")}
    members = tuple(
        Member(
            name,
            ("t", "u", "v"),
            owned_partitions=tuple(partition_from_text(one) for one in theirs),
            generation_id=3,
        )
        for name, theirs in owned.items()
    )
    topics = (Topic("t", 6), Topic("u", 1), Topic("v", 1))
    plan = kr.plan(GroupSpec("g", topics, members, assignor, 3), changes=["add-members=2"])
    first, second = plan.rounds
    kafkas = kr.assign(first.group, "cooperative-sticky")
    assert {m: set(own) for m, own in kafkas.items()} == {
        m: set(own) for m, own in first.assignment.items()
    }
    (new,) = [m for m, own in first.withheld.items() if TopicPartition("t", 3) in own]
    withheld = str(reasons(first.group, "cooperative-sticky", TopicPartition("t", 3))[-1])
    assert "it is withheld from m" in withheld
    assert new not in withheld
    assert TopicPartition("t", 3) in second.gained[new]
    assert plan.explain("t-3")[1:3] == [
        (
            "  1. assignor: librdkafka/cooperative-sticky has steps of its own "
            "(docs/behaviour/librdkafka.md); it gives the partition to nobody in this round, "
            "because the member that is to lose it may still be reading it, and the next round "
            "assigns again"
        ),
        "  m0 -> nobody",
    ]


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
    """Returns the claims and the generation that the class reads from what the member sends."""
    package = {"kafka-python": "kafka", "aiokafka": "aiokafka"}[library]
    module = f"{package}.coordinator.assignors.sticky.sticky_assignor"
    made = pytest.importorskip(module).StickyPartitionAssignor
    sent = PYTHON_LIBRARIES[f"{library}/sticky"]._library.sends(made, member)
    read = made.parse_member_metadata(sent)
    return {TopicPartition(*tp) for tp in read.partitions}, read.generation
