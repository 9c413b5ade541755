# SPDX-License-Identifier: Apache-2.0
"""Fixtures for all tests: the engine, and Kafka's own classes if their jar is built."""

from __future__ import annotations

import gc
import os
import shutil
import signal
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.support import scheduler, seeds, tiers
from tests.support.oracle import JAR, SERVER_JAR, STREAMS_JAR, Oracle, missing_java_of_the_judges

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from xdist.remote import Producer

    from kafka_rebalance.assignors.registry import Engine

# There is no deadline: a slow machine must not fail a test. Every run uses the same examples.
settings.register_profile(
    "tests",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.register_profile("quick", settings.get_profile("tests"), max_examples=25)
settings.load_profile("tests")

# Texts in tests are as wide as without a terminal. Python's readline, which pytest imports, sets
# COLUMNS for child processes, and os.environ does not show it.
os.environ.pop("COLUMNS", None)
os.unsetenv("COLUMNS")

# Where these are set, pytest compares the two sides of a failed assertion line by line, however
# long they are: 1,600 rows took more than two minutes, 8,000 rows hung the run.
for _name in ("CI", "BUILD_NUMBER"):
    os.environ.pop(_name, None)

# A shell lets its background jobs ignore Ctrl-C, and so the processes that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests start many JVMs for Spark, each for a short time; this halves their CPU time.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options of a run of everything."""
    parser.addoption(
        "--whole", action="store_true", help="run all tests, and laws with many fresh seeds"
    )
    parser.addoption("--first-seed", type=int, help="the first seed of laws and simulations")


def pytest_configure(config: pytest.Config) -> None:
    seeds.choose_first(config)
    if not config.option.whole:
        settings.load_profile("quick")
    if tiers.is_quick_run(config):
        tiers.forbid_processes()


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Prints the tier and the first seed; -q would hide a header."""
    tier = (
        "only quick tests (--whole runs all)" if tiers.is_quick_run(config) else "all that is named"
    )
    first = config.option.first_seed
    terminalreporter.write_line(f"tests: {tier}; first seed of laws: --first-seed {first}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    seeds.seeds_of(metafunc)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    seeds.add_the_seed(item, report)
    return report


@pytest.hookimpl(tryfirst=True)  # before `-m` reads the marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks tests, and keeps the quick ones; sorts them where many workers share them."""
    for item in items:
        for mark in tiers.marks(item):
            item.add_marker(mark)
    if hasattr(config, "workerinput"):
        items.sort(key=scheduler.urgency)
    if tiers.is_quick_run(config):
        config.hook.pytest_deselected(items=[one for one in items if not tiers.is_quick(one)])
        items[:] = filter(tiers.is_quick, items)


def pytest_collection_finish() -> None:
    """Spares each later collection of garbage the objects of thousands of tests."""
    gc.collect()
    gc.freeze()


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> scheduler.Scheduler:
    return scheduler.Scheduler(config, log)


@pytest.fixture
def first_seed(pytestconfig: pytest.Config) -> int:
    """Returns the seed of a test that draws all it needs from one seed; the run prints it."""
    seed: int = pytestconfig.option.first_seed
    return seed


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


@pytest.fixture(scope="session")
def streams_oracle() -> Iterator[Oracle]:
    """Runs the leader of classic Kafka Streams groups, whose orders are those of Java 17 and 18."""
    with _running(STREAMS_JAR) as running:
        if missing := missing_java_of_the_judges():
            pytest.skip(missing)
        yield running


def _running(jar: Path) -> Oracle:
    if shutil.which("java") is None:
        pytest.skip("no `java` on PATH: install a Java runtime, 17 or newer")
    if not jar.is_file():
        pytest.skip("the oracle's jar is missing: `make judges` builds it")
    return Oracle(jar)
