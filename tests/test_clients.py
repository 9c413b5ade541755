"""The plug-ins as leaders: through the clients' own functions, to the answers of Kafka's classes."""

from __future__ import annotations

import inspect
import random
from typing import TYPE_CHECKING, Any

import pytest

from kafka_rebalance import Topic, TopicPartition, wire

pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")
pytest.importorskip("aiokafka", reason="aiokafka is not installed: pip install -e '.[aiokafka]'")

import aiokafka.coordinator.assignors.abstract as aiokafka_base
import kafka.coordinator.assignors.abstract as kafka_base

from client_members import Aiokafka, Java, Joined, KafkaPython
from kafka_rebalance.assignors.objects import Range
from kafka_rebalance.clients import aiokafka as ours_aiokafka
from kafka_rebalance.clients import kafka_python as ours_kafka

if TYPE_CHECKING:
    from oracle import Oracle

KAFKA = [ours_kafka.Range, ours_kafka.RoundRobin, ours_kafka.Sticky, ours_kafka.CooperativeSticky]
AIOKAFKA = [ours_aiokafka.Range, ours_aiokafka.RoundRobin, ours_aiokafka.Sticky]
PLUG_INS = [*((KafkaPython, one) for one in KAFKA), *((Aiokafka, one) for one in AIOKAFKA)]
RACKS = ("a", "b", "c")


def drawn_topics(rng: random.Random) -> list[Topic]:
    """Some with racks, a broker without one among them."""
    topics = []
    for name in ("orders", "refunds", "zones"):
        count = rng.randint(1, 7)
        replicas = [tuple(rng.sample((*RACKS, None), rng.randint(1, 3))) for _ in range(count)]
        topics.append(Topic(name, count, tuple(replicas) if rng.random() < 0.7 else None))
    return topics


def drawn_member(rng: random.Random, n: int, topics: list[Topic], assignor: str) -> Joined:
    """Any version, with claims and generations in the field, in the user data, in both, in none."""
    names = [topic.name for topic in topics]
    wanted = sorted(rng.sample([*names, "nowhere"], rng.randint(1, 4)))
    claims = [
        TopicPartition(topic.name, p)
        for topic in topics
        for p in range(topic.partitions)
        if topic.name in wanted and rng.random() < 0.3
    ]
    user_data = None
    if rng.random() < 0.8:
        generation = rng.choice((-1, 3, 4))
        if assignor == "sticky":
            user_data = wire.encode_sticky_user_data(claims, generation)
        elif assignor == "cooperative-sticky":
            user_data = wire.encode_cooperative_user_data(generation)
    sent = wire.Subscription(
        tuple(wanted),
        user_data,
        tuple(claims) if assignor == "cooperative-sticky" else (),
        rng.choice((None, 3, 4)),
        rng.choice((None, *RACKS)),
        rng.randint(0, 3),
    )
    instance_id = f"i{9 - n}" if rng.random() < 0.3 else None
    return Joined(f"m{rng.randrange(10**6)}-{n}", instance_id, wire.encode_subscription(sent))


@pytest.mark.oracle
@pytest.mark.parametrize(("client", "plug_in"), PLUG_INS)
def test_a_leader_answers_as_kafkas_class_does(client: Any, plug_in: Any, oracle: Oracle) -> None:
    """Drawn groups of members of every version, with racks and static members."""
    rng = random.Random(f"{client.__name__} {plug_in.name}")
    racks_count = instances_count = 0
    for _ in range(150):
        topics = drawn_topics(rng)
        joined = [drawn_member(rng, n, topics, plug_in.name) for n in range(rng.randint(2, 5))]
        first = joined[0].member_id
        ours = client(first, [plug_in], ["orders"], topics)
        java = Java(first, Range(), ["orders"], topics, oracle)
        answer = ours.lead(5, joined, plug_in.name)
        assert answer == java.lead(5, joined, plug_in.name)
        bare = [Topic(topic.name, topic.partitions) for topic in topics]
        ours = client(first, [plug_in], ["orders"], bare)
        racks_count += ours.lead(5, joined, plug_in.name) != answer
        dynamic = [Joined(one.member_id, None, one.metadata) for one in joined]
        instances_count += java.lead(5, dynamic, plug_in.name) != answer
    # The draw has groups in which racks and instance ids decide, where the assignor looks at them.
    assert (racks_count > 5) == (plug_in.name != "roundrobin")
    assert (instances_count > 5) == (plug_in.name in ("range", "roundrobin"))


@pytest.mark.parametrize(
    ("plug_in", "base"),
    [
        *((one, kafka_base.AbstractPartitionAssignor) for one in KAFKA),
        *((one, aiokafka_base.AbstractPartitionAssignor) for one in AIOKAFKA),
    ],
)
def test_parity_with_the_clients_base_class(plug_in: Any, base: Any) -> None:
    """Whatever a client adds to its interface shows here."""
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
