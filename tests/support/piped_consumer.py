# SPDX-License-Identifier: Apache-2.0
"""Polls a Python client's consumer in a process of its own, as its parent process asks.

The parent sends ("subscribe", topics) and ("close", ()) through a pipe. The functions return once
the consumer is closed. If the parent has ended, kafka-python's consumer is closed, too; the others
raise EOFError. A single topic that begins with ^ is a pattern.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

import aiokafka
import confluent_kafka
import kafka

from tests.support.long_polls import poll_until

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from multiprocessing.connection import Connection

POLL_MS = 100


def run_kafka_python(
    assignors: Sequence[Any], topics: Iterable[str], settings: dict[str, Any], pipe: Connection
) -> None:
    consumer = kafka.KafkaConsumer(partition_assignment_strategy=list(assignors), **settings)
    consumer.subscribe(**_subscription(topics))
    ended = threading.Event()
    threading.Thread(target=_obey, args=(pipe, consumer, ended), daemon=True).start()
    poll_until(ended, consumer)


def _obey(pipe: Connection, consumer: kafka.KafkaConsumer, ended: threading.Event) -> None:
    with contextlib.suppress(EOFError):  # the parent has ended
        while (command := pipe.recv())[0] != "close":
            consumer.subscribe(list(command[1]))
    ended.set()


def _subscription(topics: Iterable[str]) -> dict[str, Any]:
    first, *others = topics
    return {"pattern": first} if first.startswith("^") else {"topics": [first, *others]}


def run_librdkafka(topics: Iterable[str], configs: dict[str, Any], pipe: Connection) -> None:
    consumer = confluent_kafka.Consumer(configs)
    consumer.subscribe(list(topics))
    while True:
        if pipe.poll():
            word, topics = pipe.recv()
            if word == "close":
                consumer.close()
                return
            consumer.subscribe(list(topics))
        consumer.poll(POLL_MS / 1000)


async def run_aiokafka(
    assignors: Sequence[Any], topics: Iterable[str], settings: dict[str, Any], pipe: Connection
) -> None:
    subscription = _subscription(topics)
    consumer = aiokafka.AIOKafkaConsumer(
        *subscription.get("topics", ()), partition_assignment_strategy=tuple(assignors), **settings
    )
    await consumer.start()
    try:
        if "pattern" in subscription:
            consumer.subscribe(**subscription)
        while True:
            if pipe.poll():
                word, subscribed = pipe.recv()
                if word == "close":
                    return
                consumer.subscribe(topics=subscribed)
            await consumer.getmany(timeout_ms=POLL_MS)
    finally:
        await consumer.stop()
