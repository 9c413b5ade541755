# SPDX-License-Identifier: Apache-2.0
"""Unmodified clients produce records to `serve`, consume them, and go on from their commits."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("kio", reason="kio is not installed: pip install -e '.[serve]'")
pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")
pytest.importorskip("aiokafka", reason="no aiokafka: pip install -e '.[aiokafka]'")
pytest.importorskip("confluent_kafka", reason="no confluent-kafka: pip install -e '.[confluent]'")

from kafka_rebalance.testing import RunningBroker
from tests.support.java_consumers import JAVA_CONSUMERS, Java, missing_java
from tests.support.served_consumers import (
    CONSUMERS,
    TOPIC,
    Aiokafka,
    Confluent,
    Consumer,
    KafkaPython,
)
from tests.support.served_producers import CODECS, JAVA_PRODUCERS, PRODUCERS
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

PARTITIONS = 5
EACH = 20

JAVA_MARK = pytest.mark.live
every_consumer = pytest.mark.parametrize(
    "kind", [*CONSUMERS, *(pytest.param(one, marks=JAVA_MARK) for one in JAVA_CONSUMERS)]
)
every_producer = pytest.mark.parametrize(
    "name", [*PRODUCERS, *(pytest.param(one, marks=JAVA_MARK) for one in JAVA_PRODUCERS)]
)


@pytest.fixture
def broker() -> Iterator[RunningBroker]:
    with RunningBroker({TOPIC: PARTITIONS}) as running:
        yield running


def values(partition: int) -> list[str]:
    return [f"{partition} {number} é" for number in range(EACH)]


def got(consumer: Consumer, count: int) -> list[tuple[int, int, str]]:
    """Waits until the consumer has this number of records; returns them by partition."""
    until(f"{count} records at {consumer.client_id}", lambda: len(consumer.received) >= count)
    return sorted(consumer.received)


def skip_without_java(name: object) -> None:
    is_java = name in JAVA_PRODUCERS or (isinstance(name, type) and issubclass(name, Java))
    if is_java and (missing := missing_java()):
        pytest.skip(missing)


@every_producer
def test_records_are_kept_as_they_came(name: str, broker: RunningBroker) -> None:
    """Each codec has a partition; librdkafka reads all of them.

    kafka-python has snappy, lz4 and zstd only through further packages.
    """
    skip_without_java(name)
    produce, began_ms = {**PRODUCERS, **JAVA_PRODUCERS}[name], int(time.time() * 1000)
    for partition, one in enumerate(CODECS):
        codec = "gzip" if name == "kafka-python" and partition else one
        produce(broker.address, partition, values(partition), codec=codec)
    found = broker.records(TOPIC)
    wanted = [(p, at, one) for p in range(PARTITIONS) for at, one in enumerate(values(p))]
    assert [(one.partition, one.offset, (one.value or b"").decode()) for one in found] == wanted
    assert all(began_ms <= one.timestamp <= time.time() * 1000 for one in found)
    with closing(Confluent(broker.address, "c")) as consumer:
        assert got(consumer, len(wanted)) == wanted


@every_consumer
def test_a_consumer_goes_on_at_the_commit_of_another(
    kind: type[Consumer], broker: RunningBroker
) -> None:
    skip_without_java(kind)
    for partition in range(PARTITIONS):
        broker.produce(TOPIC, *(one.encode() for one in values(partition)), partition=partition)
    wanted = [(p, at, one) for p in range(PARTITIONS) for at, one in enumerate(values(p))]
    with closing(kind(broker.address, "a")) as first:
        assert got(first, len(wanted)) == wanted
        for partition in range(PARTITIONS):
            first.commit(partition, EACH - partition)
    with closing(kind(broker.address, "b")) as second:
        broker.produce(TOPIC, b"more", partition=0)
        again = [one for one in wanted if one[1] >= EACH - one[0]]
        assert got(second, len(again) + 1) == sorted([*again, (0, EACH, "more")])


READERS = {
    "kafka-python": KafkaPython,
    "aiokafka": Aiokafka,
    "confluent": Confluent,
    "java": Java,
    "java 3.9": Java,
}


@every_producer
def test_only_committed_transactions_are_read(name: str, broker: RunningBroker) -> None:
    skip_without_java(name)
    produce = {**PRODUCERS, **JAVA_PRODUCERS}[name]
    for partition, (end, values) in enumerate([("abort", ["no", "no"]), ("commit", ["a", "b"])]):
        produce(broker.address, partition, values, codec="none", end=end)
    broker.produce(TOPIC, b"after", partition=0)
    kind = type("Committed", (READERS[name],), {"isolation": "read_committed"})
    with closing(kind(broker.address, "c")) as consumer:
        wanted = [(0, 3, "after"), (1, 0, "a"), (1, 1, "b")]
        assert got(consumer, len(wanted)) == wanted
    assert len(broker.records(TOPIC)) == 5
