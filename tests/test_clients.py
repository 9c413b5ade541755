# SPDX-License-Identifier: Apache-2.0
"""When a Python client leads, its plug-in answers as Kafka's own classes do."""

from __future__ import annotations

import inspect
import random
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from kafka_rebalance import Topic, TopicPartition

pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")
pytest.importorskip("aiokafka", reason="aiokafka is not installed: pip install -e '.[aiokafka]'")

import aiokafka.coordinator.assignors.abstract as aiokafka_base
import kafka.coordinator.assignors.abstract as kafka_base

from kafka_rebalance.assignors.objects import Range
from kafka_rebalance.clients import aiokafka as ours_aiokafka
from kafka_rebalance.clients import kafka_python as ours_kafka
from kafka_rebalance.wire.consumer_protocol import (
    Subscription,
    decode_assignment,
    encode_cooperative_user_data,
    encode_sticky_user_data,
    encode_subscription,
)
from tests.support.client_members import Aiokafka, Java, Joined, KafkaPython, KafkaThrows
from tests.support.generate_sent import by_bytes

if TYPE_CHECKING:
    from tests.support.oracle import Oracle

KAFKA = [ours_kafka.Range, ours_kafka.RoundRobin, ours_kafka.Sticky, ours_kafka.CooperativeSticky]
AIOKAFKA = [ours_aiokafka.Range, ours_aiokafka.RoundRobin, ours_aiokafka.Sticky]
PLUG_INS: list[tuple[Any, Any]] = [
    *((KafkaPython, one) for one in KAFKA),
    *((Aiokafka, one) for one in AIOKAFKA),
]
RACKS = ("a", "b", "c")


def drawn_topics(rng: random.Random) -> list[Topic]:
    """Makes random topics; some have racks, and some of their replicas have no rack."""
    topics = []
    for name in ("orders", "refunds", "zones"):
        count = rng.randint(1, 7)
        replicas = [tuple(rng.sample((*RACKS, None), rng.randint(1, 3))) for _ in range(count)]
        topics.append(Topic(name, count, tuple(replicas) if rng.random() < 0.7 else None))
    return topics


def drawn_members(rng: random.Random, topics: list[Topic], assignor: str) -> list[Joined]:
    """Makes random members of all clients and versions; some send contradictory fields."""
    members = []
    for n in range(rng.randint(2, 5)):
        wanted = rng.sample([*(topic.name for topic in topics), "nowhere"], rng.randint(1, 4))
        claims = [
            {"topic": topic.name, "partitions": [p for p in range(9) if rng.random() < 0.3]}
            for topic in topics
            if topic.name in wanted
        ]
        members.append(
            {
                "member_id": f"m{rng.randrange(10**6)}-{n}",
                "topics": wanted,
                "owned_partitions": claims,
                "generation_id": rng.choice((None, 3, 3, 4)),
                "rack_id": rng.choice((None, *RACKS)),
                "group_instance_id": f"i{9 - n}" if rng.random() < 0.3 else None,
            }
        )
    case = by_bytes({"assignor": assignor, "members": members}, rng)
    return [
        Joined(one["member_id"], one.get("group_instance_id"), bytes.fromhex(one["subscription"]))
        for one in case["members"]
    ]


@pytest.mark.oracle
@pytest.mark.parametrize(("client", "plug_in"), PLUG_INS)
def test_a_leader_answers_as_kafkas_class_does(client: Any, plug_in: Any, oracle: Oracle) -> None:
    """The random groups have members of every subscription version, racks and static members."""
    rng = random.Random(f"{client.__name__} {plug_in.name}")
    told = Counter[str]()
    for _ in range(150):
        topics = drawn_topics(rng)
        joined = drawn_members(rng, topics, plug_in.name)
        first = joined[0].member_id

        def lead(topics: list[Topic], joined: list[Joined], first: str = first) -> dict[str, bytes]:
            leading = client(first, [plug_in], ["orders"], topics)
            answer: dict[str, bytes] = leading.lead(5, joined, plug_in.name)
            return answer

        answer = lead(topics, joined)
        try:
            java = Java(first, Range(), ["orders"], topics, oracle)
            assert answer == java.lead(5, joined, plug_in.name)
        except KafkaThrows:
            told["throws"] += 1
            continue
        told["equal"] += 1
        told["racks"] += lead([Topic(one.name, one.partitions) for one in topics], joined) != answer
        dynamic = [Joined(one.member_id, None, one.metadata) for one in joined]
        told["instances"] += lead(topics, dynamic) != answer
    # Racks and instance ids change some answers, if the assignor uses them.
    assert told["equal"] >= 140
    assert (told["racks"] > 5) == (plug_in.name != "roundrobin")
    assert (told["instances"] > 5) == (plug_in.name in ("range", "roundrobin"))


def claiming(
    member_id: str, assignor: str, partitions: list[int], version: int, generation: int
) -> Joined:
    """Makes a member with a generation in its user data; in version 3, also in the field."""
    claims = tuple(TopicPartition("t", p) for p in partitions)
    if assignor == "sticky":
        sent = Subscription(("t",), encode_sticky_user_data(claims, generation), version=version)
    else:
        user_data = encode_cooperative_user_data(generation)
        sent = Subscription(("t",), user_data, claims, version=version)
    if version == 3:
        sent = replace(sent, generation_id=generation)
    return Joined(member_id, None, encode_subscription(sent))


@pytest.mark.parametrize(
    ("client", "plug_in"), [one for one in PLUG_INS if "sticky" in one[1].name]
)
def test_members_of_two_versions(client: Any, plug_in: Any) -> None:
    """The expected partitions are the answers of Kafka's own classes."""

    def lead(*joined: Joined) -> dict[str, list[int]]:
        leader = client(joined[0].member_id, [plug_in], ["t"], [Topic("t", 4)])
        answer = leader.lead(9, joined, plug_in.name)
        return {
            m: sorted(tp.partition for tp in decode_assignment(given).partitions)
            for m, given in answer.items()
        }

    name = plug_in.name
    both_old = lead(
        claiming("a", name, [0, 1, 2, 3], 1, 7),
        claiming("b", name, [0, 1], 1, 3),
    )
    assert both_old == {"a": [2, 3], "b": [0, 1]}
    if name == "cooperative-sticky":
        new_and_old = lead(
            claiming("m0", name, [0, 2], 3, 4),
            claiming("m1", name, [1, 2, 3], 1, 4),
        )
        assert new_and_old == {"m0": [0], "m1": [1, 3]}


@pytest.mark.parametrize(
    ("plug_in", "base"),
    [
        *((one, kafka_base.AbstractPartitionAssignor) for one in KAFKA),
        *((one, aiokafka_base.AbstractPartitionAssignor) for one in AIOKAFKA),
    ],
)
def test_parity_with_the_clients_base_class(plug_in: Any, base: Any) -> None:
    """A plug-in has the methods of the client's base class; fails if a new version adds one."""
    assert issubclass(plug_in, base)
    assert not inspect.isabstract(plug_in)
    for name, method in inspect.getmembers(base, inspect.isroutine):
        if not name.startswith("_"):
            wanted = list(inspect.signature(method).parameters)
            assert list(inspect.signature(getattr(plug_in, name)).parameters) == wanted
    protocols = plug_in().supported_protocols() if base.__module__.startswith("kafka.") else []
    modes = [protocol.name for protocol in protocols]
    cooperative = ["COOPERATIVE", "EAGER"] if "cooperative" in plug_in.name else ["EAGER"]
    assert modes == (cooperative if protocols else [])
