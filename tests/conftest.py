# SPDX-License-Identifier: Apache-2.0
"""Fixtures for all tests: the engine, and Kafka's own classes if their jar is built."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.support.oracle import JAR, Oracle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_rebalance.assignors.registry import Engine

# There is no deadline: a slow machine must not fail a test. Every run uses the same examples.
settings.register_profile(
    "tests",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("tests")


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups afterwards
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Assigns live tests to one worker and Spark tests to another (`-n 2 --dist loadgroup`)."""
    for item in items:
        if item.path.parent.name in ("live", "spark"):
            item.add_marker(pytest.mark.xdist_group(item.path.parent.name))


@pytest.fixture(params=["rust", "reference"])
def engine(request: pytest.FixtureRequest) -> Engine:
    """Runs the test with the compiled engine, then with the reference."""
    chosen: Engine = request.param
    return chosen


@pytest.fixture(scope="session")
def oracle() -> Iterator[Oracle]:
    """Starts Kafka's own classes. The test is skipped only if Java or the jar is missing."""
    if shutil.which("java") is None:
        pytest.skip("no `java` on the path: the oracle needs Java 17 or newer")
    if not JAR.is_file():
        pytest.skip("the oracle's jar is missing: `make oracle` builds it")
    with Oracle() as running:
        yield running
