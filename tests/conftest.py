# SPDX-License-Identifier: Apache-2.0
"""What many tests share: both engines, and Kafka's own classes when they are here."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.support.oracle import JAR, Oracle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_rebalance.assignors.registry import Engine

# A slow machine is no reason to fail: no deadline, and the same examples every time.
settings.register_profile(
    "tests",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("tests")


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With several workers (`pytest -n 2 --dist loadgroup`): one broker at a time, one Spark."""
    for item in items:
        if item.path.parent.name in ("live", "spark"):
            item.add_marker(pytest.mark.xdist_group(item.path.parent.name))


@pytest.fixture(params=["rust", "reference"])
def engine(request: pytest.FixtureRequest) -> Engine:
    """The compiled engine, then the readable one."""
    chosen: Engine = request.param
    return chosen


@pytest.fixture(scope="session")
def oracle() -> Iterator[Oracle]:
    """Kafka's own classes. Skips only when Java or the jar is missing; a broken oracle fails."""
    if shutil.which("java") is None:
        pytest.skip("no `java` on the path: the oracle needs Java 17 or newer")
    if not JAR.is_file():
        pytest.skip("the oracle's jar is missing: `make oracle` builds it")
    with Oracle() as running:
        yield running
