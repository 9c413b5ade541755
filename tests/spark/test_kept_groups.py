# SPDX-License-Identifier: Apache-2.0
"""The table of current groups stays correct after repeated batches and kills, in any row order."""

from __future__ import annotations

import random
import shutil
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from kafka_rebalance.errors import KafkaRebalanceError, SchemaError
from kafka_rebalance.spark import current_groups, keep_current_groups, kept_groups, kept_records
from kafka_rebalance.spark.consumer_offsets import GROUP_KEYS, last_records
from kafka_rebalance.spark.kept_groups import CURRENT, Pointer, _KeptTable
from tests.test_records import TOPICS, captured

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

RECORDS = "key binary, value binary, partition int, offset bigint"

Record = tuple[Any, ...]


class Killed(BaseException):
    """Simulates a kill of the process."""


def log() -> list[Record]:
    """Returns a real log of group records in three partitions, each with its own offsets."""
    following = [0, 100, 7]
    rows = []
    for key, value in captured():
        partition = key[-1] % 3
        rows.append((key, value, partition, following[partition]))
        following[partition] += 1
    return rows


def compacted(rows: list[Record]) -> set[Record]:
    """Returns the last record of each key in each partition, by offset, without tombstones."""
    last: dict[Any, Record] = {}
    for row in sorted(rows, key=lambda row: int(row[-1])):
        last[(*row[:-4], row[-4], row[-2])] = row
    return {row for row in last.values() if row[-3] is not None}


def held(spark: SparkSession, path: Path, columns: str = RECORDS) -> set[Record]:
    names = [column.split()[0] for column in columns.split(", ")]
    rows = kept_records(spark, str(path)).select(*names).collect()
    found = [tuple(bytes(v) if isinstance(v, bytearray) else v for v in row) for row in rows]
    assert len(found) == len(set(found))
    return set(found)


def frame(spark: SparkSession, rows: list[Record], columns: str = RECORDS) -> DataFrame:
    return spark.createDataFrame(rows, columns)


def tables(path: Path) -> list[str]:
    return sorted(one.name for one in path.iterdir() if one.name.startswith("v-"))


def test_batches_add_up_whatever_is_replayed(spark: SparkSession, tmp_path: Path) -> None:
    """The log is applied in three batches with shuffled rows; each is followed by old records."""
    tmp_path /= "a path with blanks"
    rng = random.Random(3)
    rows = log()
    cuts = [0, len(rows) // 3, len(rows) // 2, len(rows)]
    table = _KeptTable(tmp_path, GROUP_KEYS, keys=[])
    for n, (start, end) in enumerate(pairwise(cuts)):
        batch = rows[start:end]
        rng.shuffle(batch)
        table.apply(frame(spark, batch), n)
        assert held(spark, tmp_path) == compacted(rows[:end])
        pointer = Pointer.read(tmp_path)
        table.apply(frame(spark, batch), n)  # the whole batch again
        table.apply(frame(spark, rows[: end - 2]), 0)  # a longer batch, as after a new checkpoint
        assert Pointer.read(tmp_path) == pointer
    assert held(spark, tmp_path) == compacted(rows)
    topics = spark.createDataFrame(list(TOPICS.items()), "name string, partitions int")
    groups = current_groups(kept_records(spark, str(tmp_path)), topics)
    assert groups.count() == len(compacted(rows)) > 10


def test_a_new_checkpoint_reads_from_the_beginning(spark: SparkSession, tmp_path: Path) -> None:
    """The first batch of a new checkpoint contains records that are already in the table."""
    rows = log()
    table = _KeptTable(tmp_path, GROUP_KEYS, keys=[])
    table.apply(frame(spark, rows[:20]), 0)
    table.apply(frame(spark, rows), 0)
    assert held(spark, tmp_path) == compacted(rows)


@pytest.mark.parametrize("step", ["before the table", "before the pointer", "after the pointer"])
def test_a_kill_at_each_step(
    spark: SparkSession, tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = log()
    half = len(rows) // 2
    table = _KeptTable(tmp_path, GROUP_KEYS, keys=[])
    table.apply(frame(spark, rows[:half]), 0)

    def killed(*_: Any, **__: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        if step == "before the table":
            patch.setattr(kept_groups, "last_records", killed)
        elif step == "before the pointer":
            patch.setattr(Pointer, "replace", killed)
        else:
            patch.setattr(_KeptTable, "_remove_others", killed)
        with pytest.raises(Killed):
            table.apply(frame(spark, rows[half:]), 1)
    was_replaced = step == "after the pointer"
    assert held(spark, tmp_path) == compacted(rows if was_replaced else rows[:half])
    again = _KeptTable(tmp_path, GROUP_KEYS, keys=[])
    again.apply(frame(spark, rows[half:]), 1)
    assert held(spark, tmp_path) == compacted(rows)
    pointer = Pointer.read(tmp_path)
    assert pointer is not None
    assert tables(tmp_path) == sorted([pointer.directory, *pointer.previous])


def test_a_pointer_that_was_not_replaced_in_full_is_not_seen(tmp_path: Path) -> None:
    Pointer(1, "v-00000001-00000000", {"0": 5}, ["X'0002'"]).replace(tmp_path)
    (tmp_path / f"{CURRENT}.12345678.tmp").write_text('{"version": 2, "dire', encoding="utf-8")
    pointer = Pointer.read(tmp_path)
    assert pointer is not None
    assert (pointer.version, pointer.next) == (1, {"0": 5})
    assert Pointer.read(tmp_path / "elsewhere") is None


def test_old_tables_go_and_other_files_stay(spark: SparkSession, tmp_path: Path) -> None:
    table = _KeptTable(tmp_path, GROUP_KEYS, keys=[])
    (tmp_path / "v-00000001-abcdef01").mkdir()  # left by a killed run
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    for n in range(5):
        table.apply(frame(spark, [(b"\0\2\0\1g", b"%d" % n, 0, n)]), n)
    assert [name[:10] for name in tables(tmp_path)] == ["v-00000003", "v-00000004", "v-00000005"]
    assert (tmp_path / "notes.txt").exists()
    [row] = held(spark, tmp_path)
    assert row == (b"\0\2\0\1g", b"4", 0, 4)


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        ("pointer gone", r"current\.json: is gone, v-00000002-\w+ is there"),
        ("pointer empty", r"current\.json: cannot be read: Expecting value"),
        ("pointer cut", r"current\.json: cannot be read: "),
        ("pointer of others", r"current\.json: cannot be read: .* unexpected keyword"),
        ("file gone", r"part-\S+\.parquet: is not there with its \d+ bytes"),
        ("file cut", r"part-\S+\.parquet: is not there with its \d+ bytes"),
        ("table gone", r"part-\S+\.parquet: is not there with its \d+ bytes"),
    ],
)
def test_a_damaged_table_is_never_read_as_a_smaller_one(
    spark: SparkSession, tmp_path: Path, damage: str, problem: str
) -> None:
    rows = log()
    half = len(rows) // 2
    table = _KeptTable(tmp_path, GROUP_KEYS, keys=[])
    table.apply(frame(spark, rows[:10]), 0)
    table.apply(frame(spark, rows[:half]), 1)
    pointer = tmp_path / CURRENT
    made = Pointer.read(tmp_path)
    assert made is not None
    file = tmp_path / made.directory / next(iter(made.files))
    match damage.split():
        case "pointer", "gone":
            pointer.unlink()
        case "pointer", "empty":
            pointer.write_text("")
        case "pointer", "cut":
            pointer.write_text(pointer.read_text()[:-20])
        case "pointer", *_:
            pointer.write_text('{"format": 2}')
        case "file", "gone":
            file.unlink()
        case "file", _:
            file.write_bytes(file.read_bytes()[:-1])
        case _:
            shutil.rmtree(file.parent)
    with pytest.raises(KafkaRebalanceError, match=f"{problem}.*; the table is damaged: remove"):
        kept_records(spark, str(tmp_path))
    with pytest.raises(KafkaRebalanceError, match=problem):
        table.apply(frame(spark, rows), 2)


def test_clusters_have_offsets_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    columns = f"cluster string, {RECORDS}"
    table = _KeptTable(tmp_path, GROUP_KEYS, keys=["cluster"])
    key = b"\0\2\0\1g"
    table.apply(frame(spark, [("one", key, b"a", 0, 50), (None, key, b"n", 0, 1)], columns), 0)
    table.apply(frame(spark, [("two", key, b"b", 0, 3), ("one", key, b"old", 0, 9)], columns), 1)
    assert held(spark, tmp_path, columns) == {
        ("one", key, b"a", 0, 50),
        ("two", key, b"b", 0, 3),
        (None, key, b"n", 0, 1),
    }
    pointer = Pointer.read(tmp_path)
    assert pointer is not None
    assert pointer.next == {"one/0": 51, "/0": 2, "two/0": 4}


def test_two_queries_on_one_table_are_noticed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = _KeptTable(tmp_path, GROUP_KEYS, keys=[])
    table.apply(frame(spark, [(b"\0\2\0\1g", b"a", 0, 0)]), 0)

    def while_another_writes(*arguments: Any, **named: Any) -> DataFrame:
        pointer = Pointer.read(tmp_path)
        assert pointer is not None
        Pointer(9, pointer.directory, {}, pointer.kinds).replace(tmp_path)
        return last_records(*arguments, **named)

    monkeypatch.setattr(kept_groups, "last_records", while_another_writes)
    with pytest.raises(KafkaRebalanceError, match="another query writes there"):
        table.apply(frame(spark, [(b"\0\2\0\1g", b"b", 0, 1)]), 1)


def test_wrong_uses_are_named(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(KafkaRebalanceError, match="no table is there yet"):
        kept_records(spark, str(tmp_path))
    stream = spark.readStream.format("rate").load()
    with pytest.raises(SchemaError, match=r"records\.key: missing"):
        keep_current_groups(stream, str(tmp_path))
    with pytest.raises(ValueError, match="s3a://bucket/groups is not a directory"):
        kept_records(spark, "s3a://bucket/groups")
    table = _KeptTable(tmp_path, GROUP_KEYS, keys=[])
    table.apply(frame(spark, [(b"\0\2\0\1g", b"a", 0, 0)]), 0)
    with pytest.raises(KafkaRebalanceError, match="another value of commits"):
        _KeptTable(tmp_path, ("X'0001'",), keys=[]).apply(frame(spark, []), 1)
    assert kept_records(spark, f"file://{tmp_path}").count() == 1
