# SPDX-License-Identifier: Apache-2.0
"""If executors lack this package or pyarrow, the error is one sentence with a remedy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from unittest.mock import Mock

import pytest
from pyspark.cloudpickle import dumps

from kafka_rebalance import _core
from kafka_rebalance.errors import SparkFailedError
from kafka_rebalance.spark import coordinator_events, probe_executors
from kafka_rebalance.spark.session import HELP, sentence
from kafka_rebalance.spark.workers import map_in_workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Code that makes a package seem missing in a worker's Python.
HIDE = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hidden())
"""
SCRIPT = """
import os, sys
from kafka_rebalance.data import captured_lines
from kafka_rebalance.errors import KafkaRebalanceError
from kafka_rebalance.spark import assign_lines, probe_executors
from kafka_rebalance.spark.session import session, spark_errors
spark = session("probe", master="local[1]")
spark.sparkContext.pythonExec = {python!r}
spark.conf.set("spark.sql.execution.pyspark.python", {python!r})
lines = spark.createDataFrame([(line,) for line in captured_lines()], "line string")
def job():
    with spark_errors():
        assign_lines(lines, assignor="range").collect()
for work in (lambda: probe_executors(spark), job):
    try:
        work()
    except KafkaRebalanceError as error:
        print(error)
spark.stop()
"""


@pytest.mark.parametrize("module", ["kafka_rebalance", "pyarrow"])
def test_a_missing_wheel_is_one_sentence(tmp_path: Path, module: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(HIDE.format(module=module), encoding="utf-8")
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\nPYTHONPATH={tmp_path}:"$PYTHONPATH" exec {sys.executable} "$@"\n',
        encoding="utf-8",
    )
    python.chmod(0o755)
    script = SCRIPT.format(python=str(python))
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False
    )
    probed, ran = run.stdout.splitlines()
    assert probed.startswith(f"Spark: No module named '{module}' on an executor (")
    assert probed.endswith("ship the environment with the job, see docs/cluster.md")
    if module == "kafka_rebalance":  # found by our code in the worker, as the probe does
        assert ran == probed
    else:  # Spark's worker needs pyarrow before it runs our code
        advice = "ship the environment with the job, see docs/cluster.md"
        assert ran == f"Spark: the executors' Python has no module {module}: {advice}"


def test_the_work_brings_its_advice_along(tmp_path: Path) -> None:
    """The work of a job, loaded by a Python without the package, raises the sentence."""
    frame, work = Mock(), cast("Any", coordinator_events)  # any function of the package will do
    map_in_workers(frame, work, "a int")
    shipped = tmp_path / "work"
    pickle_whole: Any = dumps  # pyspark has no types for it
    shipped.write_bytes(pickle_whole(frame.mapInArrow.call_args.args[0]))
    code = HIDE.format(module="kafka_rebalance")
    code += f"import pickle\npickle.load(open({str(shipped)!r}, 'rb'))(iter(()))\n"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    last = run.stderr.splitlines()[-1]
    assert last.startswith("ImportError: No module named 'kafka_rebalance' on an executor (")
    assert last.endswith(f", {sys.executable}): {HELP}")
    assert f"ImportError: {sentence(run.stderr)}" == last


def test_executors_that_have_it(spark: SparkSession) -> None:
    (worker,) = probe_executors(spark, tasks=2)
    assert worker.version == _core.VERSION
    assert worker.executable == sys.executable


def test_a_cluster_that_does_not_answer(spark: SparkSession) -> None:
    with pytest.raises(SparkFailedError, match="no executor has run a task; is one started"):
        probe_executors(spark, seconds=0.0)


WORKER = "\n  An exception was thrown from the Python worker:\nTraceback (most recent call last):\n"
CALLING = "An error occurred while calling o66.parquet.\n: java."


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (f"{WORKER}ModuleNotFoundError: No module named 'pyarrow'", "no module pyarrow: ship the"),
        (f'{CALLING}io.IOException: Cannot run program "./env/py": error=2', "no Python ./env/py"),
        (f"{WORKER}  File x\nValueError: 3 is not 4\n\tat java.lang.X", "ValueError: 3 is not 4"),
        (f"{CALLING}lang.RuntimeException: no S3\n\tat x", "java.lang.RuntimeException: no S3"),
        ("[PATH_NOT_FOUND] There is no x\nmore", "[PATH_NOT_FOUND] There is no x"),
    ],
)
def test_the_cause_is_found_in_sparks_texts(text: str, cause: str) -> None:
    found = sentence(text)
    assert cause in found
    assert "\n" not in found
