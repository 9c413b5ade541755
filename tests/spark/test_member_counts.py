# SPDX-License-Identifier: Apache-2.0
"""`scale_groups` returns the counts of `scale`, in one row for each group."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import kafka_rebalance as kr
from kafka_rebalance.data import captured_lines
from kafka_rebalance.spark import INPUT_SCHEMA, SCALE_SCHEMA, SchemaError, scale_groups

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from pyspark.sql import SparkSession


def expected(line: str) -> Any:
    try:
        return kr.scale(kr.GroupSpec.from_json(line), range(1, 9), samples=0).to_dict()
    except kr.GroupError as error:
        return str(error)


def found(row: Any) -> Any:
    fields = row.asDict(recursive=True)
    if fields["error"] is not None:
        assert fields["counts"] is None
        return fields["error"]
    return fields


def test_rows_and_lines_are_what_python_returns(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "groups.jsonl"
    lines = captured_lines()
    file.write_text("\n".join(lines), encoding="utf-8")
    by_id = {json.loads(line)["group_id"]: line for line in lines}
    rows = spark.read.schema(f"{INPUT_SCHEMA}, error string").json(str(file))
    texts = spark.createDataFrame([(line,) for line in lines], "line string")
    for frame in (rows, texts):
        answers = scale_groups(frame, range(1, 9))
        assert answers.schema == spark.createDataFrame([], SCALE_SCHEMA).schema
        answered = {row["group_id"]: found(row) for row in answers.collect()}
        assert answered.keys() == by_id.keys()
        for group_id, got in answered.items():
            told = expected(by_id[group_id])
            if isinstance(told, str):
                assert "PreparingRebalance" in got
                continue
            assert {name: got[name] for name in ("assignor", "members", "summary", "worth")} == {
                name: told[name] for name in ("assignor", "members", "summary", "worth")
            }
            assert got["counts"] == [
                {name: one[name] for name in got["counts"][0]} for one in told["counts"]
            ]


def test_bad_input_never_loses_good_input(spark: SparkSession) -> None:
    good = next(line for line in captured_lines() if "error" not in json.loads(line))
    bad = {
        "[1]": "line: a list is not an object",
        "3": "line: a number is not an object",
        "{": "line: not JSON: ",
        '{"group_id": "a", "topics": 3, "members": []}': "topics: a number is not a list",
        '{"group_id": "a", "topics": [], "members": [null]}': "members[0]: null is not an object",
        '{"group_id": "a", "error": "why"}': "why",
    }
    texts = spark.createDataFrame([(line,) for line in [*bad, good]], "line string")
    (*wrong, last) = scale_groups(texts.coalesce(1), [1]).collect()
    for row, (line, problem) in zip(wrong, bad.items(), strict=True):
        assert problem in row["error"]
        assert row["group_id"] == ("a" if "group_id" in line else None)
    assert last["summary"] is not None
    holes = spark.createDataFrame([("a", [None], [None])], SMALL_SCHEMA)
    (row,) = scale_groups(holes).collect()
    assert (row["group_id"], row["error"]) == ("a", "topics[0]: null is not an object")


SMALL_SCHEMA = (
    "group_id string, topics array<struct<name: string, partitions: int>>, "
    "members array<struct<member_id: string, topics: array<string>>>"
)


def test_frames_that_do_not_fit_are_refused(spark: SparkSession) -> None:
    with pytest.raises(SchemaError, match="topics: missing"):
        scale_groups(spark.createDataFrame([("g",)], "group_id string"))
    with pytest.raises(kr.GroupError, match=r"counts\[0\]: -1"):
        scale_groups(spark.createDataFrame([], INPUT_SCHEMA), [-1])
    with pytest.raises(SchemaError, match="give a DataFrame"):
        scale_groups([])  # type: ignore[arg-type]
