# SPDX-License-Identifier: Apache-2.0
"""Known errors of clients appear with `serve`, each in the version in which it was observed.

docs/serve.md#errors-of-clients-that-appear lists them.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

import kafka_rebalance as kr

pytest.importorskip("kio", reason="kio is not installed: pip install -e '.[serve]'")
pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")
pytest.importorskip("aiokafka", reason="no aiokafka: pip install -e '.[aiokafka]'")
pytest.importorskip("confluent_kafka", reason="no confluent-kafka: pip install -e '.[confluent]'")

from kafka_rebalance.testing import CoordinatorConfig, RunningBroker
from kafka_rebalance.wire.consumer_protocol import (
    AssignmentData,
    Subscription,
    encode_assignment,
    encode_subscription,
)
from tests.support.java_consumers import JAVA_CONSUMERS, JavaByBroker, OldJavaByBroker, missing_java
from tests.support.served_broker import connection
from tests.support.served_consumers import (
    GROUP,
    TOPIC,
    Aiokafka,
    Confluent,
    ConfluentByBroker,
    Consumer,
    KafkaPython,
)
from tests.support.waiting import FAR_S, until

if TYPE_CHECKING:
    from tests.parity.wire import Connection


HEARTBEAT_MS, LATE_MS = 100, 3_000


def observed(package: str, number: str) -> pytest.MarkDecorator:
    """Skips a test if another version is installed: the error may be mended there."""
    return pytest.mark.skipif(version(package) != number, reason=f"observed in {number}")


# A commit that cannot be fetched ------------------------------------------------------------------


def refused(broker: RunningBroker, kind: type[Consumer], error: str) -> Consumer:
    """Returns a consumer that once gets `error` in place of the group's commit, which is 5."""
    broker.produce(TOPIC, *(b"%d" % number for number in range(10)))
    with connection(broker) as one:
        offset = {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}
        topics = [{"name": TOPIC, "partitions": [offset]}]
        group = {"group_id": GROUP, "generation_id": -1, "member_id": "", "retention_time": -1}
        one.ask("offset_commit", 2, **group, topics=topics)
    broker.fault("OffsetFetch", error=error)
    return kind(broker.address, "b")


MOVED, STALE = "NOT_COORDINATOR", "STALE_MEMBER_EPOCH"


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        (KafkaPython, MOVED),
        *(pytest.param(one, MOVED, marks=pytest.mark.live) for one in JAVA_CONSUMERS),
        *(
            pytest.param(one, STALE, marks=pytest.mark.live)
            for one in (JavaByBroker, OldJavaByBroker)
        ),
    ],
)
def test_kafka_python_and_java_ask_again_for_the_commit(kind: type[Consumer], error: str) -> None:
    if kind is not KafkaPython and (missing := missing_java()):
        pytest.skip(missing)
    with RunningBroker({TOPIC: 1}) as broker, closing(refused(broker, kind, error)) as consumer:
        assert consumer.goes_on_at(0) == 5


@observed("aiokafka", "0.14.0")
def test_aiokafka_takes_a_refusal_for_no_commit() -> None:
    """It ignores the error of the whole response, and reads what the group has read before."""
    with RunningBroker({TOPIC: 1}) as broker, closing(refused(broker, Aiokafka, MOVED)) as consumer:
        assert consumer.goes_on_at(0) == 0


@observed("confluent-kafka", "2.16.1")
@pytest.mark.parametrize(
    ("kind", "error"), [(Confluent, MOVED), (ConfluentByBroker, MOVED), (ConfluentByBroker, STALE)]
)
def test_librdkafka_never_asks_again_for_the_commit(kind: type[Consumer], error: str) -> None:
    """The member owns its partitions and sends heartbeats, but reads none of them, nor a new one.

    https://github.com/confluentinc/librdkafka/issues/5586
    """
    kind = type("Refused", (kind,), {"expected_errors": [MOVED] if error == MOVED else []})
    with RunningBroker({TOPIC: 1}) as broker, closing(refused(broker, kind, error)) as consumer:
        until("it owns a partition", lambda: consumer.owned() == {0})
        for _ in range(20):
            consumer.owned()  # waits for one poll of 50 ms
        assert consumer.received == []
        if kind is ConfluentByBroker:
            broker.grow(TOPIC, 2)
            broker.produce(TOPIC, b"new", partition=1)
            until("it owns both partitions", lambda: consumer.owned() == {0, 1})
            for _ in range(20):
                consumer.owned()
            assert consumer.received == []


# A poll that ends before the group's answer -------------------------------------------------------


class ShortPolls(KafkaPython):
    """kafka-python with polls of 100 ms, which asks for metadata every 200 ms."""

    poll_ms = 100

    def open(self) -> None:
        super().open()
        self._consumer._client.cluster.config["metadata_max_age_ms"] = 200


def grown(broker: RunningBroker, consumer: Consumer) -> None:
    """Lets the topic grow; from now on, an answer to SyncGroup takes longer than a poll."""
    broker.wait_until_stable(GROUP, members=1, partitions=1)
    until("it owns the partition", lambda: consumer.owned() == {0})
    broker.fault("SyncGroup", delay_ms=1_000, times=99)
    broker.grow(TOPIC, 2)
    broker.produce(TOPIC, b"new", partition=1)


@observed("kafka-python", "3.0.12")
def test_kafka_python_loses_an_assignment_for_ever() -> None:
    """It joins because the topic grew, and forgets that join when the poll ends before the answer.

    From then on, the member takes itself for one that need not join, and reads no new partition. It
    also sends no heartbeats, so the group gives its partitions to others, while it goes on.
    """
    with RunningBroker({TOPIC: 1}) as broker, closing(ShortPolls(broker.address, "c")) as consumer:
        grown(broker, consumer)
        until("the group is stable", lambda: broker.history(GROUP)[-1].partitions == 2)
        broker.clear_faults()
        generations = len(broker.history(GROUP))
        for _ in range(20):
            assert consumer.owned() == {0}  # waits for one poll
        assert len(broker.history(GROUP)) == generations
        assert consumer.received == []
        broker.advance(50_000, heartbeats=False)
        broker.produce(TOPIC, b"read by a consumer that is no member", partition=0)
        assert consumer.goes_on_at(0) == 0


class QuickAiokafka(Aiokafka):
    """aiokafka, which asks for metadata at each poll."""

    def poll(self) -> None:
        self._loop.run_until_complete(self._consumer._client.force_metadata_update())
        super().poll()


class QuickConfluent(Confluent):
    settings: ClassVar[dict[str, Any]] = {"topic.metadata.refresh.interval.ms": 200}


@pytest.mark.parametrize("kind", [QuickAiokafka, QuickConfluent])
def test_others_take_an_assignment_that_comes_between_two_polls(kind: type[Consumer]) -> None:
    with RunningBroker({TOPIC: 1}) as broker, closing(kind(broker.address, "c")) as consumer:
        grown(broker, consumer)
        assert consumer.goes_on_at(1) == 0


# Leaders ------------------------------------------------------------------------------------------


@observed("kafka-python", "3.0.12")
def test_kafka_python_leaves_a_static_member_without_partitions() -> None:
    """Its range assignor counts a static member no longer when a dynamic one came after it."""
    with ExitStack() as stack:
        broker = stack.enter_context(RunningBroker({TOPIC: 6}))
        for at, (name, instance) in enumerate((("a", "s1"), ("b", None), ("c", "s2"))):
            stack.enter_context(closing(KafkaPython(broker.address, name, instance)))
            found = broker.wait_until_stable(GROUP, members=at + 1)
        assert len(found.assignment["s1"].get(TOPIC, ())) == 0, found.assignment


def join_of(member_id: str, assignor: str, sent: bytes) -> dict[str, Any]:
    """Returns the fields of a JoinGroup."""
    protocols = [{"name": assignor, "metadata": sent}]
    times = {"session_timeout": 60_000, "rebalance_timeout": 60_000}
    who = {"group_id": GROUP, "member_id": member_id, "protocol_type": "consumer"}
    return {**who, **times, "protocols": protocols}


def joined(leader: Connection, member_id: str, sent: bytes) -> Any:
    return leader.ask("join_group", 3, **join_of(member_id, "range", sent))


def assigned(leader: Connection, group: Any, owned: dict[str, Any]) -> None:
    given = [
        {"member_id": one, "assignment": encode_assignment(AssignmentData(partitions))}
        for one, partitions in owned.items()
    ]
    ids = {"group_id": GROUP, "generation_id": group.generation_id, "member_id": group.member_id}
    leader.ask("sync_group", 1, **ids, assignments=given)


@observed("kafka-python", "3.0.12")
def test_round_robin_of_kafka_python_throws() -> None:
    """docs/reports/kafka-python-roundrobin.md: a member that has to be skipped ends each leader."""
    from kafka import KafkaConsumer
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

    with RunningBroker({"a": 2, "b": 2}) as broker:
        own = {"partition_assignment_strategy": [RoundRobinPartitionAssignor]}
        leader = KafkaConsumer(
            "a", "b", bootstrap_servers=broker.address, group_id=GROUP, **own, client_id="leader"
        )
        until("it leads", lambda: leader.poll(200) or leader.assignment())
        with connection(broker) as other:
            sent = encode_subscription(Subscription(("a",), b""))
            other.send("join_group", 3, **join_of("", "roundrobin", sent))
            with pytest.raises(KeyError):
                until("it assigns", lambda: leader.poll(500))
            leader.close(autocommit=False)


LEADER = """
import sys, confluent_kafka
config = {"bootstrap.servers": sys.argv[1], "group.id": sys.argv[2], "client.id": "leader"}
leader = confluent_kafka.Consumer(config | {"partition.assignment.strategy": "cooperative-sticky"})
leader.subscribe([sys.argv[3]])
while True:
    leader.poll(1)
"""


@observed("confluent-kafka", "2.16.1")
def test_a_member_with_an_old_subscription_kills_a_leader_of_librdkafka() -> None:
    """docs/reports/librdkafka-cooperative-sticky.md: such a member has no list of what it owns."""
    with RunningBroker({TOPIC: 1}) as broker:
        leader = subprocess.Popen([sys.executable, "-c", LEADER, broker.address, GROUP, TOPIC])
        try:
            broker.wait_until_stable(GROUP, members=1, partitions=1)
            old = encode_subscription(Subscription((TOPIC,), b"", version=0))
            with connection(broker) as other:
                other.send("join_group", 3, **join_of("", "cooperative-sticky", old))
                assert leader.wait(FAR_S) == -signal.SIGSEGV
        finally:
            leader.kill()


@observed("confluent-kafka", "2.16.1")
@pytest.mark.parametrize(("joins", "told"), [(False, "lost"), (True, "revoked")])
def test_librdkafka_does_not_tell_that_partitions_are_lost(joins: bool, told: str) -> None:
    """They are lost after `max.poll.interval.ms`. If a rebalance begins before, it says "revoked".

    https://github.com/confluentinc/librdkafka/pull/5604
    """
    import confluent_kafka

    calls: list[str] = []
    late = {"session.timeout.ms": LATE_MS, "max.poll.interval.ms": LATE_MS}
    settings = {"group.id": GROUP, "heartbeat.interval.ms": HEARTBEAT_MS, **late}
    short = CoordinatorConfig(
        group_initial_rebalance_delay_ms=0, group_min_session_timeout_ms=LATE_MS
    )
    with RunningBroker({TOPIC: 2}, config=short) as broker, connection(broker) as other:
        consumer = confluent_kafka.Consumer(settings | {"bootstrap.servers": broker.address})
        consumer.subscribe(
            [TOPIC],
            on_revoke=lambda *_: calls.append("revoked"),
            on_lost=lambda *_: calls.append("lost"),
        )
        until("it owns both", lambda: consumer.poll(0.05) or len(consumer.assignment()) == 2)
        (mine,) = members = broker._server.coordinator.groups()[GROUP].members
        if joins:
            listed = encode_subscription(Subscription((TOPIC,), b""))
            other.send("join_group", 3, **join_of("", "range", listed))
        until("it is no member", lambda: mine not in members)
        until("it is told", lambda: (consumer.poll(0.05), calls)[1])
        consumer.close()
    assert calls[0] == told


async def reads(address: str) -> None:
    """Reads with aiokafka until something ends the consumer."""
    import aiokafka
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor

    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    own = {"partition_assignment_strategy": (RangePartitionAssignor,)}
    consumer = aiokafka.AIOKafkaConsumer(TOPIC, bootstrap_servers=address, group_id=GROUP, **own)
    try:
        await consumer.start()
        while True:
            await consumer.getmany(timeout_ms=100)
    finally:
        await consumer.stop()


@observed("aiokafka", "0.14.0")
def test_a_topic_that_it_left_ends_a_consumer_of_aiokafka() -> None:
    """A leader may assign such a topic (docs/clients.md); Java and kafka-python then join again."""
    listed = encode_subscription(Subscription((TOPIC,), b""))
    with (
        RunningBroker({TOPIC: 1, "left": 1}) as broker,
        connection(broker, "leader") as leader,
        ThreadPoolExecutor() as pool,
    ):
        alone = joined(leader, "", listed)
        assigned(leader, alone, {})
        ended = pool.submit(asyncio.run, reads(broker.address))
        members = broker._server.coordinator.groups()[GROUP].members
        until("it joins", lambda: len(members) == 2)
        both = joined(leader, alone.member_id, listed)
        (other,) = {one.member_id for one in both.members} - {alone.member_id}
        assigned(leader, both, {other: (kr.TopicPartition("left", 0),)})
        with pytest.raises(Exception, match="unsubscribed topic"):
            ended.result(FAR_S)
