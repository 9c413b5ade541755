# SPDX-License-Identifier: Apache-2.0
"""Unmodified producers of the Python libraries and of Java, for tests of `serve`.

Each function produces strings to a partition of TOPIC and waits for the answers. `end` is "commit"
or "abort" for a transaction, else empty; `codec` is Kafka's name of a compression.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.support.java_consumers import Java, OldJava, java_produces
from tests.support.served_consumers import TOPIC
from tests.support.waiting import FAR_S

if TYPE_CHECKING:
    from collections.abc import Callable

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def kafka_python(
    address: str, number: int, values: list[str], *, codec: str = "none", end: str = ""
) -> None:
    import kafka

    more = {"transactional_id": f"kafka-python {number}"} if end else {}
    compression = None if codec == "none" else codec
    producer = kafka.KafkaProducer(
        bootstrap_servers=address, compression_type=compression, linger_ms=20, **more
    )
    if end:
        producer.init_transactions()
        producer.begin_transaction()
    sent = [producer.send(TOPIC, one.encode(), partition=number) for one in values]
    for one in sent:
        one.get(FAR_S)
    if end:
        (producer.commit_transaction if end == "commit" else producer.abort_transaction)()
    producer.close()


def confluent(
    address: str, number: int, values: list[str], *, codec: str = "none", end: str = ""
) -> None:
    import confluent_kafka

    settings: dict[str, Any] = {"bootstrap.servers": address, "compression.type": codec}
    settings |= {"transactional.id": f"confluent {number}"} if end else {}
    producer = confluent_kafka.Producer({**settings, "enable.idempotence": True, "linger.ms": 20})
    answers: list[Any] = []
    if end:
        producer.init_transactions(FAR_S)
        producer.begin_transaction()
    for one in values:
        producer.produce(
            TOPIC,
            one.encode(),
            partition=number,
            on_delivery=lambda error, _: answers.append(error),
        )
    assert producer.flush(FAR_S) == 0
    if end:
        (producer.commit_transaction if end == "commit" else producer.abort_transaction)(FAR_S)
    assert answers == [None] * len(values)


def aiokafka(
    address: str, number: int, values: list[str], *, codec: str = "none", end: str = ""
) -> None:
    from aiokafka import AIOKafkaProducer

    more = {"transactional_id": f"aiokafka {number}"} if end else {}

    async def produce() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=address,
            compression_type=None if codec == "none" else codec,
            enable_idempotence=True,
            linger_ms=20,
            **more,
        )
        async with producer:
            if end:
                await producer.begin_transaction()
            sent = [await producer.send(TOPIC, one.encode(), partition=number) for one in values]
            for one in sent:
                await one
            if end:
                await (
                    producer.commit_transaction()
                    if end == "commit"
                    else producer.abort_transaction()
                )

    asyncio.run(produce())


def java(
    kind: type[Java], address: str, number: int, values: list[str], *, codec: str, end: str = ""
) -> None:
    more = {"transactional_id": f"{kind.__name__} {number}"} if end else {}
    settings = {"bootstrap_servers": address, "compression_type": codec, "linger_ms": "20", **more}
    java_produces(kind, TOPIC, number, values, end, **settings)


PRODUCERS: dict[str, Callable[..., None]] = {
    "kafka-python": kafka_python,
    "confluent": confluent,
    "aiokafka": aiokafka,
}
JAVA_PRODUCERS: dict[str, Callable[..., None]] = {
    "java": partial(java, Java),
    "java 3.9": partial(java, OldJava),
}
