# SPDX-License-Identifier: Apache-2.0
"""Columns in `keep` leave each function as they came in, beside the answer of their own row."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from kafka_rebalance.data import captured_lines
from kafka_rebalance.spark import (
    INPUT_SCHEMA,
    GroupRecords,
    SchemaError,
    assign_groups,
    assign_owners,
    compare_groups,
    plan_each_change,
    plan_groups,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES = [json.loads(line) for line in captured_lines() if '"error"' not in line]
MORE = "`team.name` string, seen timestamp, tags map<string, array<double>>"


def more(i: int) -> dict[str, Any]:
    return {
        "team.name": f"team {i}" if i % 3 else None,
        "seen": datetime(2026, 1, 1, 12, i),
        "tags": {f"k{i}": [i / 4, None]},
    }


def frame(spark: SparkSession) -> Any:
    rows = [{**case, **more(i)} for i, case in enumerate(CASES)]
    return spark.createDataFrame(rows, f"cluster string, {INPUT_SCHEMA}, {MORE}")


CALLS: dict[str, Any] = {
    "assign_groups": assign_groups,
    "assign_owners": assign_owners,
    "plan_groups": lambda groups, **given: plan_groups(groups, changes=["add-members=1"], **given),
    "plan_each_change": lambda groups, **given: plan_each_change(
        groups, ["", "add-members=1"], **given
    ),
    "compare_groups": compare_groups,
}


@pytest.mark.parametrize("name", CALLS)
def test_kept_columns_come_out_unchanged(spark: SparkSession, name: str) -> None:
    groups, call = frame(spark), CALLS[name]
    keep = ["tags", "team.name", "seen"]
    answers = call(groups, keep=keep)
    assert answers.columns[-3:] == keep
    for column in keep:
        assert answers.schema[column] == groups.schema[column]
    without = call(groups)
    assert answers.columns[:-3] == without.columns
    found = [row.asDict(recursive=True) for row in answers.collect()]
    expected = {case["group_id"]: more(i) for i, case in enumerate(CASES)}
    assert [{key: row[key] for key in keep} for row in found] == [
        {key: expected[row["group_id"]][key] for key in keep} for row in found
    ]
    plain = [row.asDict(recursive=True) for row in without.collect()]
    assert [{key: row[key] for key in without.columns} for row in found] == plain


def test_what_cannot_be_kept(spark: SparkSession) -> None:
    groups = frame(spark)
    wrong: dict[str, Any] = {
        r"keep\[1\]: assignor is a column of the answers": ["seen", "assignor"],
        r"keep\[0\]: cluster is a column of the answers": ["cluster"],
        r"keep\[0\]: the groups have no column team": ["team"],
        r"no column seeen; did you mean seen\?": ["seeen"],
        r"keep\[1\]: seen is named twice": ["seen", "seen"],
        "keep: a text; give a list": "seen",
    }
    for problem, keep in wrong.items():
        with pytest.raises(SchemaError, match=problem):
            assign_groups(groups, keep=keep)
    with pytest.raises(SchemaError, match="keep: records have no other columns"):
        assign_groups(GroupRecords(groups, groups), keep=["seen"])


def test_a_column_that_is_read_can_be_kept_too(spark: SparkSession) -> None:
    rows = assign_groups(frame(spark), assignor="range", keep=["members"]).collect()
    for case, row in zip(CASES, rows, strict=True):
        ids = [member["member_id"] for member in case["members"]]
        assert [member["member_id"] for member in row["members"]] == ids
