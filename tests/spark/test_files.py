# SPDX-License-Identifier: Apache-2.0
"""Files that Spark's tasks read and write themselves have the answers of `assign`, each once."""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PythonException

import kafka_rebalance as kr
from kafka_rebalance.data import captured_lines
from kafka_rebalance.spark import (
    OUTPUT_SCHEMA,
    SchemaError,
    assign_files,
    assign_groups,
    compare_files,
    compare_groups,
    plan_files,
    plan_groups,
)
from kafka_rebalance.spark.jobs import read_groups

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GOOD = [line for line in captured_lines() if '"error"' not in line]


def expected(case: dict[str, Any], assignor: str | None = None) -> list[tuple[str, str, int]]:
    """Returns the answer of `assign`, which reads no files."""
    answer = kr.assign(kr.GroupSpec.from_dict(case), assignor)
    return [(member, *tp) for member, held in answer.items() for tp in held]


def owners(row: dict[str, Any]) -> list[tuple[str, str, int]]:
    return [
        (member["member_id"], run["topic"], p)
        for member in row["assignment"]
        for run in member["partitions"]
        for p in run["partitions"]
    ]


def rows(path: Path) -> list[dict[str, Any]]:
    table: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return table


def copies(count: int) -> list[dict[str, Any]]:
    """Returns captured groups, each with its own id and note."""
    cases = [json.loads(line) for line in GOOD]
    return [
        {**cases[i % len(cases)], "group_id": f"g{i}", "note": {"n": i, "tags": [f"t{i}"]}}
        for i in range(count)
    ]


def plain(row: Any) -> Any:
    return row.asDict(recursive=True)


def same(left: DataFrame, right: DataFrame) -> bool:
    assert left.columns == right.columns
    in_order = [
        sorted((plain(row) for row in one.collect()), key=lambda row: str(row["group_id"]))
        for one in (left, right)
    ]
    return in_order[0] == in_order[1]


def test_row_groups_are_each_read_once(spark: SparkSession, tmp_path: Path) -> None:
    """Row groups of several sizes are cut into several tasks; kept columns are unchanged."""
    cases = copies(200)
    table = pa.Table.from_pylist(cases)
    (tmp_path / "in").mkdir()
    pq.write_table(table.slice(0, 120), tmp_path / "in" / "a.parquet", row_group_size=7)
    pq.write_table(table.slice(120), tmp_path / "in" / "b.parquet", row_group_size=50)
    for tasks in (1, 3, 12):
        target = tmp_path / f"out{tasks}"
        done = assign_files(spark, f"{tmp_path}/in", str(target), keep=["note"], tasks=tasks)
        assert (done.groups, done.errors, done.never_ends) == (200, 0, 0)
        found = {row["group_id"]: row for row in rows(target)}
        assert len(rows(target)) == len(found) == 200
        for case in cases:
            row = found[case["group_id"]]
            assert owners(row) == expected(case)
            assert row["note"] == case["note"]
        names = sorted(path.name for path in target.iterdir())
        assert names[0] == "_SUCCESS"
        assert all(name.startswith("part-") for name in names[1:])
    frame = spark.read.parquet(str(tmp_path / "out3"))
    assert frame.drop("note").schema == spark.createDataFrame([], OUTPUT_SCHEMA).schema


def test_the_answers_are_those_of_the_functions_for_frames(
    spark: SparkSession, tmp_path: Path
) -> None:
    cases = copies(30)
    for case in cases[::3]:
        case["changes"] = ["add-members=1"]
    source = str(tmp_path / "in.parquet")
    pq.write_table(pa.Table.from_pylist(cases), source)
    groups = spark.read.parquet(source)
    planned, compared = str(tmp_path / "plans"), str(tmp_path / "compared")
    for changes in (["add-members=2"], None):
        done = plan_files(spark, source, planned, changes=changes, overwrite=True)
        assert done.groups == 30
        assert same(spark.read.parquet(planned), plan_groups(groups, changes=changes))
    compare_files(spark, source, compared, changes=["remove-members=1"])
    assert same(spark.read.parquet(compared), compare_groups(groups, changes=["remove-members=1"]))
    assign_files(spark, source, str(tmp_path / "range"), assignor="range")
    assert same(
        spark.read.parquet(str(tmp_path / "range")), assign_groups(groups, assignor="range")
    )


def test_lines_of_every_kind_in_every_cut(spark: SparkSession, tmp_path: Path) -> None:
    """Bad, blank and huge lines harm no other line; a line is in one task, wherever the file is
    cut.
    """
    cases = copies(60)
    lines = [json.dumps(case).encode() for case in cases]
    lines[5:5] = [b"{bad", b"", b"  \t", b"\xff\xfe", b'{"group_id": "huge", "x": "' + b"y" * 2**25]
    random.Random(4).shuffle(lines)
    place = tmp_path / "in" / "cluster=eu west"
    place.mkdir(parents=True)
    (place / "groups.jsonl").write_bytes(b"\r\n".join(lines))
    with gzip.open(place / "more.jsonl.gz", "wb") as more:
        more.write(b"\n".join(lines[:40]) + b"\n")
    ids = [json.loads(line).get("group_id") for line in lines if line.endswith(b"}")]
    more_ids = [json.loads(line).get("group_id") for line in lines[:40] if line.endswith(b"}")]
    for tasks in (1, 9):
        target = tmp_path / f"out{tasks}"
        done = assign_files(spark, (tmp_path / "in").as_uri(), target.as_uri(), tasks=tasks)
        found = rows(target)
        good = [row for row in found if row["error"] is None]
        assert sorted(row["group_id"] for row in good) == sorted([*ids, *more_ids])
        assert {row["cluster"] for row in found} == {"eu west"}
        by_id = {case["group_id"]: case for case in cases}
        assert all(owners(row) == expected(by_id[row["group_id"]]) for row in good)
        errors = [row["error"] for row in found if row["error"] is not None]
        assert done.errors == len(errors)
        assert {error.partition(" at")[0].partition(" of")[0] for error in errors} >= {
            "line: more than 33554432 bytes",
            "line: not JSON: key must be a string",
        }
        assert sum("not UTF-8" in error for error in errors) >= 1


RETRIED = """
import sys
from kafka_rebalance.spark import assign_files
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[2,3]").config("spark.ui.enabled", "false")
spark = builder.getOrCreate()
print(assign_files(spark, sys.argv[1], sys.argv[2], tasks=4).groups)
spark.stop()
"""

# Workers import this module at their start. The first two tasks write their parts, then their
# process ends, as if the executor were lost.
FAILS = """
import os, pathlib
import kafka_rebalance.bulk.parts as parts
whole = parts.write_part
def write_part(job, number, splits):
    part = whole(job, number, splits)
    marks = pathlib.Path(os.environ["MARKS"])
    if len(list(marks.iterdir())) < 2:
        (marks / part.name).touch()
        raise RuntimeError("the executor is lost")
    return part
parts.write_part = write_part
"""


def test_a_task_that_runs_again_leaves_no_row_twice(tmp_path: Path) -> None:
    for name in ("marks", "site"):
        (tmp_path / name).mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(FAILS)
    source, target = tmp_path / "in.parquet", tmp_path / "out"
    pq.write_table(pa.Table.from_pylist(copies(80)), source, row_group_size=5)
    path = os.pathsep.join([str(tmp_path / "site"), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path, "MARKS": str(tmp_path / "marks")}
    command = [sys.executable, "-c", RETRIED, str(source), str(target)]
    run = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert run.stdout.split() == ["80"], run.stderr[-2000:]
    lost = {path.name for path in (tmp_path / "marks").iterdir()}
    assert len(lost) == 2
    assert "the executor is lost" in run.stderr
    assert not lost & {path.name for path in target.iterdir()}
    assert sorted(row["group_id"] for row in rows(target)) == sorted(f"g{i}" for i in range(80))
    assert not (target / "_temporary").exists()


def test_a_job_that_fails_leaves_the_old_output(spark: SparkSession, tmp_path: Path) -> None:
    source, target = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    pq.write_table(pa.Table.from_pylist(copies(20)), source / "a.parquet")
    assign_files(spark, str(source), str(target))
    before = sorted(target.iterdir())
    with pytest.raises(kr.GroupError, match="exists"):
        assign_files(spark, str(source), str(target))
    (source / "b.parquet").write_bytes(b"PAR1 is not a whole file")
    with pytest.raises(PythonException):
        assign_files(spark, str(source), str(target), overwrite=True)
    assert sorted(target.iterdir()) == before
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_wrong_columns_are_named_before_a_task_runs(spark: SparkSession, tmp_path: Path) -> None:
    source, target = str(tmp_path / "in.parquet"), str(tmp_path / "out")
    pq.write_table(pa.table({"group_id": ["g"], "topics": ["t"]}), source)
    with pytest.raises(SchemaError, match="topics: string in place of array"):
        assign_files(spark, source, target)
    pq.write_table(pa.Table.from_pylist(copies(20)), source)
    with pytest.raises(SchemaError, match=r"keep\[0\]: the groups have no column nothing"):
        assign_files(spark, source, target, keep=["nothing"])
    with pytest.raises(SchemaError, match="changes: missing"):
        plan_files(spark, source, target)
    with pytest.raises(kr.GroupError, match="format: records"):
        assign_files(spark, source, target, format="records")
    lines = tmp_path / "in.jsonl"
    lines.write_text(GOOD[0], encoding="utf-8")
    with pytest.raises(SchemaError, match="keep: contract lines have no columns"):
        assign_files(spark, str(lines), target, keep=["note"])
    assert not Path(target).exists()


def test_empty_files_are_an_empty_answer(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(b"")
    done = assign_files(spark, str(tmp_path / "in.jsonl"), str(tmp_path / "out"))
    assert done.groups == 0
    assert spark.read.parquet(str(tmp_path / "out")).count() == 0
    (tmp_path / "nothing").mkdir()
    with pytest.raises(kr.GroupError, match="source: there is no file"):
        assign_files(spark, str(tmp_path / "nothing"), str(tmp_path / "x"), format="lines")


@pytest.mark.parametrize("given", ["in", "in/a.parquet", "", "in/below", "link"])
def test_an_output_that_overlaps_the_input_is_refused(
    spark: SparkSession, tmp_path: Path, given: str
) -> None:
    """The output is the input, a file of it, above or below it, or a link to it."""
    source = tmp_path / "in"
    source.mkdir()
    (tmp_path / "link").symlink_to(source)
    pq.write_table(pa.Table.from_pylist(copies(20)), source / "a.parquet")
    for path in (str(source), f"{source}/*.parquet"):
        if (path, given) == (f"{source}/*.parquet", "in/below"):
            continue  # a new directory beside the files overwrites none of them
        with pytest.raises(kr.GroupError, match="overlaps the source, which would be"):
            assign_files(spark, path, f"{tmp_path}/{given}", overwrite=True)
    assert [path.name for path in source.iterdir()] == ["a.parquet"]


def test_columns_that_only_directories_name_are_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark has such columns, but the tasks, which read the files, know only the cluster."""
    source, target = tmp_path / "cluster=above" / "in", str(tmp_path / "out")
    place = source / "cluster=a+b" / "assignor=range" / "day=1"
    place.mkdir(parents=True)
    table = pa.Table.from_pylist(copies(20)).drop_columns("assignor")
    pq.write_table(table, place / "a.parquet")
    for keep in ([], ["day"]):
        with pytest.raises(SchemaError, match="assignor: a directory's name has it, not the files"):
            assign_files(spark, str(source), target, keep=keep)
    with pytest.raises(SchemaError, match="day: a directory's name has it"):
        assign_files(spark, str(source), target, assignor="range", keep=["day"])
    assign_files(spark, str(source), target, assignor="range")
    groups = spark.read.parquet(str(source))
    assert same(spark.read.parquet(target), assign_groups(groups, assignor="range"))
    assert {row["cluster"] for row in rows(Path(target))} == {"a+b"}
    assign_files(spark, str(place), target, assignor="range", overwrite=True)
    assert "cluster" not in spark.read.parquet(target).columns


def test_lines_have_the_cluster_below_their_source(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "cluster=above" / "in (1)"
    for name in ("cluster=a+b", "cluster=a%3Ab", "cluster=__HIVE_DEFAULT_PARTITION__", "none"):
        (source / name).mkdir(parents=True)
        (source / name / "g.jsonl").write_text(GOOD[0] + "\n", encoding="utf-8")
    assign_files(spark, str(source), str(tmp_path / "out"))
    found = [row["cluster"] for row in rows(tmp_path / "out")]
    assert sorted(found, key=str) == [None, None, "a+b", "a:b"]
    groups, _ = read_groups(spark, str(source))
    assert sorted((row["cluster"] for row in groups.collect()), key=str) == sorted(found, key=str)
    groups, _ = read_groups(spark, str(source / "none"))
    assert groups.columns == ["line"]


def test_kept_columns_that_differ_between_files_have_one_type(
    spark: SparkSession, tmp_path: Path
) -> None:
    source, target = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    bare = pa.Table.from_pylist(copies(20)).drop_columns("note")
    kept: dict[str, pa.Array | None] = {
        "a": pa.array(range(5), pa.int64()),
        "b": None,
        "c": pa.nulls(5),
        "d": pa.array(range(15, 20), pa.int32()),
    }
    for n, (name, numbers) in enumerate(kept.items()):
        part = bare.slice(5 * n, 5)
        whole = part if numbers is None else part.append_column("n", numbers)
        pq.write_table(whole, source / f"{name}.parquet")
    assign_files(spark, str(source), str(target), keep=["n"], tasks=1)
    numbered = {f"g{i}": None if 5 <= i < 15 else i for i in range(20)}
    assert {row["group_id"]: row["n"] for row in rows(target)} == numbered
    text = bare.slice(15).append_column("n", pa.array(["x"] * 5))
    pq.write_table(text, source / "d.parquet")
    with pytest.raises(PythonException, match=r"d\.parquet: n: string in place of int64"):
        assign_files(spark, str(source), str(target), keep=["n"], overwrite=True)


def test_the_number_of_tasks_and_the_scheme_are_checked(
    spark: SparkSession, tmp_path: Path
) -> None:
    source, target = tmp_path / "in.jsonl", str(tmp_path / "out")
    source.write_text(GOOD[0], encoding="utf-8")
    for tasks in (0, -1):
        with pytest.raises(kr.GroupError, match=f"tasks: {tasks} is less than 1"):
            assign_files(spark, str(source), target, tasks=tasks)
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    usual = hadoop.get("fs.defaultFS")
    hadoop.set("fs.defaultFS", "hdfs://name:8020")
    try:
        with pytest.raises(kr.GroupError, match="out needs a scheme, for example hdfs"):
            assign_files(spark, source.as_uri(), target)
        assert assign_files(spark, source.as_uri(), f"file:{target}").groups == 1
    finally:
        hadoop.set("fs.defaultFS", usual)
