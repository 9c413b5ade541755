# SPDX-License-Identifier: Apache-2.0
"""Runs kafka-python's and aiokafka's own tests of groups against `serve`.

    python -m tests.clients_own kafka-python
    python -m tests.clients_own aiokafka --source CHECKOUT

Only tests that need no records run. kafka-python's tests come from the source distribution of the
installed version, which pip downloads into build/. aiokafka's source distribution contains no
tests, so its tests come from a checkout of its repository, at the tag of the installed version. The
tests stay unchanged, and none of them is part of this project.
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

from kafka_rebalance.coordinator.config import CoordinatorConfig
from kafka_rebalance.testing import RunningBroker

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build" / "clients_own"

TESTS = {
    "kafka-python": (
        "test/integration/test_consumer_integration.py::test_consumer",
        "test/integration/test_consumer_integration.py::test_consumer_topics",
        "test/integration/test_consumer_integration.py::test_paused",
        "test/integration/test_consumer_integration.py::test_group",
        "test/integration/test_consumer_integration.py::test_heartbeat_thread",
        "test/integration/test_admin_integration.py::test_describe_group_exists",
        "test/integration/test_admin_integration.py::test_create_delete_topics",
        "test/integration/test_admin_integration.py::test_create_partitions",
        "test/integration/test_admin_integration.py::test_list_partition_offsets",
    ),
    "aiokafka": ("tests/test_coordinator.py",),
}

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


def main() -> int:
    """Parses the command line, runs the tests; returns pytest's exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("library", choices=TESTS)
    parser.add_argument("--source", type=Path, help="a checkout of aiokafka's repository")
    options = parser.parse_args()
    if options.library == "aiokafka" and options.source is None:
        parser.error("--source: missing; aiokafka's source distribution has no tests")
    shutil.rmtree(BUILD, ignore_errors=True)
    directory = BUILD / options.library
    directory.mkdir(parents=True)
    if options.library == "aiokafka":
        aiokafka(directory, options.source)
    else:
        kafka_python(directory)
    # kafka-python's test_group has sessions of 3 s.
    config = CoordinatorConfig(
        group_initial_rebalance_delay_ms=100, group_min_session_timeout_ms=1000
    )
    with RunningBroker({"any": 1}, config=config) as broker:
        settings = {
            "KAFKA_URI": f"kafka://{broker.address}",
            "KAFKA_VERSION": "4.0.0",
            "KAFKA_ROOT": str(directory),  # kafka-python checks only whether it exists
            "SERVE_ADDRESS": broker.address,
        }
        command = [sys.executable, "-m", "pytest", "-rA", "--tb=native", "-o", "addopts="]
        done = subprocess.run(
            [
                *command,
                "-p",
                "no:cacheprovider",
                "--assert=plain",
                "--show-capture=no",
                *TESTS[options.library],
            ],
            cwd=directory,
            env={**os.environ, **settings},
        )
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
