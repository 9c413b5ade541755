# SPDX-License-Identifier: Apache-2.0
"""A standalone Spark cluster on loopback, from the jars of the installed pyspark."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

import pyspark

from kafka_rebalance.cli import submit as application
from tests.support.ports import free_ports

SPARK_HOME = Path(pyspark.__file__).parent
_WORKERS = 2


class Standalone:
    """A master and two workers of one core each; they end with the `with` block."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._port, *self._webui = map(str, free_ports(2 + _WORKERS))
        self.url = f"spark://127.0.0.1:{self._port}"
        self._running: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Standalone:
        master = ["Master", "--host", "127.0.0.1", "--port", self._port]
        self._start("master", [*master, "--webui-port", self._webui[-1]])
        self._wait("master", "Starting Spark master")
        for n in range(_WORKERS):
            name = f"worker-{n}"
            options = ["--host", "127.0.0.1", "--cores", "1", "--memory", "1g"]
            options += ["--webui-port", self._webui[n], "--work-dir", str(self._place / name)]
            self._start(name, ["Worker", *options, self.url])
        for n in range(_WORKERS):
            self._wait(f"worker-{n}", "Successfully registered with master")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in reversed(self._running):
            process.terminate()
        for process in self._running:
            process.wait(timeout=30)

    def workers_used(self) -> int:
        """Returns the number of workers that have run an executor."""
        places = [self._place / f"worker-{n}" for n in range(_WORKERS)]
        return sum(any(place.glob("app-*/*")) for place in places)

    def _start(self, name: str, words: list[str]) -> None:
        kind = words[0]
        main = f"org.apache.spark.deploy.{kind.lower()}.{kind}"
        # With PYTHONPATH, the executors would find this package even without the wheel.
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        environment |= {"SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": "127.0.0.1"}
        log = (self._place / f"{name}.log").open("wb")
        self._running.append(
            subprocess.Popen(
                [SPARK_HOME / "bin" / "spark-class", main, *words[1:]],
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        )

    def _wait(self, name: str, text: str) -> None:
        path = self._place / f"{name}.log"
        deadline = time.monotonic() + 120
        while not re.search(text, path.read_text(encoding="utf-8", errors="replace")):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{name}: {path.read_text(errors='replace')[-2000:]}")
            time.sleep(0.2)


def submit(url: str, options: list[str], words: list[str]) -> subprocess.CompletedProcess[str]:
    """Submits `kafka-rebalance fleet` to a cluster, as a user does from another machine."""
    assert application.__file__ is not None
    command: list[str] = [
        str(SPARK_HOME / "bin" / "spark-submit"),
        *("--master", url, "--executor-memory", "600m"),
        *("--conf", f"spark.pyspark.driver.python={sys.executable}"),
        *("--conf", "spark.log.level=ERROR"),
        *options,
        application.__file__,
        *words,
    ]
    environment = {**os.environ, "SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": "127.0.0.1"}
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        environment.pop(name, None)
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
