# SPDX-License-Identifier: Apache-2.0
"""docs/contract.md lists the fields that a named assignor does not validate in columns."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as f

from kafka_rebalance.assignors.registry import BUILT_IN, in_core
from kafka_rebalance.bulk.calls import unread
from kafka_rebalance.spark import INPUT_SCHEMA, assign_groups, assign_lines, register_functions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONTRACT = Path(__file__).parent.parent.parent / "docs" / "contract.md"


def documented() -> list[tuple[str, set[str]]]:
    """Returns the rows of the page's table: the text of the first cell, and the fields."""
    page = CONTRACT.read_text(encoding="utf-8")
    section = page.partition("## Fields that are not validated")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.*?) \| (.*) \|$", section, re.MULTILINE)[1:]
    return [(name, {*re.findall(r"`([^`]+)`", fields)}) for name, fields in rows if fields]


def of_page(assignor: str) -> set[str]:
    fields: set[str] = set()
    for name, more in documented():
        client = name.startswith("of a client") and assignor in BUILT_IN
        is_listed = f"`{assignor}`" in name
        if name == "any" or client or is_listed != name.startswith("any but"):
            fields |= more
    return fields


@pytest.mark.parametrize("assignor", in_core())
def test_the_page_names_every_field(assignor: str) -> None:
    assert of_page(assignor) == unread(assignor)


def group(group_id: str, **fields: Any) -> dict[str, Any]:
    member = {"member_id": "a", "topics": ["t"]}
    topic = {"name": "t", "partitions": 2, **fields.pop("topic", {})}
    return {"group_id": group_id, "topics": [topic], "members": [{**member, **fields}]}


BAD = [
    group("good"),
    group("owned", owned_partitions=[{"topic": "t", "partitions": [-4]}]),
    group("racks", topic={"racks": [["a"]]}),
]


@pytest.mark.parametrize(
    ("assignor", "passed_over"),
    [("range", {"owned"}), ("roundrobin", {"owned", "racks"}), ("sticky", set())],
)
def test_bad_groups_as_the_page_says(
    spark: SparkSession, assignor: str, passed_over: set[str]
) -> None:
    lines = spark.createDataFrame([(json.dumps(one),) for one in BAD], "line string")
    columns = spark.createDataFrame(BAD, INPUT_SCHEMA)
    own = columns.withColumn("assignor", f.lit(assignor))

    by_line, by_column, by_own = (
        {row["group_id"]: row["error"] for row in answers.collect()}
        for answers in (
            assign_lines(lines, assignor=assignor),
            assign_groups(columns, assignor=assignor),
            assign_groups(own),
        )
    )
    assert by_line["good"] is None
    assert "-4 is not a partition" in by_line["owned"]
    assert by_line["racks"] is not None
    assert by_own == by_line
    assert {name for name in by_line if by_line[name] != by_column[name]} == passed_over


def test_a_cooperative_group_under_another_assignor(spark: SparkSession) -> None:
    """With another assignor, `rebalance_protocol` is dropped: only the group's own assignor
    supports it.
    """
    recorded = group("g") | {"assignor": "cooperative-sticky", "rebalance_protocol": "cooperative"}
    columns = spark.createDataFrame([recorded], INPUT_SCHEMA)
    columns.createOrReplaceTempView("cooperative_groups")
    register_functions(spark)
    table = spark.sql("select * from kafka_assign_table(TABLE(cooperative_groups), 'range')")
    as_documented = columns.withColumn("assignor", f.lit("range")).drop("rebalance_protocol")
    expected = assign_groups(columns, assignor="range").collect()
    assert [row["error"] for row in expected] == [None]
    assert table.collect() == expected == assign_groups(as_documented).collect()
    own = spark.sql("select error from kafka_assign_table(TABLE(cooperative_groups), null)")
    assert [row["error"] for row in own.collect()] == [None]
