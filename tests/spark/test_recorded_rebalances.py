# SPDX-License-Identifier: Apache-2.0
"""For records in any order, Spark returns the rebalances of the reader without Spark."""

from __future__ import annotations

import gzip
import json
import random
import re
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING, Any

import pytest

from kafka_rebalance.history.all_groups import rebalance_history as on_one_machine
from kafka_rebalance.history.coordinator_log import (
    message_of,
    read_coordinator_log,
    read_message,
)
from kafka_rebalance.history.log_causes import with_log
from kafka_rebalance.history.patterns import find_patterns
from kafka_rebalance.history.records import OffsetsRecord, read_records
from kafka_rebalance.spark import (
    HISTORY_SCHEMA,
    PATTERNS_SCHEMA,
    SchemaError,
    coordinator_events,
    rebalance_history,
    rebalance_patterns,
    with_broker_logs,
)
from tests.test_history import RELEASES, VECTORS, records_of
from tests.test_history_by_broker import RUN as BY_BROKER

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

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
    return _as_lists(on_one_machine(records))


def _as_lists(found: Iterable[Any]) -> list[dict[str, Any]]:
    return [json.loads(json.dumps(one.to_dict())) for one in found]


def test_rows_equal_those_of_one_machine(spark: SparkSession) -> None:
    """The logs of several brokers with equal group names are shuffled into one frame."""
    clusters = {release: records_of(release) for release in RELEASES}
    clusters["brokers assign"] = list(read_records(str(BY_BROKER)))
    sessions = {"share": 4_000}
    found = _rows(rebalance_history(_frame(spark, clusters), session_ms=sessions))
    for name, records in clusters.items():
        assert _of(found, name) == _as_lists(on_one_machine(records, session_ms=sessions))
    assert {row["cause"] for row in found if row["group_id"] == "share"} > {"gone"}


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


# Patterns and brokers' logs -----------------------------------------------------------------------


def _lines(release: str) -> list[str]:
    with gzip.open(VECTORS / f"kafka-{release}" / "broker.log.gz", "rt") as lines:
        return lines.read().splitlines()


def _log_frame(spark: SparkSession, clusters: dict[str, list[str]], directory: Path) -> DataFrame:
    """Writes a log for each cluster, and lets Spark read them as text."""
    frames = []
    for name, lines in clusters.items():
        path = directory / f"{name}.log"
        path.write_text("\n".join(lines), encoding="utf-8")
        frames.append(spark.read.text(str(path)).selectExpr("value", f"'{name}' as cluster"))
    return reduce(lambda a, b: a.unionByName(b), frames)


def test_causes_with_logs_equal_those_of_one_machine(spark: SparkSession, tmp_path: Path) -> None:
    """One broker's clock is in another zone; another broker's log has no lines about groups."""
    clusters = {release: records_of(release) for release in RELEASES}
    logs = {"4.4.0": _lines("4.4.0"), "3.6.2": _in_zone(_lines("3.6.2"), 5), "2.4.1": ["nothing"]}
    history = rebalance_history(_frame(spark, clusters))
    found = _rows(with_broker_logs(history, _log_frame(spark, logs, tmp_path)))
    changed = 0
    for name, records in clusters.items():
        rows = on_one_machine(records)
        expected = with_log(rows, read_coordinator_log(logs[name]))
        assert _of(found, name) == _as_lists(expected)
        changed += expected != rows
    assert changed == 2


def _in_zone(lines: list[str], hours: int) -> list[str]:
    """Returns the lines as a broker east of Greenwich writes them."""

    def moved(found: re.Match[str]) -> str:
        at = datetime.fromisoformat(found[1]) + timedelta(hours=hours)
        return f"[{at:%Y-%m-%d %H:%M:%S},"

    return [re.sub(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),", moved, line) for line in lines]


def test_late_writes_of_a_coordinator_are_a_cause_of_its_group(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The line names a timer, not a group; it stands before a generation's line "Stabilized"."""
    records = records_of("4.4.0")
    lines = _lines("4.4.0")
    place = next(i for i, line in enumerate(lines) if "shop" in line and "Stabilized" in line)
    time = lines[place].partition("]")[0]
    stuck = (
        f"{time}] ERROR [GroupCoordinator id=0] The write event CoordinatorWriteEvent(name=x) for "
        "the timer heartbeat-shop-member-1 failed due to x (org.apache.kafka.Y)"
    )
    message = message_of(stuck)
    assert message is not None
    event = read_message(*message)
    assert event is not None
    assert event.event == "write_stuck"
    lines.insert(place, stuck)
    history = rebalance_history(_frame(spark, {"c": records}))
    found = _rows(with_broker_logs(history, _log_frame(spark, {"c": lines}, tmp_path)))
    expected = with_log(on_one_machine(records), read_coordinator_log(lines))
    assert _of(found, "c") == _as_lists(expected)
    late = [row for row in expected if any(one.kind == "coordinator" for one in row.causes)]
    assert {row.group_id for row in late} == {"shop"}


def test_lines_that_no_expression_matches_have_no_event(
    spark: SparkSession, tmp_path: Path
) -> None:
    lines = ["[2026-01-01 00:00:00,000] INFO [GroupCoordinator 0]: Somersault (kafka.x)", "other"]
    events = coordinator_events(_log_frame(spark, {"c": lines}, tmp_path)).collect()
    assert [(row.event, row.message) for row in events] == [(None, "Somersault")]


def test_patterns_equal_those_of_one_machine(spark: SparkSession) -> None:
    clusters = {release: records_of(release) for release in RELEASES}
    history = rebalance_history(_frame(spark, clusters))
    found = [row.asDict(recursive=True) for row in rebalance_patterns(history).collect()]
    kinds = set()
    for name, records in clusters.items():
        expected = _as_lists(find_patterns(on_one_machine(records)))
        assert sorted(_of(found, name), key=str) == sorted(expected, key=str)
        kinds |= {one["kind"] for one in expected}
    assert len(kinds) > 2
    alone = rebalance_patterns(history.where("cluster = '4.4.0'").drop("cluster"), storm=13)
    assert alone.schema == spark.createDataFrame([], PATTERNS_SCHEMA).schema
    storms = find_patterns(on_one_machine(records_of("4.4.0")), storm=13)
    assert alone.count() == len(storms)
    with pytest.raises(SchemaError, match=r"history\.causes: missing"):
        rebalance_patterns(history.drop("causes"))
