# SPDX-License-Identifier: Apache-2.0
"""Spark's workers run the driver's Python, in sessions of their own and through Spark Connect."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import kafka_rebalance as kr
from kafka_rebalance.data import captured_lines
from kafka_rebalance.errors import KafkaRebalanceError
from kafka_rebalance.spark.session import session

CONNECT = """
import json, sys
from pyspark.sql import SparkSession
from kafka_rebalance.data import captured_lines
from kafka_rebalance.spark import INPUT_SCHEMA, assign_groups, assign_udf, read_consumer_offsets
from kafka_rebalance.spark import register_functions
from kafka_rebalance.errors import SparkFailedError
spark = SparkSession.builder.remote("local[2]").getOrCreate()
cases = [case for case in map(json.loads, captured_lines()) if "error" not in case]
frame = spark.createDataFrame(cases, INPUT_SCHEMA)
rows = assign_groups(frame, assignor="sticky").collect()
column = assign_udf("sticky")("group_id", "topics", "members")
again = frame.select(column.alias("result")).collect()
register_functions(spark)
frame.createOrReplaceTempView("groups")
table = spark.sql("select * from kafka_assign_table(TABLE(groups), 'sticky')").collect()
print(len(rows), sum(row["error"] is None for row in rows),
      rows == [row["result"] for row in again], len(table))
try:
    read_consumer_offsets(spark, bootstrap_servers="127.0.0.1:1")
except SparkFailedError as error:
    print(error)
spark.stop()
"""


def test_a_spark_connect_server_that_is_not_there() -> None:
    with pytest.raises(KafkaRebalanceError, match=r"^sc://127\.0\.0\.1:1: no Spark Connect server"):
        session("none", remote="sc://127.0.0.1:1")


def not_activated(tmp_path: Path) -> dict[str, str]:
    """Returns an environment whose first `python3` cannot run, and that names no other Python."""
    other = tmp_path / "python3"
    other.write_text("#!/bin/sh\necho the wrong python3 >&2; exit 1\n", encoding="utf-8")
    other.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        environment.pop(name, None)
    return environment


def test_spark_connect_without_an_activated_environment(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", CONNECT],
        env=not_activated(tmp_path),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    count = str(sum('"error"' not in line for line in captured_lines()))
    answered, refused = run.stdout.splitlines()
    assert answered.split() == [count, count, "True", count], run.stderr[-2000:]
    assert 'os.environ["PYSPARK_PYTHON"] = sys.executable before the session' in refused


NOT_ACTIVATED = """
import sys
from kafka_rebalance.spark import INPUT_SCHEMA, assign_groups, assign_udf, read_consumer_offsets
from kafka_rebalance.spark import register_functions
from pyspark.sql import SparkSession

def by_frame(spark, frame):
    return assign_groups(frame, assignor="range")

def by_udf(spark, frame):
    answers = assign_udf("range")("group_id", "topics", "members")
    return frame.select(answers.alias("r")).select("r.*")

def by_sql(spark, frame):
    register_functions(spark)
    frame.createOrReplaceTempView("groups")
    return spark.sql("select * from kafka_assign_table(TABLE(groups), 'range')")

def by_registered(spark, frame):
    spark.udf.register("answered", assign_udf("range"))
    frame.createOrReplaceTempView("groups")
    return spark.sql("select inline(array(answered(group_id, topics, members))) from groups")

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
for answer in (by_frame, by_udf, by_sql, by_registered):
    spark = builder.getOrCreate()  # a new session, with the default Python again
    assert spark.sparkContext.pythonExec == "python3"
    rows = answer(spark, spark.read.schema(INPUT_SCHEMA).json(sys.argv[1])).collect()
    print(answer.__name__, [(row["group_id"], row["error"]) for row in rows])
    spark.stop()
spark = builder.getOrCreate()
print("by_source", read_consumer_offsets(spark, bootstrap_servers="127.0.0.1:1").columns[:2])
spark.stop()
"""


def test_workers_run_the_drivers_python_without_an_activated_environment(tmp_path: Path) -> None:
    group = kr.GroupSpec("g", (kr.Topic("t", 2),), (kr.Member("a", ("t",)),))
    line = tmp_path / "group.jsonl"
    line.write_text(group.to_json(), encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-c", NOT_ACTIVATED, str(line)],
        env=not_activated(tmp_path),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    answers = [
        f"{first} [('g', None)]" for first in ("by_frame", "by_udf", "by_sql", "by_registered")
    ]
    answers.append("by_source ['key', 'value']")  # Spark asks the Python of the source for them
    assert run.stdout.splitlines() == answers, run.stderr[-2000:]
