# SPDX-License-Identifier: Apache-2.0
"""Checks, before a long job, that the executors have the driver's version of this package."""

import sys
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as TimedOut

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import kafka_rebalance._core as _core
from kafka_rebalance.errors import SparkFailedError
from kafka_rebalance.frozen import Frozen

from .session import HELP, spark_errors


class ExecutorPython(Frozen):
    """The Python of one executor. `missing` is the error if an import failed in it, else None."""

    host: str
    executable: str
    python: str
    version: str | None
    missing: str | None


def probe_executors(
    spark: SparkSession, *, tasks: int = 4, seconds: float = 120.0
) -> list[ExecutorPython]:
    """Runs small tasks that import this package, and returns the Pythons of their executors.

    Spark decides which executors run the tasks. Errors: SparkFailedError with one sentence if a
    task lacks pyarrow, or has another version of this package or of Python than the driver; also if
    the tasks do not finish within `seconds`, because a job might then wait forever.
    """
    frame = _pythons(spark, tasks)
    tag = "kafka-rebalance probe"
    pool = ThreadPoolExecutor(1)

    def collect() -> list[ExecutorPython]:
        spark.addTag(tag)
        with spark_errors():
            return [ExecutorPython(*row) for row in frame.collect()]

    try:
        workers = pool.submit(collect).result(timeout=seconds)
    except TimedOut:
        spark.interruptTag(tag)
        problem = "no executor has run a task; is one started, and has it a free core?"
        raise SparkFailedError(f"Spark: {problem} (waited {seconds:g} s)") from None
    finally:
        pool.shutdown(wait=False)
    for worker in workers:
        _check(worker)
    return workers


def _pythons(spark: SparkSession, tasks: int) -> DataFrame:
    def look(_: int) -> tuple[str, str, str, str | None, str | None]:
        import platform
        import socket
        import sys

        version = missing = None
        try:
            import pyarrow  # noqa: F401

            import kafka_rebalance._core as _core

            version = _core.VERSION
        except ImportError as error:
            missing = str(error)
        return socket.gethostname(), sys.executable, platform.python_version(), version, missing

    columns = "host string, executable string, python string, version string, missing string"
    # useArrow=False, because an executor without pyarrow would fail before `look` runs.
    looked = f.udf(look, f"struct<{columns}>", useArrow=False)("id").alias("one")
    return spark.range(0, tasks, 1, tasks).select(looked).select("one.*").distinct()


def _check(worker: ExecutorPython) -> None:
    there = f"on an executor ({worker.host}, {worker.executable})"
    if worker.missing is not None:
        problem = f"{worker.missing} {there}"
    elif worker.version != _core.VERSION:
        problem = f"kafka_rebalance {worker.version} {there}, {_core.VERSION} here"
    elif worker.python.split(".")[:2] != [str(part) for part in sys.version_info[:2]]:
        problem = f"Python {worker.python} on an executor"
    else:
        return
    raise SparkFailedError(f"Spark: {problem}: {HELP}")
