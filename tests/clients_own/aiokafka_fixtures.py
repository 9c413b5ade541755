# SPDX-License-Identifier: Apache-2.0
"""The fixtures of aiokafka's own tests, for a broker that is already running.

`serve` makes no topic by itself, so a fixture makes each test's topics before the test begins.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

if TYPE_CHECKING:
    from collections.abc import Iterator

PARTITIONS = 2
TOPICS = ("topic1", "topic2", "st-topic1", "st-topic2")


@pytest.fixture(scope="class")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    asyncio.set_event_loop(made)
    yield made
    made.close()
    asyncio.set_event_loop(None)


async def _make(address: str, topics: list[str]) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=address)
    await admin.start()
    try:
        # If a topic already exists, only the response contains an error; nothing is raised.
        await admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in topics])
    finally:
        await admin.close()


@pytest.fixture(scope="class")
def setup_test_class(request: pytest.FixtureRequest, loop: asyncio.AbstractEventLoop) -> None:
    address = os.environ["SERVE_ADDRESS"]
    host, _, port = address.partition(":")
    test: Any = request.cls
    test.loop, test.hosts, test.kafka_version = loop, [address], "2.8.1"
    test.kafka_host, test.kafka_port = host, int(port)
    begin = test.setUp

    def set_up(self: Any) -> None:
        begin(self)
        loop.run_until_complete(_make(address, [self.topic, *TOPICS]))

    test.setUp = set_up


@pytest.fixture(scope="class")
def setup_test_class_serverless(
    request: pytest.FixtureRequest, loop: asyncio.AbstractEventLoop
) -> None:
    test: Any = request.cls
    test.loop = loop
