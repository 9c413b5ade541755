# SPDX-License-Identifier: Apache-2.0
"""Records in Parquet: errors name a wrong column; times do not depend on the machine's zone."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from kafka_rebalance import GroupError
from kafka_rebalance.cli import main
from kafka_rebalance.history.records import OffsetsRecord, read_records

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("pyarrow", reason="no pyarrow: pip install -e '.[arrow]'")

import pyarrow as arrow
from pyarrow import parquet

TIME_MS = 1_700_000_000_123


def _written(directory: Path, **columns: Any) -> str:
    """Writes a file of one record, with some columns replaced by `columns`; returns its path."""
    plain = {
        "partition": arrow.array([7], arrow.int32()),
        "offset": [1],
        "timestamp": arrow.array([TIME_MS], arrow.timestamp("ms", "UTC")),
        "key": [b"k"],
        "value": [b"v"],
    }
    path = directory / "records.parquet"
    parquet.write_table(arrow.table(plain | columns), path)
    return str(path)


@pytest.mark.parametrize(
    ("column", "values", "problem"),
    [
        ("partition", ["7"], "its type is string, not a whole number"),
        ("offset", ["1"], "its type is string, not a whole number"),
        ("offset", [1.5], "its type is double, not a whole number"),
        ("timestamp", ["2026-01-01"], "its type is string, not a timestamp or milliseconds"),
        ("key", ["k"], "its type is string, not binary"),
        ("value", [3], "its type is int64, not binary"),
    ],
)
def test_a_column_of_a_wrong_type_is_named(
    column: str, values: list[Any], problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _written(tmp_path, **{column: values})
    with pytest.raises(GroupError) as raised:
        list(read_records(path))
    what = f"column {column}: {problem}; write it as Spark's Kafka source does"
    assert str(raised.value) == f"{path}: {what}"
    assert main(["history", path]) == 2
    assert what in capsys.readouterr().err


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("partition", arrow.int32()),
        ("offset", arrow.int64()),
        ("timestamp", arrow.timestamp("us", "UTC")),
        ("timestamp", arrow.int64()),
    ],
)
def test_a_null_is_named(column: str, kind: Any, tmp_path: Path) -> None:
    path = _written(tmp_path, **{column: arrow.array([None], kind)})
    with pytest.raises(GroupError) as raised:
        list(read_records(path))
    what = f"column {column}: null in a row; each record has one, so leave that row out"
    assert str(raised.value) == f"{path}: {what}"


def test_tombstones_alone_have_no_type(tmp_path: Path) -> None:
    """A column with only nulls is accepted; a null key is read as an empty one."""
    path = _written(tmp_path, key=arrow.nulls(1), value=arrow.nulls(1))
    assert list(read_records(path)) == [OffsetsRecord(7, 1, TIME_MS, b"", None)]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", None])
@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_times_do_not_depend_on_the_machines_zone(
    unit: str, zone: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark writes UTC, by default as INT96, which Arrow reads as nanoseconds without a zone."""
    factor = {"ms": 1, "us": 1_000, "ns": 1_000_000}[unit]
    finer = TIME_MS * factor + factor // 2  # Kafka's own times are whole milliseconds
    times = arrow.array([finer], arrow.timestamp(unit, zone))
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        (record,) = read_records(_written(tmp_path, timestamp=times))
    finally:
        monkeypatch.undo()
        time.tzset()
    assert record.timestamp_ms == TIME_MS


def test_whole_numbers_are_milliseconds(tmp_path: Path) -> None:
    (record,) = read_records(_written(tmp_path, timestamp=[TIME_MS]))
    assert record.timestamp_ms == TIME_MS
