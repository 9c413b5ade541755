# SPDX-License-Identifier: Apache-2.0
"""The texts of explanations, for groups whose explanations were once untrue or unclear."""

from __future__ import annotations

import pytest

import kafka_rebalance as kr
from kafka_rebalance import GroupSpec, Member, Topic, TopicPartition

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


@pytest.mark.parametrize(
    ("assignor", "text"),
    [
        (
            "kafka-python/range",
            "; Kafka's range gives it to the same member, and --assignor range shows its steps",
        ),
        (
            "librdkafka/range",
            (
                "; docs/behaviour/librdkafka.md describes them; Kafka's range gives it to the same "
                "member, and --assignor range shows its steps"
            ),
        ),
    ],
)
def test_an_assignor_without_explained_steps_says_where_they_are(assignor: str, text: str) -> None:
    steps = said((Member("a", ("t",)), Member("b", ("t",))), assignor, Topic("t", 2))
    assert steps == [f"  1. assignor: the steps of {assignor} are not explained here{text}"]


def test_kafkas_steps_are_not_offered_for_an_answer_that_differs() -> None:
    """librdkafka mixes static and dynamic members; Kafka's range sorts the static ones first."""
    members = (Member("a", ("t",)), Member("b", ("t",), group_instance_id="z"))
    (step,) = said(members, "librdkafka/range", Topic("t", 2))
    assert step.endswith("Kafka's range gives it to another member, so its steps "
                         "(--assignor range) are not these")  # fmt: skip
    group = GroupSpec("g", (Topic("t", 2),), members)
    assert T0 in kr.assign(group, "range")["b"]
    assert T0 in kr.assign(group, "librdkafka/range")["a"]


@pytest.mark.parametrize(
    ("assignor", "page"),
    [
        ("librdkafka/cooperative-sticky", "librdkafka.md"),
        ("consumer/uniform", "server-side.md"),
    ],
)
def test_other_assignors_are_on_their_pages(assignor: str, page: str) -> None:
    topic_id = "kBxzrTyqT9CWFMeWiOjlag"
    group = GroupSpec("g", (Topic("t", 2, topic_id=topic_id),), (Member("a", ("t",)),))
    text = "\n".join(kr.plan(group, assignor).explain("t-0"))
    assert f"not explained here; docs/behaviour/{page} describes them\n" in text
