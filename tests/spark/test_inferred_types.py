# SPDX-License-Identifier: Apache-2.0
"""Columns whose types Spark infers wrongly from JSON: the errors name the remedy."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from kafka_rebalance.spark import (
    INPUT_SCHEMA,
    SchemaError,
    assign_groups,
    register_functions,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


NULL_IN_EVERY_LINE = {
    "group_id": "g",
    "assignor": "range",
    "topics": [{"name": "t", "partitions": 3}],
    "members": [{"member_id": "a", "topics": ["t"], "generation_id": None}],
}
REMEDY = re.escape(
    "members[].generation_id: string in place of int; Spark takes a field that is null in every "
    "line of JSON for a string: read the lines with "
    "spark.read.schema(kafka_rebalance.spark.INPUT_SCHEMA).json(path)"
)


def test_a_field_that_is_null_in_every_line_has_a_remedy(spark: SparkSession, path: str) -> None:
    inferred = spark.read.json(path)
    with pytest.raises(SchemaError, match=REMEDY):
        assign_groups(inferred)
    (row,) = assign_groups(spark.read.schema(INPUT_SCHEMA).json(path)).collect()
    assert row["error"] is None
    (row,) = assign_groups(spark.read.text(path).toDF("line")).collect()
    assert row["error"] is None


@pytest.mark.parametrize(
    "query",
    [
        "select * from kafka_assign_table(TABLE(inferred), 'sticky')",
        "select * from kafka_plan_table(TABLE(inferred), '')",
        "select kafka_assign(group_id, topics, members, 'sticky') from inferred",
        "select kafka_plan(group_id, topics, members, 'sticky', array()) from inferred",
    ],
)
def test_functions_of_sql_have_the_remedy_too(spark: SparkSession, path: str, query: str) -> None:
    register_functions(spark)
    spark.read.json(path).createOrReplaceTempView("inferred")
    (row,) = spark.sql(query).collect()
    assert re.search(REMEDY, (row[0] if len(row) == 1 else row)["error"])


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "groups.jsonl"
    file.write_text(json.dumps(NULL_IN_EVERY_LINE), encoding="utf-8")
    return str(file)
