# SPDX-License-Identifier: Apache-2.0
"""`plan_groups` returns the figures of `plan`, in one row for each group."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance.assignors.registry import planned_names
from kafka_rebalance.spark import INPUT_SCHEMA, PLAN_SCHEMA, SchemaError, plan_groups
from tests.support.generate import generate
from tests.support.generate_changes import changes as draw_changes
from tests.support.generate_changes import with_client_ids

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def cases(count: int) -> list[tuple[dict[str, Any], list[str]]]:
    def answer(case: dict[str, Any]) -> dict[str, Any]:
        try:
            return {"assignment": kr.assign(kr.GroupSpec.from_dict(case)).to_dict()}
        except kr.GroupError as error:
            return {"error": str(error)}

    rng = random.Random(21)
    drawn = generate(21, count, planned_names(), answer)
    named = [with_client_ids(rng, case) for case in drawn]
    for case in named:  # INPUT_SCHEMA has no libraries
        case["members"] = [
            {k: v for k, v in one.items() if k != "client_library"} for one in case["members"]
        ]
    return [(case, draw_changes(rng, kr.GroupSpec.from_dict(case))) for case in named]


def expected(case: dict[str, Any], changes: list[str], assignor: str | None = None) -> Any:
    try:
        figures = kr.plan(kr.GroupSpec.from_dict(case), assignor, changes).figures()
    except kr.GroupError as error:
        return str(error)
    return figures.to_dict()


def got(row: Any) -> Any:
    if row["error"] is not None:
        assert row["rounds"] is None
        assert row["balance_after"] is None
        return row["error"]
    return {name: row.asDict(recursive=True)[name] for name in tuple(kr.Figures.__annotations__)}


def test_two_thousand_groups_with_their_own_changes(spark: SparkSession) -> None:
    drawn = cases(2000)
    rows = [{**case, "changes": changes} for case, changes in drawn]
    groups = spark.createDataFrame(rows, f"{INPUT_SCHEMA}, changes array<string>")
    planned = plan_groups(groups)
    assert planned.schema == spark.createDataFrame([], PLAN_SCHEMA).schema
    answers = {row["group_id"]: got(row) for row in planned.collect()}
    wanted = {case["group_id"]: expected(case, changes) for case, changes in drawn}
    assert answers == wanted
    assert sum(isinstance(one, dict) for one in wanted.values()) > 1000


def test_one_list_of_changes_for_all_and_another_assignor(spark: SparkSession) -> None:
    drawn = [case for case, _ in cases(100)]
    groups = spark.createDataFrame(drawn, INPUT_SCHEMA)
    planned = plan_groups(
        groups, assignor="cooperative-sticky", changes=[kr.AddMembers(2), "remove-members=1"]
    )
    texts = ["add-members=2", "remove-members=1"]
    assert {row["group_id"]: got(row) for row in planned.collect()} == {
        case["group_id"]: expected(case, texts, "cooperative-sticky") for case in drawn
    }


def test_what_does_not_concern_a_group_is_no_error(spark: SparkSession) -> None:
    """A list of changes for many groups may name a topic that only some groups have."""
    drawn = [case for case, _ in cases(60)]
    names = [topic["name"] for case in drawn for topic in case["topics"]]
    grows = f"partitions {max(set(names), key=names.count)}=1000"
    groups = spark.createDataFrame(drawn, INPUT_SCHEMA)
    rows = plan_groups(groups, changes=[grows]).collect()
    topic = grows.removeprefix("partitions ").removesuffix("=1000")
    has = {case["group_id"] for case in drawn if topic in {t["name"] for t in case["topics"]}}
    read = {c["group_id"] for c in drawn if any(topic in m["topics"] for m in c["members"])}
    assert {row["group_id"] for row in rows if row["not_affected"] is None} == has & read
    left_out = [row for row in rows if row["not_affected"] is not None]
    assert left_out
    assert all(row["rounds"] is None and row["error"] is None for row in left_out)


def test_what_is_wrong_is_told_before_anything_runs(spark: SparkSession) -> None:
    groups = spark.createDataFrame([], INPUT_SCHEMA)
    with pytest.raises(SchemaError, match="changes: missing; expected array<string>"):
        plan_groups(groups)
    with pytest.raises(kr.GroupError, match=r'changes\[1\]: "hop" begins with none of'):
        plan_groups(groups, changes=["add-members=1", "hop"])
    with pytest.raises(kr.GroupError, match='"nope" is not built in'):
        plan_groups(groups, assignor="nope", changes=[])
