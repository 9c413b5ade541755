# SPDX-License-Identifier: Apache-2.0
"""The fixtures of aiokafka's own tests, for a broker that is already running."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="class")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    asyncio.set_event_loop(made)
    yield made
    made.close()
    asyncio.set_event_loop(None)


@pytest.fixture(scope="class")
def setup_test_class(request: pytest.FixtureRequest, loop: asyncio.AbstractEventLoop) -> None:
    address = os.environ["SERVE_ADDRESS"]
    host, _, port = address.partition(":")
    test: Any = request.cls
    test.loop, test.hosts, test.kafka_version = loop, [address], "2.8.1"
    test.kafka_host, test.kafka_port = host, int(port)


@pytest.fixture(scope="class")
def setup_test_class_serverless(
    request: pytest.FixtureRequest, loop: asyncio.AbstractEventLoop
) -> None:
    test: Any = request.cls
    test.loop = loop
