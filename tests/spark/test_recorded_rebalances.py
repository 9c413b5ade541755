# SPDX-License-Identifier: Apache-2.0
"""For records in any order, Spark returns the rebalances of the reader without Spark."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from kafka_rebalance.history.rebalance_history import rebalance_history as on_one_machine
from kafka_rebalance.history.records import OffsetsRecord, read_records
from kafka_rebalance.spark import HISTORY_SCHEMA, SchemaError, rebalance_history
from tests.test_history import RELEASES, VECTORS, records_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RECORDS = "key binary, value binary, partition int, offset bigint, timestamp timestamp"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _frame(spark: SparkSession, clusters: dict[str, list[OffsetsRecord]]) -> DataFrame:
    rows = [
        (
            one.key, one.value, one.partition, one.offset,
            EPOCH + timedelta(milliseconds=one.timestamp_ms), name,
        )
        for name, records in clusters.items()
        for one in records
    ]  # fmt: skip
    random.Random(5).shuffle(rows)
    return spark.createDataFrame(rows, f"{RECORDS}, cluster string")


def _rows(frame: DataFrame) -> list[dict[str, Any]]:
    found = [row.asDict(recursive=True) for row in frame.collect()]
    return sorted(found, key=lambda row: (row["written_ms"], row["partition"], row["offset"]))


def _of(rows: list[dict[str, Any]], cluster: str) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in row.items() if name != "cluster"}
        for row in rows
        if row["cluster"] == cluster
    ]


def _expected(records: list[OffsetsRecord]) -> list[dict[str, Any]]:
    """Returns the rows of the reader without Spark, with lists in place of tuples."""
    return [json.loads(json.dumps(row.to_dict())) for row in on_one_machine(records)]


def test_rows_equal_those_of_one_machine(spark: SparkSession) -> None:
    """The logs of several brokers, which have equal group names, are shuffled into one frame."""
    clusters = {release: records_of(release) for release in RELEASES}
    found = _rows(rebalance_history(_frame(spark, clusters)))
    for name, records in clusters.items():
        assert _of(found, name) == _expected(records)


def test_gaps_holes_and_broken_records_are_those_of_one_machine(spark: SparkSession) -> None:
    """One log has a corrupt value; another one lacks offsets, as after compaction."""
    path = str(VECTORS / "every_line-4.4.0.records.jsonl.gz")
    every = list(read_records(path))
    run = [
        one for one in records_of("4.4.0")
        if one.partition != 1 or not 20 <= one.offset < 60
    ]  # fmt: skip
    place = next(i for i, one in enumerate(every) if one.value and one.key[:2] == b"\0\2")
    every[place] = every[place]._replace(value=(every[place].value or b"")[:-1])
    frame = _frame(spark, {"every": every, "run": run})
    found = _rows(rebalance_history(frame))
    for name, records in (("every", every), ("run", run)):
        assert _of(found, name) == _expected(records)
    assert {row["gap_reason"][:9] for row in found if row["gap_reason"]} >= {"compacted"}
    assert [row["error"] for row in found if row["error"]] != []


def test_a_frame_without_cluster_has_the_columns_of_the_schema(spark: SparkSession) -> None:
    frame = _frame(spark, {"one": records_of("2.4.1")}).drop("cluster")
    history = rebalance_history(frame)
    assert history.schema == spark.createDataFrame([], HISTORY_SCHEMA).schema
    assert _rows(history) == _expected(records_of("2.4.1"))


def test_records_without_a_time_are_refused(spark: SparkSession) -> None:
    frame = _frame(spark, {"one": records_of("2.4.1")})
    with pytest.raises(SchemaError, match=r"records\.timestamp: missing"):
        rebalance_history(frame.drop("timestamp"))
    with pytest.raises(SchemaError, match=r"records\.timestamp: bigint in place of timestamp"):
        rebalance_history(frame.selectExpr("* except (timestamp)", "offset as timestamp"))
