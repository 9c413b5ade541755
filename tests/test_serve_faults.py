# SPDX-License-Identifier: Apache-2.0
"""Answers of `serve` that go wrong on purpose, older brokers, and a coordinator that moves."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

import kafka_rebalance as kr

pytest.importorskip("kio", reason="kio is not installed: pip install -e '.[serve]'")
pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")
pytest.importorskip("aiokafka", reason="no aiokafka: pip install -e '.[aiokafka]'")
pytest.importorskip("confluent_kafka", reason="no confluent-kafka: pip install -e '.[confluent]'")

from kafka_rebalance.serve.frames import APIS
from kafka_rebalance.testing import RunningBroker
from tests.parity.wire import Connection, readable
from tests.support.served_broker import (
    REQUESTS,
    TOPICS,
    address,
    by_hand,
    connection,
    join,
)
from tests.support.served_consumers import (
    CONSUMERS,
    GROUP,
    TOPIC,
    ConfluentByBroker,
    Consumer,
)
from tests.support.waiting import FAR_S, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KAFKA_NAMES = {one: one.title().replace("_", "") for one in APIS}


def codes(answer: Any) -> Iterator[str]:
    """Yields the names of all error codes in an answer."""
    for name in getattr(answer, "__dataclass_fields__", ()):
        value = getattr(answer, name)
        if name in ("error_code", "partition_error_code"):
            yield value.name
        for one in value if isinstance(value, tuple) else (value,):
            yield from codes(one)


@pytest.mark.parametrize("api", APIS)
def test_every_request_can_be_refused(api: str) -> None:
    """Kafka's name of a request is its name in a rule; the next request is answered as before."""
    version = 9 if api == "offset_commit" else APIS[api].most  # 10 has topics by id
    with RunningBroker(TOPICS) as broker, connection(broker) as one:
        unlike = set(codes(one.ask(api, version, **REQUESTS[api])))
        broker.fault(KAFKA_NAMES[api], error="CLUSTER_AUTHORIZATION_FAILED")
        refused = list(codes(one.ask(api, version, **REQUESTS[api])))
        assert "cluster_authorization_failed" in refused
        assert set(codes(one.ask(api, version, **REQUESTS[api]))) <= {*unlike, "none", *_AGAIN}


# Errors of a request that is sent again.
_AGAIN = {"invalid_txn_state", "group_id_not_found", "unknown_member_id", "group_max_size_reached"}


def heartbeats(one: Connection, count: int) -> list[str]:
    fields = REQUESTS["heartbeat"]
    return [one.ask("heartbeat", 4, **fields).error_code.name for _ in range(count)]


def test_a_rule_counts_the_requests_of_its_client() -> None:
    usual, refused = "unknown_member_id", "not_coordinator"
    with (
        RunningBroker(TOPICS) as broker,
        connection(broker, "a") as first,
        connection(broker, "b") as second,
    ):
        broker.fault("Heartbeat", client_id="a", nth=2, times=2, error="NOT_COORDINATOR")
        assert heartbeats(second, 3) == [usual] * 3
        assert heartbeats(first, 5) == [usual, refused, refused, usual, usual]
        broker.fault("Heartbeat", error=16, times=9)
        broker.fault("Heartbeat", error="REBALANCE_IN_PROGRESS")  # the newest rule decides
        assert heartbeats(second, 2) == ["rebalance_in_progress", refused]
        broker.clear_faults()
        assert heartbeats(second, 1) == [usual]


def test_a_refused_commit_is_not_carried_out() -> None:
    with RunningBroker(TOPICS) as broker, connection(broker) as one:
        commit = {**REQUESTS["offset_commit"], "generation_id_or_member_epoch": -1, "member_id": ""}
        broker.fault("OffsetCommit", error="COORDINATOR_LOAD_IN_PROGRESS")
        for error, offset in [("coordinator_load_in_progress", -1), ("none", 1)]:
            assert list(codes(one.ask("offset_commit", 9, **commit))) == [error]
            asked = [{"group_id": "g", "topics": [{"name": "orders", "partition_indexes": [0]}]}]
            (found,) = one.ask("offset_fetch", 9, groups=asked, require_stable=False).groups
            assert found.topics[0].partitions[0].committed_offset == offset


def test_a_late_answer_waits_for_the_stopped_clock() -> None:
    with (
        RunningBroker(TOPICS, stopped_clock=True) as broker,
        connection(broker, "a") as one,
        connection(broker, "b") as other,
        ThreadPoolExecutor() as pool,
    ):
        broker.fault("Heartbeat", client_id="a", delay_ms=5_000)
        late = pool.submit(heartbeats, one, 1)
        until("the answer is late", lambda: broker._server._asleep)
        broker.advance(4_999)
        assert heartbeats(other, 1) == ["unknown_member_id"]
        assert not late.done()
        broker.advance(1)
        assert late.result(FAR_S) == ["unknown_member_id"]


@pytest.mark.parametrize("version", [1, 2])
def test_version_1_of_offset_fetch_has_the_error_at_each_partition(version: int) -> None:
    """The response of version 1 has no other place for it, and no offset means no commit."""
    with RunningBroker(TOPICS) as broker, connection(broker) as one:
        broker.fault("OffsetFetch", error="NOT_COORDINATOR")
        answer = one.ask("offset_fetch", version, **REQUESTS["offset_fetch"])
        assert list(codes(answer)) == ["not_coordinator"]
        assert len(answer.topics) == (1 if version == 1 else 0)


def sent_by_hand(one: socket.socket) -> None:
    one.sendall(bytes.fromhex("0000000a 0012 0000 00000007 ffff"))  # ApiVersions 0


def test_a_connection_is_cut_in_the_middle_of_a_frame() -> None:
    with RunningBroker(TOPICS) as broker, by_hand(broker) as one:
        broker.fault("ApiVersions", cut_at=5)
        sent_by_hand(one)
        assert len(one.recv(99, socket.MSG_WAITALL)) == 5


def test_after_a_lost_answer_the_connection_is_silent() -> None:
    """The request was carried out: the group has its member."""
    with RunningBroker(TOPICS) as broker, connection(broker) as one, connection(broker) as other:
        broker.fault("JoinGroup", lost=True)
        with ThreadPoolExecutor() as pool:
            lost = pool.submit(join, one)
            until("there is a group", lambda: other.ask("list_groups", 4, states_filter=[]).groups)
            assert not lost.done()
            one._socket.shutdown(socket.SHUT_RDWR)
        assert lost.exception() is not None


def test_a_commit_on_a_slow_disk_is_answered_later(tmp_path: Path) -> None:
    partition = {"partition_index": 0, "committed_offset": 7, "committed_metadata": ""}
    asked = {"group_id": "g", "member_id": "", "generation_id_or_member_epoch": -1,
             "topics": [{"name": "orders", "partitions": [partition]}]}  # fmt: skip
    with (
        RunningBroker(TOPICS, stopped_clock=True, log_dir=tmp_path) as broker,
        connection(broker) as one,
    ):
        broker.slow_disk(60_000)
        one.send("offset_commit", 2, **asked, retention_time=-1)
        until("a write that waits for the disk", lambda: bool(broker._server._asleep))
        broker.advance(59_999)
        assert not readable([one], 0.2)
        broker.advance(1)
        assert readable([one], 15)
        answer = one.receive()
        assert answer is not None
        assert list(codes(answer)) == ["none"]
        one.send("offset_commit", 2, **asked, retention_time=-1)  # the broker ends in the midst
        until("a write that waits for the disk", lambda: bool(broker._server._asleep))
    with RunningBroker(TOPICS) as broker, pytest.raises(ValueError, match="log_dir: "):
        broker.slow_disk(1)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"api": "Vote", "error": 16}, "api: 'Vote' is not a request that is answered here"),
        ({"api": "Fetch"}, "error: give one of error, delay_ms, lost and cut_at"),
        ({"api": "Fetch", "error": "NO"}, "error: 'NO' is not an error; give Kafka's name"),
        ({"api": "Fetch", "error": "NONE"}, "error: 'NONE' is not an error; give Kafka's name"),
        ({"api": "Fetch", "error": 0}, "error: 0 is not an error; give Kafka's name"),
        ({"api": "Fetch", "delay_ms": -1}, "delay_ms: -1 is less than 0"),
        ({"api": "Fetch", "cut_at": -1}, "cut_at: -1 is less than 0"),
        ({"api": "Fetch", "error": 16, "nth": 0}, "nth, times: 0, 1: both count from 1"),
    ],
)
def test_a_wrong_rule_names_its_field(wrong: dict[str, Any], message: str) -> None:
    with RunningBroker(TOPICS) as broker, pytest.raises(kr.GroupError, match=message):
        broker.fault(**wrong)


# Older brokers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kafka", ["2.8", "3.9", "4.0"])
def test_an_older_broker_answers_its_versions(kafka: str) -> None:
    """kafka-python lists the versions of each Kafka; none is answered that a Kafka did not have."""
    from kafka.protocol.broker_version_data import BROKER_API_VERSIONS

    real = BROKER_API_VERSIONS[tuple(map(int, kafka.split(".")))]
    with RunningBroker(TOPICS, kafka=kafka) as broker, connection(broker) as one:
        answer = one.ask("api_versions", 3, **REQUESTS["api_versions"])
        for found in answer.api_keys:
            name = next(api for api, row in APIS.items() if row.key == found.api_key)
            least, most = real[found.api_key]
            assert found.max_version == min(most, APIS[name].most), name
            assert least <= found.max_version
        listed = {found.api_key for found in answer.api_keys}
        assert listed == {row.key for row in APIS.values() if row.key in real}
        with pytest.raises(Exception, match=r"closed|ended|reset|0 bytes"):
            one.ask("offset_commit", 10, **REQUESTS["offset_commit"])


def test_an_unknown_version_of_kafka_is_named() -> None:
    with pytest.raises(
        kr.GroupError, match=r"kafka: '1.0' is not known; give one of 2.8, 3.9, 4.0"
    ):
        RunningBroker(TOPICS, kafka="1.0")


@pytest.mark.parametrize("kafka", ["2.8", "3.9", "4.0"])
def test_consumers_read_from_an_older_broker(kafka: str) -> None:
    kinds = [one for one in CONSUMERS if one is not ConfluentByBroker or kafka == "4.0"]
    with RunningBroker({TOPIC: 1}, kafka=kafka) as broker:
        broker.produce(TOPIC, b"a")
        for kind in kinds:
            with closing(kind(broker.address, "c")) as consumer:
                assert consumer.goes_on_at(0) == 0


# The coordinator moves ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", CONSUMERS)
def test_a_consumer_finds_the_coordinator_that_moved(kind: type[Consumer], tmp_path: Path) -> None:
    with RunningBroker({TOPIC: 1}, log_dir=tmp_path) as broker:
        broker.produce(TOPIC, b"a", b"b", b"c")
        with closing(kind(broker.address, "c")) as consumer:
            assert consumer.goes_on_at(0) == 0
            broker.move_coordinator()
            with connection(broker) as one:
                answer = one.ask("find_coordinator", 4, key_type=0, coordinator_keys=[GROUP])
                (found,) = answer.coordinators
                assert found.port != address(broker)[1]
                assert heartbeats(one, 1) == ["not_coordinator"]
            consumer.commit(0, 2)
            with closing(Connection(found.host, found.port, client_id="d")) as one:
                topics = [{"name": TOPIC, "partition_indexes": [0]}]
                answer = one.ask("offset_fetch", 5, group_id=GROUP, topics=topics)
                assert answer.topics[0].partitions[0].committed_offset == 2
