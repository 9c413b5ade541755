# SPDX-License-Identifier: Apache-2.0
"""Members that list an eager and a cooperative assignor are eager, as real members were."""

import importlib
import json
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.errors import KafkaConfigurationError

import kafka_rebalance as kr
from kafka_rebalance.notes.listed import may_list_eager
from kafka_rebalance.notes.switches import not_rolling
from kafka_rebalance.plans.rounds import play
from kafka_rebalance.switching.migrations import migration
from kafka_rebalance.switching.rounds import one_bounce, two_bounces

BOTH = ("cooperative-sticky", "range")
IDS = {
    1: "kpr-1-0748ce2a-62b0-4627-bd83-b2f2dca10f96",
    3: "kpr-3-4385ca72-60dd-4567-9c54-14a7d9e384b6",
    2: "kpr-2-3901d681-9290-4653-95d1-acef81347aa9",
}
OWNED = {
    1: ((0, 3, 6), (1, 4, 7, 10)),
    3: ((2, 5), (0, 3, 6, 9)),
    2: ((1, 4, 7), (2, 5, 8, 11)),
}
AFTER = "kpr-1-86a16d56-34b1-4921-bdd3-fcd00f0ca720"


def between(library: str | None = "java") -> kr.GroupSpec:
    """Three members of kafka-python 3.0.12 with our plug-ins on a broker, after one bounce.

    Each listed `BOTH`.
    """
    topics = (kr.Topic("orders", 8), kr.Topic("payments", 12))
    members = tuple(
        replace(
            kr.Member(IDS[n], ("orders", "payments")).owning(
                tuple(
                    kr.TopicPartition(topic.name, p)
                    for topic, numbers in zip(topics, OWNED[n], strict=True)
                    for p in numbers
                ),
                10,
            ),
            client_id=f"kpr-{n}",
            client_library=library,
        )
        for n in IDS
    )
    return kr.GroupSpec("kp-range", topics, members, "cooperative-sticky", generation_id=10)


def test_the_first_restart_between_the_bounces_moves_what_it_moved_on_a_broker() -> None:
    """kpr-1 left and came back: 2 rebalances, 28 gains. The members claimed nothing."""
    group = between()
    left = group.edited(members=group.members[1:])
    gone = play(left, "cooperative-sticky", starts_over=True, engine="rust")
    back = replace(group.members[0].owning(), member_id=AFTER)
    all_three = gone.group.edited(members=(*gone.group.members, back))
    again = play(all_three, "cooperative-sticky", starts_over=True, engine="rust")
    assert [one.moves for one in (*gone.rounds, *again.rounds)] == [14, 14]


def test_the_second_bounce_has_the_rebalances_of_the_broker_and_nearly_its_moves() -> None:
    """The members made 8 rebalances and gained 56 partitions; their ids broke the ties."""
    bounce = one_bounce(between(), BOTH, "cooperative-sticky", "rust")
    assert bounce.rebalances == 8
    assert bounce.moves == pytest.approx(56, abs=6)


def test_a_switch_has_the_moves_of_all_its_rebalances() -> None:
    """Eager bounces without memory: range gives the same answer to the same order of members."""
    group = kr.GroupSpec(
        "g",
        (kr.Topic("t", 2),),
        tuple(
            kr.Member(name, ("t",), group_instance_id=name).owning((kr.TopicPartition("t", n),), 3)
            for n, name in enumerate("ab")
        ),
        "range",
    )
    # Static members: one rebalance, when the last one is back; roundrobin gives the same answer.
    first, second = two_bounces(group, "range", "roundrobin", "rust")
    assert (first.rebalances, first.moves) == (1, 0)
    assert (second.rebalances, second.moves) == (0, 0)
    one = group.edited(members=(replace(group.members[0], group_instance_id=None),))
    # The only member leaves and comes back twice, and gains both partitions each time.
    there = migration(one, "range", "sticky")
    assert [bounce.moves for bounce in there.bounces] == [2, 2]
    assert (there.moves, there.to_dict()["moves"]) == (4, 4)


@pytest.mark.parametrize(
    ("library", "client_id", "assignor", "may"),
    [
        ("java", "kpr-1", "cooperative-sticky", True),
        ("java", "kafka-python-3.0.12", "cooperative-sticky", True),
        (None, "consumer-kp-range-1", "cooperative-sticky", True),
        ("java", "kpr-1", "sticky", False),
        ("librdkafka", "kpr-1", "librdkafka/cooperative-sticky", False),
        (None, "rdkafka", "cooperative-sticky", False),
        ("kafka-python", "kpr-1", "cooperative-sticky", False),
        ("java", "kpr-1", "consumer/uniform", False),
    ],
)
def test_only_clients_that_allow_mixed_lists_may_be_eager(
    library: str | None, client_id: str, assignor: str, *, may: bool
) -> None:
    """librdkafka and kafka-python's own classes refuse a list of both kinds."""
    group = between(library)
    members = tuple(replace(member, client_id=client_id) for member in group.members)
    assert may_list_eager(group.edited(members=members), assignor) is may


def test_plan_and_describe_say_that_they_do_not_know_the_lists() -> None:
    line = between().to_json()
    for word in (["plan", "-", "--bounce-members", IDS[1]], ["describe", "-"]):
        assert "Assumed: every member lists only cooperative assignors" in told(word, line)
    one = json.loads(told(["plan", "-", "--json"], line))
    assert "lists" in [note["kind"] for note in one["notes"]]
    other = json.loads(told(["plan", "-", "--json", "--assignor", "sticky"], line))
    assert "lists" not in [note["kind"] for note in other["notes"]]


def test_compare_tells_the_moves_of_the_switch_that_it_recommends() -> None:
    line = between().edited(assignor="range").to_json()
    moves = json.loads(told(["compare", "-", "--json"], line))["migration"]["moves"]
    assert moves > 20
    assert f"The switch itself moves partitions: {moves} moves in all" in told(
        ["compare", "-"], line
    )


def test_a_switch_to_kafka_pythons_own_cooperative_class_stops_all_members() -> None:
    """kafka-python's consumer refuses a list of the class and an eager one, as the plan states."""
    group = between("python").edited(assignor="range")
    (found,) = not_rolling(group, [kr.SwitchAssignor("kafka-python/cooperative-sticky")])
    (own,) = (one for one in found.recipes if one.client == "kafka-python")
    assert own.way == "stop all"
    assert own.needs is not None
    module, _, name = own.needs.removeprefix("from ").partition(" import ")
    cooperative = getattr(importlib.import_module(module), name)
    assert own.settings == (f"partition_assignment_strategy=[{name}]",)
    listed = {one.name: one for one in (cooperative(), RangePartitionAssignor())}
    with pytest.raises(KafkaConfigurationError):
        ConsumerCoordinator._validate_rebalance_protocol(SimpleNamespace(_assignors=listed))


def told(words: list[str], line: str) -> str:
    run = subprocess.run(
        [sys.executable, "-m", "kafka_rebalance", *words],
        input=line,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return run.stdout
