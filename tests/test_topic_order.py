# SPDX-License-Identifier: Apache-2.0
"""The Python libraries list topics in the order of a set, which their sticky classes read."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from dataclasses import replace
from itertools import permutations, product

import pytest

import kafka_rebalance as kr
from kafka_rebalance import GroupSpec, Member, Topic, TopicPartition
from kafka_rebalance.assignors.python_libraries import PYTHON_LIBRARIES
from kafka_rebalance.assignors.registry import BUILT_IN, SERVER_SIDE
from kafka_rebalance.plans.leaders import plans_by_leader
from kafka_rebalance.plans.samples import NEW
from tests.support.waiting import FAR_S

pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")
pytest.importorskip("aiokafka", reason="aiokafka is not installed: pip install -e '.[aiokafka]'")

READ_THE_ORDER = {"kafka-python/sticky", "aiokafka/sticky"}
LISTS = """
import asyncio
from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor as Other
from kafka.consumer.subscription_state import SubscriptionState
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

async def main():
    names = ("orders", "payments")
    state = SubscriptionState()
    state.subscribe(names)
    joined = set(state.subscription)  # as ConsumerCoordinator.group_protocols
    consumer = AIOKafkaConsumer(*names)
    listed = (
        StickyPartitionAssignor().metadata(joined).topics,
        Other.metadata(consumer._subscription.subscription.topics).subscription,
        CooperativeStickyAssignor().metadata(joined).topics,
    )
    print(" ".join(topics[0] for topics in listed))

asyncio.run(main())
"""


def test_the_order_differs_between_processes() -> None:
    """With eight seeds of Python's hashes, both orders occur; kafka-python's cooperative-sticky
    sorts.
    """
    runs = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", LISTS],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for seed in range(8)
    ]
    first = [one.communicate(timeout=FAR_S)[0].split() for one in runs]
    sticky, aiokafkas, cooperative = (set(column) for column in zip(*first, strict=True))
    assert sticky == aiokafkas == {"orders", "payments"}
    assert cooperative == {"orders"}


def answers(assignor: str, seed: int) -> set[frozenset[tuple[str, frozenset[TopicPartition]]]]:
    """Returns the answers to a random group, over all orders of topics in one subscription."""
    rng = random.Random(seed)
    topics = tuple(Topic(f"t{n}", rng.randint(1, 6)) for n in range(rng.randint(2, 3)))
    names = tuple(topic.name for topic in topics)
    equal = rng.random() < 0.8
    members = []
    for n in range(rng.randint(1, 4)):
        own = rng.sample(names, len(names) if equal else rng.randint(1, len(names)))
        members.append(Member(f"m{n}", tuple(own), subscription_version=0))
    for topic in topics:
        for p in range(topic.partitions):
            n = rng.randrange(len(members))
            if topic.name in members[n].topics:
                held = (*members[n].owned_partitions, TopicPartition(topic.name, p))
                members[n] = replace(members[n], owned_partitions=held, generation_id=3)
    found = set()
    for order in permutations(names):
        new = Member("new", order, subscription_version=0)
        group = GroupSpec("g", topics, (*members, new), assignor)
        try:
            answer = kr.assign(group)
        except kr.AssignorThrows:
            continue
        found.add(frozenset((one, frozenset(owned)) for one, owned in answer.items()))
    return found


@pytest.mark.parametrize("assignor", sorted({*BUILT_IN, *PYTHON_LIBRARIES} - {*SERVER_SIDE}))
def test_which_answers_depend_on_the_order(assignor: str) -> None:
    several = sum(len(answers(assignor, seed)) > 1 for seed in range(60))
    assert (several > 0) == (assignor in READ_THE_ORDER)


def group_of(library: str | None = "kafka-python", members: int = 1) -> GroupSpec:
    """Returns a group on orders and payments, in which all members list payments first."""
    topics = (Topic("payments", 6), Topic("orders", 6))
    everything = [TopicPartition(name, p) for name in ("orders", "payments") for p in range(6)]
    return GroupSpec(
        "s",
        topics,
        tuple(
            Member(
                f"m-{n}",
                ("payments", "orders"),
                client_id="m",
                owned_partitions=tuple(everything[n::members]),
                generation_id=4,
                subscription_version=0,
                client_library=library,
            )
            for n in range(members)
        ),
        "kafka-python/sticky",
        4,
    )


def test_the_draws_of_a_plan_have_both_answers_of_the_class() -> None:
    """In one answer, the new member takes the topic that the plan leaves where it was."""
    group = group_of()
    plan = kr.plan(group, changes=["add-members=1"])
    assert plan.topics_guessed
    new = plan.newcomers[0].member_id
    for order in (("payments", "orders"), ("orders", "payments")):
        joined = Member(new, order, client_id="m", subscription_version=0)
        taken = kr.assign(group.edited(members=(*group.members, joined)))[new]
        drawn = plan.sample().ends
        assert {tp for tp, ends in drawn.items() if ends[NEW]} >= {*taken}
        assert {tp.topic for tp in taken} == {order[0]}
    samples = plan.sample()
    assert len(samples.depends) == 12
    assert samples.to_dict()["varied"] == ["uuid", "topic_order"]


@pytest.mark.parametrize("change", ["add-members=1", "bounce-members=m-0", "bounce-members"])
def test_members_in_new_processes_list_anew(change: str) -> None:
    plan = kr.plan(group_of(members=3), changes=[change])
    orders = {member.topics for member in plan.final.members}
    assert orders == {("payments", "orders")}, "the plan itself keeps the order of the line"
    assert plan.topics_guessed
    assert plan.has_guesses
    assert plan.sample().topics_guessed


def test_a_static_member_lists_anew_without_a_rebalance() -> None:
    """The member's new subscription counts only in the next rebalance."""
    group = group_of(members=2)
    static = tuple(replace(one, group_instance_id=one.member_id) for one in group.members)
    plan = kr.plan(group.edited(members=static), changes=["bounce-members=m-0", "remove-members=1"])
    assert len(plan.rounds) == 1
    assert plan.topics_guessed


@pytest.mark.parametrize("change", ["resubscribe=orders,payments", "add-topics=audit=2"])
def test_only_new_subscriptions_are_listed_anew(change: str) -> None:
    group = group_of(members=3)
    plan = kr.plan(group, changes=[change])
    assert plan.topics_guessed == change.startswith("add-topics")
    alone = group.edited(members=tuple(replace(m, topics=("orders",)) for m in group.members))
    assert kr.plan(alone, changes=[change]).topics_guessed


def test_a_switch_to_such_a_class_restarts_all_members() -> None:
    group = group_of(None, members=3).edited(assignor="range")
    assert not kr.plan(group, changes=["add-members=1"]).topics_guessed
    switched = kr.plan(group, changes=["switch-assignor=kafka-python/sticky"])
    assert switched.topics_guessed
    assert switched.sample().to_dict()["varied"] == ["uuid", "topic_order"]


@pytest.mark.parametrize("old", ["sticky", "range"])
def test_members_that_switch_from_plug_ins_list_anew(old: str) -> None:
    """Plug-ins send Java's bytes, and sort; with the class itself, these members list sets."""
    group = group_of("java").edited(assignor=old)
    assert not kr.plan(group, changes=["add-members=1"]).topics_guessed
    switch = "switch-assignor=kafka-python/sticky"
    assert kr.plan(group, changes=[switch]).topics_guessed
    plan = kr.plan(group, changes=[switch, "add-members=1"])
    new = plan.newcomers[-1].member_id
    before = plan.steps[-1].before
    stays, joined = before.members
    assert joined.member_id == new
    drawn, answers_of_class = plan.sample(32).ends, set()
    for orders in product(permutations(stays.topics), repeat=2):
        (present, joins) = (
            replace(one, topics=order) for one, order in zip((stays, joined), orders, strict=True)
        )
        taken = kr.assign(before.edited(members=(present, joins)))[new]
        assert {tp for tp, ends in drawn.items() if ends[NEW]} >= {*taken}
        answers_of_class.add(frozenset(taken))
    assert len(answers_of_class) > 1


@pytest.mark.parametrize("old", ["sticky", "range"])
def test_an_explicit_assignor_counts_as_a_switch(old: str) -> None:
    group = group_of("java", members=2).edited(assignor=old)
    assert kr.plan(group, "kafka-python/sticky", ["add-members=1"]).topics_guessed


def test_plug_ins_beside_a_leader_with_the_class_still_sort() -> None:
    """The leader's class does not change the classes of other members."""
    group = replace(group_of("java", members=2).edited(assignor="sticky"), leader="m-1")
    mine = replace(group.members[1], client_library="kafka-python")
    group = group.edited(members=(group.members[0], mine))
    found = plans_by_leader(group, ["bounce-members=m-0"])
    (led,) = (one for one in found if one.assignor == "kafka-python/sticky")
    assert led.plan is not None
    assert not led.plan.topics_guessed


@pytest.mark.parametrize("library", ["java", "librdkafka"])
def test_libraries_that_sort_are_not_drawn(library: str) -> None:
    assert not kr.plan(group_of(library), changes=["add-members=1"]).topics_guessed


def test_one_topic_has_one_order() -> None:
    group = group_of()
    one = group.edited(members=(replace(group.members[0], topics=("orders",)),))
    assert not kr.plan(one, changes=["add-members=1"]).topics_guessed


def test_the_printed_plan_names_what_was_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    from kafka_rebalance.report.plans.plan import names_in_plan, print_plan

    plan = kr.plan(group_of(), changes=["add-members=1"])
    print_plan(plan, plan.sample(), names_in_plan(plan), everything=False)
    text = " ".join(capsys.readouterr().out.split())
    assert "lists its topics in an order of its own" in text
    assert "8 samples of UUIDs and the order of topics: 6 moves; 12 of 12 partitions end" in text
