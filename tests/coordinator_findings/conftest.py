# SPDX-License-Identifier: Apache-2.0
"""The fixture `played`: every test that takes it runs on our coordinator and on Kafka's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kafka_rebalance.playback.driver import Driver
from tests.support.coordinator_oracle import JAR, CoordinatorOracle
from tests.support.played_coordinator import Answer, Played

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KAFKA = pytest.param(
    "Kafka's",
    marks=[
        pytest.mark.oracle,
        pytest.mark.skipif(not JAR.is_file(), reason="no oracle: run `make judges`"),
    ],
)


@pytest.fixture(scope="module", params=["ours", KAFKA])
def command(request: pytest.FixtureRequest) -> Iterator[Callable[[Answer], Answer]]:
    """Yields the function that plays a command: on our coordinator, or on Kafka's."""
    if request.param == "ours":
        yield Driver().command
        return
    yield request.getfixturevalue("kafkas_coordinator").command


@pytest.fixture(scope="module")
def kafkas_coordinator() -> Iterator[CoordinatorOracle]:
    """Yields Kafka's coordinator; tests of our own coordinator do not start it."""
    with CoordinatorOracle() as oracle:
        yield oracle


@pytest.fixture
def played(command: Callable[[Answer], Answer]) -> Played:
    """Returns a coordinator on which a test plays commands."""
    return Played(command)
