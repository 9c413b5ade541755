# SPDX-License-Identifier: Apache-2.0
"""Fixtures for all tests: the engine, and Kafka's own classes if their jar is built."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.support.oracle import JAR, SERVER_JAR, Oracle, missing_java_of_the_judges

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kafka_rebalance.assignors.registry import Engine

# There is no deadline: a slow machine must not fail a test. Every run uses the same examples.
settings.register_profile(
    "tests",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("tests")

# Texts in tests are as wide as without a terminal.
os.environ.pop("COLUMNS", None)

# Tests start many JVMs for Spark, each for a short time; this halves their CPU time.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


@pytest.hookimpl(tryfirst=True)  # xdist's own hook, which comes later, reads the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks live tests and Spark tests, so that each kind runs in one process of pytest-xdist."""
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
    """Runs Kafka's own classes; skips the test if Java or the jar is missing."""
    with _running(JAR) as running:
        yield running


@pytest.fixture(scope="session")
def server_oracle() -> Iterator[Oracle]:
    """Runs the brokers' assignors; skips the test without the jar, or without Java 17 or 18."""
    with _running(SERVER_JAR) as running:
        if missing := missing_java_of_the_judges():
            pytest.skip(missing)
        yield running


def _running(jar: Path) -> Oracle:
    if shutil.which("java") is None:
        pytest.skip("no `java` on PATH: install a Java runtime, 17 or newer")
    if not jar.is_file():
        pytest.skip(f"the oracle's jar is missing: `make {jar.stem}` builds it")
    return Oracle(jar)
