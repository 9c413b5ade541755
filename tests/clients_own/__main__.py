# SPDX-License-Identifier: Apache-2.0
"""Runs clients' own tests against `serve`: those that need one broker without security.

    python -m tests.clients_own kafka-python
    python -m tests.clients_own aiokafka --source CHECKOUT
    python -m tests.clients_own franz-go --source CHECKOUT
    python -m tests.clients_own librdkafka --source CHECKOUT [0041 …]

kafka-python's tests come from the source distribution of the installed version, which pip downloads
into build/. The others come from a checkout of the client's repository, at the tag of a version;
`go` runs those of franz-go, and those of librdkafka have been built before (`make`, then
`make -C tests build`); 0052 runs `$KAFKA_PATH/bin/kafka-topics.sh`. The tests stay unchanged, and
none of them is part of this project.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_rebalance.coordinator.config import CoordinatorConfig
from kafka_rebalance.testing import Limits, RunningBroker

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build" / "clients_own"

TESTS = {
    "kafka-python": tuple(
        f"test/integration/test_{one}_integration.py" for one in ("consumer", "producer", "admin")
    ),
    "aiokafka": tuple(
        f"tests/test_{one}.py"
        for one in (
            *("admin", "client", "conn", "consumer", "coordinator", "fetcher", "pep492"),
            *("producer", "sender", "transactional_consumer", "transactional_producer"),
        )
    ),
    "franz-go": (),
    "librdkafka": (),
}
RECORDS = "20000"
"""The records of franz-go's long tests, in place of 500,000."""
# By default, a test of librdkafka writes 500 MB into a partition, and expects them all.
LIMITS = Limits(partition_bytes=2**30, records_bytes=2**31)

NO_SERVICE = """
class ExternalService:
    def __init__(self, host, port): pass
    def open(self): pass
    def stop(self): pass
SpawnedService = None
"""


def kafka_python(directory: Path) -> None:
    """Downloads the source distribution and unpacks its tests."""
    name = f"kafka-python=={version('kafka-python')}"
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    subprocess.run([*download, "--no-binary", ":all:", "-d", str(BUILD), name], check=True)
    (archive,) = BUILD.glob("kafka_python-*.tar.gz")
    with tarfile.open(archive) as files:
        files.extractall(BUILD / "unpacked", filter="data")
    (unpacked,) = (BUILD / "unpacked").glob("kafka_python-*")
    shutil.copytree(unpacked / "test", directory / "test")
    # Without `__init__.py`, Python's own package `test` comes first. The distribution has no
    # service.py, which starts a broker's process.
    (directory / "test" / "__init__.py").touch()
    (directory / "test" / "service.py").write_text(NO_SERVICE, encoding="utf-8")


def aiokafka(directory: Path, source: Path) -> None:
    """Copies the tests; our fixtures replace those that start a broker in Docker."""
    shutil.copytree(source / "tests", directory / "tests")
    ours = Path(__file__).parent / "aiokafka_fixtures.py"
    shutil.copy(ours, directory / "tests" / "conftest.py")


def pytest_command(library: str) -> list[str]:
    options = ("-rA", "--tb=native", "-o", "addopts=", "-p", "no:cacheprovider")
    return [sys.executable, "-m", "pytest", *options, "--assert=plain", "--show-capture=no",
            *TESTS[library]]  # fmt: skip


def run_librdkafka(source: Path, numbers: Sequence[str], address: str) -> int:
    """Runs each test in a process of its own; returns how many failed."""
    tests, failed = source / "tests", 0
    config = BUILD / "librdkafka" / "test.conf"
    config.write_text(f"metadata.broker.list={address}\n", encoding="utf-8")
    every = sorted({path.name[:4] for path in tests.glob("0*.c*")})
    for number in numbers or every:
        more = {"TESTS": number, "RDKAFKA_TEST_CONF": str(config), "TEST_KAFKA_VERSION": "4.2.0"}
        more |= {"LD_LIBRARY_PATH": f"{source}/src:{source}/src-cpp", "BROKERS": address}
        command = ["./test-runner", "-p1", "-L"]
        log = BUILD / "librdkafka" / f"{number}.log"
        with log.open("w", encoding="utf-8") as out:
            done = subprocess.run(
                ["timeout", "600", *command],
                cwd=tests,
                env={**os.environ, **more},
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        print(number, "passed" if done.returncode == 0 else f"failed: {log}", flush=True)
        failed += done.returncode != 0
    return failed


def main() -> int:
    """Parses the command line, runs the tests; returns pytest's exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("library", choices=TESTS)
    parser.add_argument("numbers", nargs="*", help="tests of librdkafka; all by default")
    parser.add_argument("--source", type=Path, help="a checkout of the client's repository")
    options = parser.parse_intermixed_args()
    if options.library != "kafka-python" and options.source is None:
        parser.error("--source: missing; only kafka-python's source distribution has tests")
    shutil.rmtree(BUILD, ignore_errors=True)
    directory = BUILD / options.library
    directory.mkdir(parents=True)
    command = pytest_command(options.library)
    if options.library == "aiokafka":
        aiokafka(directory, options.source)
    elif options.library == "kafka-python":
        kafka_python(directory)
    else:
        directory = options.source.absolute() / "pkg" / "kgo"
        command = ["go", "test", "-v", "-timeout", "30m", "."]
    # kafka-python's test_group has sessions of 3 s.
    config = CoordinatorConfig(
        group_initial_rebalance_delay_ms=100,
        group_min_session_timeout_ms=1000,
        group_consumer_heartbeat_interval_ms=500,
        group_share_heartbeat_interval_ms=500,
    )
    made = 2 if options.library == "aiokafka" else 4
    with RunningBroker({"any": 1}, config=config, auto_create=made, limits=LIMITS) as broker:
        if options.library == "librdkafka":
            return run_librdkafka(options.source.absolute(), options.numbers, broker.address)
        settings = {
            "KAFKA_URI": f"kafka://{broker.address}",
            "KAFKA_VERSION": "4.1.0",
            "KAFKA_ROOT": str(directory),  # kafka-python checks only whether it exists
            "SERVE_ADDRESS": broker.address,
            "KGO_SEEDS": broker.address,
            "KGO_TEST_RF": "1",
            "KGO_TEST_RECORDS": RECORDS,
            "KGO_LOG_LEVEL": "none",
        }
        done = subprocess.run(command, cwd=directory, env={**os.environ, **settings})
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
