# SPDX-License-Identifier: Apache-2.0
"""`serve` is judged by unmodified consumers: kafka-python, aiokafka and confluent-kafka."""

from __future__ import annotations

import asyncio
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance.cli import main
from kafka_rebalance.coordinator import CoordinatorConfig

pytest.importorskip("kio", reason="kio is not installed: pip install -e '.[serve]'")

from kafka_rebalance.serve import ServedTopic, Server
from tests.parity.wire import Connection

PATIENCE_S = 20.0
TOPICS = (ServedTopic("orders", 6), ServedTopic("pay", 4))


@pytest.fixture
def server() -> Iterator[Server]:
    """A server in a thread of its own, as a consumer meets it."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    served = Server(TOPICS, config=CoordinatorConfig(group_initial_rebalance_delay_ms=100))

    def run(coroutine: Any) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, loop).result(PATIENCE_S)

    run(served.__aenter__())
    yield served
    run(served.__aexit__())
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


class KafkaPython:
    """A consumer of kafka-python with its own range assignor."""

    def __init__(self, address: str) -> None:
        kafka = pytest.importorskip("kafka", reason="kafka-python is not installed")
        self._kafka = kafka
        self._consumer = kafka.KafkaConsumer(
            "orders",
            bootstrap_servers=address,
            group_id="g",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )

    def poll(self) -> None:
        self._consumer.poll(100)

    def assignment(self) -> set[int]:
        return {tp.partition for tp in self._consumer.assignment()}

    def commit(self, partition: int, offset: int) -> None:
        from kafka.structs import OffsetAndMetadata

        tp = self._kafka.TopicPartition("orders", partition)
        self._consumer.commit({tp: OffsetAndMetadata(offset, "", -1)})

    def position(self, partition: int) -> int:
        return int(self._consumer.position(self._kafka.TopicPartition("orders", partition)))

    def close(self) -> None:
        self._consumer.close(autocommit=False)


class Confluent:
    """A consumer of librdkafka."""

    strategy = "range"

    def __init__(self, address: str) -> None:
        self._confluent = pytest.importorskip("confluent_kafka", reason="it is not installed")
        self._consumer = self._confluent.Consumer(
            {
                "bootstrap.servers": address,
                "group.id": "g",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "partition.assignment.strategy": self.strategy,
            }
        )
        self._consumer.subscribe(["orders"])

    def poll(self) -> None:
        assert self._consumer.poll(0.1) is None

    def assignment(self) -> set[int]:
        return {tp.partition for tp in self._consumer.assignment()}

    def commit(self, partition: int, offset: int) -> None:
        tp = self._confluent.TopicPartition("orders", partition, offset)
        (done,) = self._consumer.commit(offsets=[tp], asynchronous=False)
        assert done.error is None

    def position(self, partition: int) -> int:
        tp = self._confluent.TopicPartition("orders", partition)
        return int(self._consumer.committed([tp])[0].offset)

    def close(self) -> None:
        self._consumer.close()


class ConfluentCooperative(Confluent):
    strategy = "cooperative-sticky"


class Aiokafka:
    """A consumer of aiokafka, in an event loop of its own."""

    def __init__(self, address: str) -> None:
        self._aiokafka = pytest.importorskip("aiokafka", reason="aiokafka is not installed")
        self._loop = asyncio.new_event_loop()
        self._run(self._start(address))

    async def _start(self, address: str) -> None:
        self._consumer = self._aiokafka.AIOKafkaConsumer(
            "orders",
            bootstrap_servers=address,
            group_id="g",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )
        await self._consumer.start()

    def _run(self, coroutine: Any) -> Any:
        return self._loop.run_until_complete(coroutine)

    def poll(self) -> None:
        self._run(self._consumer.getmany(timeout_ms=100))

    def assignment(self) -> set[int]:
        return {tp.partition for tp in self._consumer.assignment()}

    def commit(self, partition: int, offset: int) -> None:
        self._run(self._consumer.commit({self._tp(partition): offset}))

    def position(self, partition: int) -> int:
        return int(self._run(self._consumer.position(self._tp(partition))))

    def _tp(self, partition: int) -> Any:
        return self._aiokafka.TopicPartition("orders", partition)

    def close(self) -> None:
        self._run(self._consumer.stop())
        self._loop.close()


CLIENTS = [KafkaPython, Confluent, ConfluentCooperative, Aiokafka]
Consumer = KafkaPython | Confluent | Aiokafka


def until(done: Callable[[], bool], *consumers: Consumer) -> None:
    """Polls the consumers until `done`."""
    deadline = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < deadline, [one.assignment() for one in consumers]
        for one in consumers:
            one.poll()


@pytest.mark.parametrize("client", CLIENTS)
def test_a_consumer_lives(client: type[Consumer], server: Server) -> None:
    """It subscribes, is given all partitions, commits, leaves, and goes on from the offset."""
    first = client(server.address)
    until(lambda: first.assignment() == set(range(6)), first)
    first.commit(2, 41)
    first.close()
    second = client(server.address)
    until(lambda: second.assignment() == set(range(6)), second)
    assert second.position(2) == 41
    second.close()


@pytest.mark.parametrize("client", CLIENTS)
def test_two_consumers_share(client: type[Consumer], server: Server) -> None:
    """A second one joins and gets half of the partitions; when it leaves, the first has all."""
    first = client(server.address)
    until(lambda: len(first.assignment()) == 6, first)
    second = client(server.address) if client is not Aiokafka else _aside(server, first)

    def shared() -> bool:
        return [len(first.assignment()), len(second.assignment())] == [3, 3]

    until(shared, first, second)
    assert first.assignment() | second.assignment() == set(range(6))
    second.close()
    until(lambda: len(first.assignment()) == 6, first)
    first.close()


def _aside(server: Server, first: Consumer) -> Consumer:
    """Starts an aiokafka consumer, whose start waits for the other members."""
    made: list[Consumer] = []
    thread = threading.Thread(target=lambda: made.append(Aiokafka(server.address)))
    thread.start()
    until(lambda: not thread.is_alive(), first)
    return made[0]


# The protocol -------------------------------------------------------------------------------------


def _connection(server: Server) -> Connection:
    return Connection(server.cluster.host, server.cluster.port, client_id="c")


def test_a_newer_version_of_api_versions_is_answered_in_version_0(server: Server) -> None:
    """Java 4.4.0 begins with version 5, and goes on with what the answer lists."""
    with socket.create_connection((server.cluster.host, server.cluster.port), PATIENCE_S) as one:
        one.sendall(struct.pack(">ihhih", 10, 18, 5, 7, -1))
        length, correlation_id, error, count = struct.unpack(">iihi", one.recv(14))
    assert (correlation_id, error) == (7, 35)
    assert length == 10 + 6 * count
    assert count >= 14


@pytest.mark.parametrize(
    "garbage",
    [b"GET / HTTP/1.1\r\n\r\n", struct.pack(">i", -1), struct.pack(">ihhi", 8, 999, 0, 1)],
)
def test_garbage_ends_only_its_own_connection(garbage: bytes, server: Server) -> None:
    with _connection(server) as beside:
        address = (server.cluster.host, server.cluster.port)
        with socket.create_connection(address, PATIENCE_S) as one:
            one.sendall(garbage)
            assert one.recv(1) == b""
        answer = beside.ask("metadata", 7, topics=None, allow_auto_topic_creation=False)
    assert {topic.name: len(topic.partitions) for topic in answer.topics} == {
        "orders": 6,
        "pay": 4,
    }


def test_a_topic_that_is_not_served_is_unknown(server: Server) -> None:
    beyond = {"partition_index": 6, "timestamp": -1, "current_leader_epoch": -1}
    with _connection(server) as one:
        answer = one.ask("metadata", 4, topics=[{"name": "nope"}], allow_auto_topic_creation=True)
        offsets = one.ask(
            "list_offsets",
            5,
            replica_id=-1,
            isolation_level=0,
            topics=[{"name": "orders", "partitions": [beyond]}],
        )
    assert [int(topic.error_code) for topic in answer.topics] == [3]
    assert int(offsets.topics[0].partitions[0].error_code) == 3


def test_groups_are_described(server: Server) -> None:
    consumer = KafkaPython(server.address)
    until(lambda: len(consumer.assignment()) == 6, consumer)
    with _connection(server) as one:
        listed = one.ask("list_groups", 4, states_filter=[])
        described = one.ask("describe_groups", 5, groups=["g"], include_authorized_operations=False)
    consumer.close()
    assert [(group.group_id, group.group_state) for group in listed.groups] == [("g", "Stable")]
    (group,) = described.groups
    assert (group.group_state, group.protocol_data, len(group.members)) == ("Stable", "range", 1)
    assert group.members[0].client_id.startswith("kafka-python")


# The command --------------------------------------------------------------------------------------


def test_the_command_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    group = kr.GroupSpec("g", (kr.Topic("logs", 3),), (kr.Member("a", ("logs",)),))
    file = tmp_path / "groups.jsonl"
    file.write_text(group.to_json() + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "kafka_rebalance", "serve", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--topic", "orders=6", "--topics-of", str(file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    host, _, port = line.split()[2].rstrip(";").partition(":")
    with Connection(host, int(port), client_id="c") as one:
        answer = one.ask("metadata", 7, topics=None, allow_auto_topic_creation=False)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, errors) == (130, "")
    assert {topic.name: len(topic.partitions) for topic in answer.topics} == {
        "logs": 3,
        "orders": 6,
    }


@pytest.mark.parametrize("given", [["--topic", "orders"], ["--topic", "orders=0"]])
def test_the_command_refuses_topics_without_a_count(
    given: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", *given]) == 2
    assert "--topic: " in capsys.readouterr().err
