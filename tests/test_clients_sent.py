# SPDX-License-Identifier: Apache-2.0
"""The plug-ins send the bytes that a Java client sends, and remember the state for these bytes."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import pytest

from kafka_rebalance import Topic, TopicPartition
from kafka_rebalance.wire import consumer_protocol as wire
from kafka_rebalance.wire.sent_members import sent_member

pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")
pytest.importorskip("aiokafka", reason="aiokafka is not installed: pip install -e '.[aiokafka]'")

from kafka_rebalance.clients import aiokafka as ours_aiokafka
from kafka_rebalance.clients import kafka_python as ours_kafka
from kafka_rebalance.clients.leader import _MEMORIES
from tests.support.client_members import Aiokafka, Group, Joined, KafkaPython

if TYPE_CHECKING:
    from tests.support.oracle import Oracle

TOPICS = (Topic("orders", 7), Topic("refunds", 4), Topic("zones", 1))
BOTH = ("orders", "refunds")
PLUG_INS: list[tuple[Any, Any]] = [
    (KafkaPython, ours_kafka.Range),
    (KafkaPython, ours_kafka.RoundRobin),
    (KafkaPython, ours_kafka.Sticky),
    (KafkaPython, ours_kafka.CooperativeSticky),
    (Aiokafka, ours_aiokafka.Range),
    (Aiokafka, ours_aiokafka.RoundRobin),
    (Aiokafka, ours_aiokafka.Sticky),
]
STICKY = [(client, plug_in) for client, plug_in in PLUG_INS if plug_in.name == "sticky"]


def pairs(partitions: Any) -> list[list[Any]]:
    return [[topic, partition] for topic, partition in partitions]


def java_sends(
    oracle: Oracle,
    assignor: str,
    topics: tuple[str, ...],
    given: tuple[TopicPartition, ...] | None,
    generation: int,
    rack_id: str | None = None,
) -> bytes:
    """Returns the subscription bytes of a Java member that received `given` in `generation`.

    `given` is None for a member that had no generation yet.
    """
    user_data = None
    if assignor == "sticky" and given is not None:
        asked = {"wire": "encode_sticky", "partitions": pairs(given), "generation_id": generation}
        user_data = oracle.ask(asked)["bytes"]
    elif assignor == "cooperative-sticky":
        asked = {"wire": "encode_cooperative", "generation_id": generation}
        user_data = oracle.ask(asked)["bytes"]
    owned = (given or ()) if assignor == "cooperative-sticky" else ()
    answer = oracle.ask(
        {
            "wire": "encode_subscription",
            "version": 3,
            "topics": list(topics),
            "user_data": user_data,
            "owned_partitions": pairs(owned),
            "generation_id": generation,
            "rack_id": rack_id,
        }
    )
    return bytes.fromhex(answer["bytes"])


@pytest.mark.oracle
@pytest.mark.parametrize("rack_id", [None, "b"])
@pytest.mark.parametrize(("client", "plug_in"), PLUG_INS)
def test_subscriptions_are_javas_byte_for_byte(
    client: Any, plug_in: Any, rack_id: str | None, oracle: Oracle
) -> None:
    """Every assignor is tested before the first generation, after it and after the second."""
    group = Group(
        plug_in.name,
        [client(f"m{n}", [plug_in(rack_id=rack_id)], BOTH, TOPICS) for n in range(3)],
    )
    last: dict[str, tuple[TopicPartition, ...]] = {}
    for generation in (-1, 1, 2):
        for one in group.joined():
            given = last.get(one.member_id)
            expected = java_sends(oracle, plug_in.name, BOTH, given, generation, rack_id)
            assert one.metadata == expected
        answer = group.rebalance()
        last = {m: wire.decode_assignment(given).partitions for m, given in answer.items()}


@pytest.mark.oracle
@pytest.mark.parametrize(("client", "plug_in"), PLUG_INS)
def test_assignments_are_javas_byte_for_byte(client: Any, plug_in: Any, oracle: Oracle) -> None:
    """The bytes have version 3, null user data, and each topic once, in order of appearance."""
    group = Group(plug_in.name, [client(f"m{n}", [plug_in], BOTH, TOPICS) for n in range(12)])
    for answer in (group.rebalance(), group.rebalance()):
        assert len(answer) == 12
        for given in answer.values():
            partitions = wire.decode_assignment(given).partitions
            asked = {"wire": "encode_assignment", "version": 3, "partitions": pairs(partitions)}
            assert given == bytes.fromhex(oracle.ask({**asked, "user_data": None})["bytes"])


# Claims -------------------------------------------------------------------------------------------


def claims(member: Any, assignor: str) -> set[TopicPartition]:
    sent = wire.decode_subscription(member.join())
    return set(sent_member(member.member_id, sent, assignor).owned_partitions)


def test_a_cooperative_member_claims_what_it_still_holds() -> None:
    """Before it joins, the client revokes partitions of topics that it unsubscribed from."""
    member = KafkaPython("m", [ours_kafka.CooperativeSticky], BOTH, TOPICS)
    Group("cooperative-sticky", [member]).rebalance()
    member.subscribe(["refunds"])
    assert claims(member, "cooperative-sticky") == {TopicPartition("refunds", p) for p in range(4)}
    assert member.held == claims(member, "cooperative-sticky")


def test_a_member_that_lost_its_generation_claims_nothing() -> None:
    """Without a generation, the partitions are lost, so the member claims none, as in Java."""
    member = KafkaPython("m", [ours_kafka.CooperativeSticky], BOTH, TOPICS)
    Group("cooperative-sticky", [member]).rebalance()
    member.lose()
    sent = wire.decode_subscription(member.join())
    assert (sent.owned_partitions, sent.generation_id) == ((), None)
    assert sent.user_data == wire.encode_cooperative_user_data(1)


@pytest.mark.parametrize(("client", "plug_in"), STICKY)
def test_a_sticky_member_claims_what_it_still_subscribes_to(client: Any, plug_in: Any) -> None:
    member = client("m", [plug_in], BOTH, TOPICS)
    Group("sticky", [member]).rebalance()
    member.subscribe(["refunds", "zones"])
    assert claims(member, "sticky") == {TopicPartition("refunds", p) for p in range(4)}


@pytest.mark.parametrize(("client", "plug_in"), STICKY)
def test_sticky_user_data_contains_the_generation_of_the_partitions(
    client: Any, plug_in: Any
) -> None:
    """aiokafka never passes the generation to an assignor, so the plug-in must find it."""
    group = Group("sticky", [client("m", [plug_in], BOTH, TOPICS)])
    for generation in (1, 2):
        group.rebalance()
        sent = wire.decode_subscription(group.joined()[0].metadata)
        assert sent.generation_id == generation
        assert wire.decode_sticky_user_data(sent.user_data or b"").generation_id == generation


@pytest.mark.parametrize(("client", "plug_in"), STICKY)
def test_a_lost_generation_does_not_change_the_generation_in_sticky_user_data(
    client: Any, plug_in: Any
) -> None:
    """As in Java, the field holds no generation, but the user data keep the last one."""
    member = client("m", [plug_in], BOTH, TOPICS)
    Group("sticky", [member]).rebalance()
    member.lose()
    sent = wire.decode_subscription(member.join())
    assert sent.generation_id is None
    assert wire.decode_sticky_user_data(sent.user_data or b"").generation_id == 1


def test_beside_an_eager_assignor_cooperative_sticky_is_eager() -> None:
    """A member that lists both, as during a change of assignor, revokes all partitions before it
    joins.
    """
    strategy = [ours_kafka.CooperativeSticky, ours_kafka.Range]
    member = KafkaPython("m", strategy, BOTH, TOPICS)
    Group("range", [member]).rebalance()
    assert member.held
    assert claims(member, "cooperative-sticky") == set()


# Several consumers in one process -----------------------------------------------------------------


def forms(plug_in: Any) -> dict[str, list[Any]]:
    """Returns name -> plug-ins that three consumers of one process can use."""
    shared = plug_in()

    def make() -> Any:
        return plug_in()

    return {
        "class": [plug_in] * 3,
        "shared instance": [shared] * 3,
        "instances": [plug_in(), plug_in(), plug_in()],
        "factory": [make] * 3 if plug_in.__module__.endswith("kafka_python") else [make()] * 3,
        "subclass": [type("Own", (plug_in,), {})] * 3,
    }


@pytest.mark.parametrize("form", forms(ours_kafka.Sticky))
@pytest.mark.parametrize(
    ("client", "plug_in"), [*STICKY, (KafkaPython, ours_kafka.CooperativeSticky)]
)
def test_consumers_of_one_process_claim_each_their_own(
    client: Any, plug_in: Any, form: str
) -> None:
    strategies = forms(plug_in)[form]
    members = [client(f"m{n}", [one], BOTH, TOPICS) for n, one in enumerate(strategies)]
    group = Group(plug_in.name, members)
    group.rebalance()
    held = [member.held for member in members]
    assert sum(map(len, held)) == 11
    assert [claims(member, plug_in.name) for member in members] == held
    group.rebalance()
    assert [member.held for member in members] == held


def test_the_memory_of_a_consumer_is_freed_with_the_consumer() -> None:
    gc.collect()
    before = len(_MEMORIES)
    member = KafkaPython("m", [ours_kafka.Sticky], BOTH, TOPICS)
    Group("sticky", [member]).rebalance()
    assert len(_MEMORIES) == before + 1
    del member
    gc.collect()
    assert len(_MEMORIES) == before


@pytest.mark.parametrize("plug_in", [ours_kafka.Sticky, ours_aiokafka.Sticky])
def test_an_assignor_that_no_coordinator_calls_works_and_logs_a_warning(
    plug_in: Any, caplog: pytest.LogCaptureFixture
) -> None:
    own = plug_in()
    sent = own.metadata({"orders"})
    assert wire.decode_subscription(sent.encode()).generation_id is None
    assert "not called by" in caplog.text


# Members as the leader sees them ------------------------------------------------------------------


@pytest.mark.parametrize("client", [KafkaPython, Aiokafka])
def test_a_leader_sees_instances_racks_and_fields(client: Any) -> None:
    """aiokafka itself decodes only version 0 of a subscription, and passes no instance ids."""
    racks = (("a",), ("b",), ("a",), ("b",))
    topics = [Topic("t", 4, racks)]
    ours = ours_kafka if client is KafkaPython else ours_aiokafka
    leader = client("z", [ours.Range(rack_id="b")], ["t"], topics, group_instance_id="i1")
    other = wire.encode_subscription(wire.Subscription(("t",), rack_id="a"))
    joined = [Joined("a", "i2", other), Joined("z", "i1", leader.join())]
    answer = leader.lead(1, joined, "range")
    given = {m: wire.decode_assignment(one).partitions for m, one in answer.items()}
    assert given == {
        "a": (TopicPartition("t", 0), TopicPartition("t", 2)),
        "z": (TopicPartition("t", 1), TopicPartition("t", 3)),
    }
    # Without racks, range sorts by instance id: i1 is the first.
    bare = [Joined("a", "i2", wire.encode_subscription(wire.Subscription(("t",))))]
    leader = client("z", [ours.Range], ["t"], topics, group_instance_id="i1")
    answer = leader.lead(1, [*bare, Joined("z", "i1", leader.join())], "range")
    assert wire.decode_assignment(answer["z"]).partitions[0] == TopicPartition("t", 0)
