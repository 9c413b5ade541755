# SPDX-License-Identifier: Apache-2.0
"""Starts real clients with given settings, and returns why one refuses them."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from tests.support.java_consumers import Java

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_rebalance.settings.clients import Library

RANGE = "org.apache.kafka.clients.consumer.RangeAssignor"
COOPERATIVE = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
_NOWHERE = "127.0.0.1:1"


def refusal(library: Library, given: Mapping[str, Any], address: str = _NOWHERE) -> str | None:
    """Returns the error of a consumer's constructor; None if the consumer starts."""
    make = {"java": _java, "librdkafka": _confluent, "kafka-python": _python, "aiokafka": _aio}
    try:
        make[library]({**given}, address)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def _java(given: dict[str, Any], address: str) -> None:
    class Configured(Java):
        def open(self) -> None:
            raise NotImplementedError

    one = Configured.__new__(Configured)
    one._name = "settings"
    one._ask(
        "open",
        topic="t",
        configs={
            "bootstrap.servers": address,
            "group.id": "g",
            **{name: str(value) for name, value in given.items()},
        },
    )
    one._ask("close")


def _confluent(given: dict[str, Any], _: str) -> None:
    import confluent_kafka

    logger = logging.getLogger("silent")
    logger.setLevel(logging.CRITICAL)
    confluent_kafka.Consumer({"group.id": "g", **given}, logger=logger).close()


def _python(given: dict[str, Any], address: str) -> None:
    import kafka
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor

    own = {"range": RangePartitionAssignor, "cooperative-sticky": CooperativeStickyAssignor}
    if "partition_assignment_strategy" in given:
        names = given["partition_assignment_strategy"]
        given["partition_assignment_strategy"] = [own[name] for name in names]
    settings = {"group_id": "g", "bootstrap_servers": address, **given}
    kafka.KafkaConsumer(**settings).close(autocommit=False)


def _aio(given: dict[str, Any], address: str) -> None:
    import aiokafka

    async def make() -> None:
        consumer = aiokafka.AIOKafkaConsumer(group_id="g", bootstrap_servers=address, **given)
        consumer._closed = True  # it was never started, so it must not be stopped

    asyncio.run(make())
