# SPDX-License-Identifier: Apache-2.0
"""The client process that `probe` starts by default: several consumers of one library.

    python -m kafka_rebalance.serve.probe_workers LIBRARY ADDRESS ASSIGNOR CONSUMERS

Each consumer has a group and a client id of its own, so each leads its group. Consumers join again
when SyncGroup is refused. The process ends when its standard input ends.
"""

import asyncio
import logging
import os
import sys
import threading
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import Any

from kafka_rebalance.errors import GroupError, MissingExtra

OWN_TOPIC = "kafka-rebalance-probe"
"""The topic that the consumers subscribe to; no case may have a topic of this name."""

CONSUMERS = {"confluent-kafka": 16, "kafka-python": 4, "aiokafka": 4}
"""Library -> consumers per process. librdkafka needs the most: it joins at most once a second."""
REFETCHES = ("confluent-kafka",)
"""The libraries that request metadata at each election; see `probed_client.py`."""

PATIENCE_S = 120.0
"""After this time without an answer to a case, `probe` restarts the process."""
_SESSION_MS = 30_000


def _named(client: int) -> str:
    return f"probe-{client}"


def _confluent(address: str, assignor: str, client: int) -> None:
    consumer = _package("confluent_kafka", "confluent").Consumer(
        {
            "bootstrap.servers": address,
            "group.id": _named(client),
            "client.id": _named(client),
            "partition.assignment.strategy": assignor,
            "enable.auto.commit": False,
            "session.timeout.ms": _SESSION_MS,
        }
    )
    consumer.subscribe([OWN_TOPIC])
    while True:
        consumer.poll(1.0)


def _settings(package: str, address: str, assignor: str, client: int) -> dict[str, Any]:
    """Returns the arguments of the consumers of kafka-python and aiokafka."""
    return {
        "bootstrap_servers": address,
        "group_id": _named(client),
        "client_id": _named(client),
        "partition_assignment_strategy": [_assignor(package, assignor)],
        "enable_auto_commit": False,
        "session_timeout_ms": _SESSION_MS,
        "metadata_max_age_ms": 20,
        "retry_backoff_ms": 5,
    }


def _kafka_python(address: str, assignor: str, client: int) -> None:
    consumer_of = _package("kafka", "kafka").KafkaConsumer
    consumer = consumer_of(OWN_TOPIC, **_settings("kafka", address, assignor, client))
    while True:
        consumer.poll(timeout_ms=100)


def _aiokafka(address: str, assignor: str, client: int) -> None:
    async def live() -> None:
        consumer_of = _package("aiokafka", "aiokafka").AIOKafkaConsumer
        consumer = consumer_of(OWN_TOPIC, **_settings("aiokafka", address, assignor, client))
        await consumer.start()
        await asyncio.Event().wait()

    asyncio.run(live())


_LIBRARIES: dict[str, Callable[[str, str, int], None]] = {
    "confluent-kafka": _confluent,
    "kafka-python": _kafka_python,
    "aiokafka": _aiokafka,
}
_STICKY = {
    "kafka": {"sticky": "sticky.sticky_assignor", "cooperative-sticky": "cooperative_sticky"},
    "aiokafka": {"sticky": "sticky.sticky_assignor"},
}


def _package(name: str, extra: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise MissingExtra(f"probe with {name}", extra) from None


def _assignor(package: str, name: str) -> Any:
    """Returns a new subclass of the assignor, so that consumers do not share the class's state."""
    module = _STICKY[package].get(name, name)
    try:
        found = import_module(f"{package}.coordinator.assignors.{module}")
    except ImportError:
        raise GroupError("assignor", f"{package} has none of the name {name}") from None
    for one in vars(found).values():
        if getattr(one, "name", None) == name and one.__module__ == found.__name__:
            return type(one.__name__, (one,), {})
    raise GroupError("assignor", f"{package} has none of the name {name}")


def main(library: str, address: str, assignor: str, consumers: str) -> None:
    """Runs the consumers until the standard input ends."""
    logging.disable(logging.CRITICAL)
    live = _LIBRARIES[library]
    for client in range(int(consumers)):
        thread = threading.Thread(target=_or_end, args=(live, address, assignor, client))
        thread.daemon = True
        thread.start()
    sys.stdin.buffer.read()
    os._exit(0)


def _or_end(
    live: Callable[[str, str, int], None], address: str, assignor: str, client: int
) -> None:
    """Runs a consumer; if it fails, ends the process, so that `probe` does not wait for it."""
    try:
        live(address, assignor, client)
    except Exception:
        traceback.print_exc()
        os._exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
