# SPDX-License-Identifier: Apache-2.0
"""`compare_groups`, `plan_each_change`, summaries and SQL agree with functions for one group."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance.data import captured_lines
from kafka_rebalance.spark import (
    ASSIGNMENT_SCHEMA,
    COMPARE_SCHEMA,
    EACH_CHANGE_SCHEMA,
    HISTOGRAM_SCHEMA,
    INPUT_SCHEMA,
    OUTPUT_SCHEMA,
    PLAN_SCHEMA,
    SUMMARY_SCHEMA,
    SchemaError,
    assign_groups,
    compare_groups,
    explode_assignment,
    fleet_histogram,
    fleet_summary,
    plan_each_change,
    plan_groups,
    register_functions,
)
from kafka_rebalance.spark.jobs import contract_lines
from kafka_rebalance.spark.summary import racks_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

CHANGES = ["", "add-members=1", "remove-rack=a", "partitions orders=100"]
KEYED = f"cluster string, {INPUT_SCHEMA}"


def captured() -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in captured_lines()]
    return [line for line in lines if "error" not in line]


def in_clusters() -> list[dict[str, Any]]:
    """Returns each group in two clusters; in the second one it has half of its members."""
    rows = []
    for case in captured():
        half = case["members"][: (len(case["members"]) + 1) // 2]
        rows += [{**case, "cluster": "one"}, {**case, "cluster": "two", "members": half}]
    return rows


@pytest.fixture(scope="module")
def groups(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(in_clusters(), KEYED)


@pytest.fixture(scope="module")
def plans(groups: DataFrame) -> DataFrame:
    return plan_each_change(groups, CHANGES).cache()


def _key(row: Any) -> tuple[str, str]:
    return row["cluster"], row["group_id"]


def _spread(balance: Any) -> int:
    return int(balance["max"] - balance["min"])


def test_the_schemas_are_the_published_ones(
    spark: SparkSession, groups: DataFrame, plans: DataFrame
) -> None:
    for frame, schema in (
        (assign_groups(groups), f"cluster string, {OUTPUT_SCHEMA}"),
        (explode_assignment(assign_groups(groups)), f"cluster string, {ASSIGNMENT_SCHEMA}"),
        (plan_groups(groups, changes=[]), f"cluster string, {PLAN_SCHEMA}"),
        (plans, f"cluster string, {EACH_CHANGE_SCHEMA}"),
        (compare_groups(groups), f"cluster string, {COMPARE_SCHEMA}"),
        (fleet_summary(plans), f"cluster string, change string, {SUMMARY_SCHEMA}"),
        (fleet_histogram(plans), f"change string, {HISTOGRAM_SCHEMA}"),
    ):
        wanted = spark.createDataFrame([], schema).schema
        # Whether a column can be null is not compared: Spark decides it.
        assert frame.schema.simpleString() == wanted.simpleString()


def test_comparisons_are_those_of_one_group(groups: DataFrame) -> None:
    changes = ["add-members=1", "remove-rack=a"]
    rows = {_key(row): row for row in compare_groups(groups, changes=changes).collect()}
    assert len(rows) == len(in_clusters())
    reasons = set()
    for case in in_clusters():
        row = rows[_key(case)]
        group = kr.GroupSpec.from_dict(case)
        try:
            expected = kr.compare(group, changes)
            assert row["not_affected"] is None
        except kr.NotAffected:
            expected = kr.compare(group, changes[:1])
            assert row["not_affected"].startswith("remove-rack=a: ")
        assert (row["recommended"], row["reason"]) == (expected.recommended, expected.reason)
        found = [one.asDict(recursive=True) for one in row["candidates"]]
        assert [{k: v for k, v in one.items() if k != "error_kind"} for one in found] == [
            {**dict.fromkeys(tuple(kr.Figures.__annotations__)), **one.to_dict()}
            for one in expected.candidates
        ]
        reasons.add(row["reason"])
    assert len(reasons) > 5


def test_each_change_is_planned_alone(groups: DataFrame, plans: DataFrame) -> None:
    rows = plans.collect()
    assert len(rows) == len(CHANGES) * len(in_clusters())
    found = {(row["change"], *_key(row)): row for row in rows}
    for change in CHANGES:
        alone = plan_groups(groups, changes=[change] if change else [])
        for row in alone.collect():
            assert row.asDict() == {
                name: value
                for name, value in found[change, *_key(row)].asDict().items()
                if name != "change"
            }


def test_the_summary_is_the_sum_of_its_plans(plans: DataFrame) -> None:
    planned = [row for row in plans.collect() if row["change"] == "add-members=1"]
    rows = fleet_summary(plans.where("change = 'add-members=1'"), worst=3).collect()
    assert {row["cluster"] for row in rows} == {"one", "two"}
    for row in rows:
        mine = [one for one in planned if one["cluster"] == row["cluster"]]
        assert row["groups"] == len(mine)
        assert row["errors"] == 0
        for name in ("moves", "least_moves", "unavailable", "waiting", "leaderless"):
            assert row[name] == sum(one[name] for one in mine)
        spreads = sorted(_spread(one["balance_after"]) for one in mine)
        assert row["spread_after"]["max"] == spreads[-1]
        assert row["spread_after"]["p50"] == spreads[(len(spreads) - 1) // 2]
        above = [
            (_spread(one["balance_after"]) - _spread(one["balance_possible"]), one["group_id"])
            for one in mine
        ]
        assert row["uneven"] == sum(over > 0 for over, _ in above)
        assert [one["spread_after"] - one["spread_possible"] for one in row["worst"]] == [
            over for over, _ in sorted(above, reverse=True)[:3]
        ]
    (whole,) = fleet_summary(plans.where("change = 'add-members=1'").drop("cluster", "change"))\
        .collect()  # fmt: skip
    assert whole["moves"] == sum(row["moves"] for row in rows)


def test_groups_that_a_change_does_not_concern_are_counted(plans: DataFrame) -> None:
    (row,) = fleet_summary(
        plans.where("change = 'partitions orders=100'").drop("cluster")
    ).collect()
    names = [{topic["name"] for topic in case["topics"]} for case in in_clusters()]
    assert row["not_affected"] == sum("orders" not in each for each in names) > 0
    assert row["errors"] == 0


def test_groups_that_a_change_leaves_without_members_are_no_errors(groups: DataFrame) -> None:
    planned = plan_groups(groups, changes=["remove-members=1"])
    (row,) = fleet_summary(planned.drop("cluster")).collect()
    alone = sum(len(case["members"]) == 1 for case in in_clusters())
    assert (row["without_members"], row["errors"], row["not_affected"]) == (alone, 0, 0)
    assert alone > 0


def test_the_histogram_has_every_group_once_a_figure(plans: DataFrame) -> None:
    rows = fleet_histogram(plans).collect()
    moves = [one["moves"] for one in plans.collect() if one["change"] == "add-members=1"]
    bins = [row for row in rows if (row["change"], row["figure"]) == ("add-members=1", "moves")]
    assert sum(row["groups"] for row in bins) == len(moves)
    for row in bins:
        assert row["groups"] == sum(row["low"] <= one <= row["high"] for one in moves)


def test_an_assignment_is_a_row_a_partition(groups: DataFrame) -> None:
    rows = explode_assignment(assign_groups(groups, assignor="sticky")).collect()
    found: dict[Any, list[tuple[int, str, int]]] = {}
    for row in rows:
        key = (*_key(row), row["member_id"])
        found.setdefault(key, []).append((row["position"], row["topic"], row["partition"]))
    for case in in_clusters():
        answer = kr.assign(kr.GroupSpec.from_dict(case), "sticky")
        for member_id, partitions in answer.items():
            expected = [(i, topic, number) for i, (topic, number) in enumerate(partitions)]
            assert sorted(found.get((*_key(case), member_id), [])) == expected


def test_kinds_of_errors_are_a_column(spark: SparkSession) -> None:
    from pathlib import Path

    vectors = Path(__file__).resolve().parent.parent / "vectors" / "never_ends_smallest.jsonl"
    hanging = [json.loads(line) for line in vectors.read_text(encoding="utf-8").splitlines()]
    bad = {**captured()[0], "members": []}
    rows = assign_groups(spark.createDataFrame([*hanging, bad], INPUT_SCHEMA)).collect()
    assert [row["error_kind"] for row in rows] == ["never-ends"] * len(hanging) + ["group"]
    changes = spark.createDataFrame(
        [{**captured()[0], "changes": ["remove-members=99"]}],
        f"{INPUT_SCHEMA}, changes array<string>",
    )
    assert plan_groups(changes).collect()[0]["error_kind"] == "change"


def test_a_row_that_has_an_error_keeps_it(spark: SparkSession) -> None:
    rows = [{**captured()[0], "error": None}, {"group_id": "bad", "error": "value: 3 bytes"}]
    frame = spark.createDataFrame(rows, f"{INPUT_SCHEMA}, error string")
    for answers in (assign_groups(frame), plan_groups(frame, changes=[]), compare_groups(frame)):
        assert [row["error"] for row in answers.collect()] == [None, "value: 3 bytes"]


def test_lines_are_groups_like_columns(spark: SparkSession) -> None:
    cases = captured()
    rows = [(json.dumps(case).encode(), "c") for case in cases]
    lines = spark.createDataFrame([*rows, (b"{nope", "c")], "line binary, cluster string")
    columns = spark.createDataFrame([{**case, "cluster": "c"} for case in cases], KEYED)
    functions: list[Callable[[DataFrame], DataFrame]] = [
        lambda frame: plan_groups(frame, changes=["add-members=1"]),
        compare_groups,
        lambda frame: plan_each_change(frame, ["", "add-members=1"]),
    ]
    for of in functions:
        answers = of(lines).collect()
        good = [row for row in answers if row["error"] is None]
        assert sorted(good, key=str) == sorted(of(columns).collect(), key=str)
        assert {row["error_kind"] for row in answers if row["error"]} == {"group"}
    with pytest.raises(SchemaError, match="changes: contract lines have none"):
        plan_groups(lines)
    racks = {"": 16, "a": 18, "b": 19, "c": 19}
    assert dict(racks_of(lines).collect()) == dict(racks_of(columns).collect()) == racks


def test_groups_come_back_as_contract_lines(groups: DataFrame) -> None:
    lines = contract_lines(groups, [("two", "orders"), ("one", "payments")])
    # INPUT_SCHEMA has no client hosts and no topic ids.
    cases: dict[tuple[str | None, str], kr.GroupSpec] = {
        _key(case): kr.GroupSpec.from_dict(
            {
                **case,
                "topics": [{**one, "topic_id": None} for one in case["topics"]],
                "members": [{**one, "client_host": None} for one in case["members"]],
            }
        )
        for case in in_clusters()
    }
    assert set(lines) == {("two", "orders"), ("one", "payments")}
    for key, line in lines.items():
        again = kr.GroupSpec.from_json(line)
        assert again.edited(generation_id=7) == cases[key].edited(generation_id=7)


def test_wrong_columns_are_named_before_anything_runs(groups: DataFrame) -> None:
    with pytest.raises(SchemaError, match="cluster: int in place of string"):
        compare_groups(groups.withColumn("cluster", groups["cluster"].cast("int")))
    with pytest.raises(SchemaError, match="assignment: missing; expected array"):
        explode_assignment(groups)
    with pytest.raises(SchemaError, match="moves: missing; expected bigint"):
        fleet_summary(assign_groups(groups))
    with pytest.raises(SchemaError, match=r"balance_before\.min: missing"):
        fleet_histogram(plan_groups(groups, changes=[]).selectExpr(
            "*", "named_struct('max', 1) as b").drop("balance_before")
            .withColumnRenamed("b", "balance_before"))  # fmt: skip
    with pytest.raises(kr.GroupError, match=r"changes\[0\]: a comparison asks every assignor"):
        compare_groups(groups, changes=["switch-assignor=range"])
    with pytest.raises(kr.GroupError, match=r"changes\[0\]: .* begins with none of"):
        plan_each_change(groups, ["hop"])
    with pytest.raises(kr.GroupError, match="worst: 0 is less than 1"):
        fleet_summary(plan_groups(groups, changes=[]), worst=0)


def test_sql(spark: SparkSession) -> None:
    register_functions(spark)
    frame = spark.createDataFrame(captured(), INPUT_SCHEMA)
    frame.createOrReplaceTempView("groups")
    table = spark.sql("select * from kafka_assign_table(TABLE(groups), 'sticky')")
    wanted = assign_groups(frame, assignor="sticky").collect()
    assert sorted(table.collect(), key=str) == sorted(wanted, key=str)
    own = spark.sql("select * from kafka_assign_table(TABLE(groups), null)").collect()
    assert sorted(own, key=str) == sorted(assign_groups(frame).collect(), key=str)
    left_out = spark.sql("select * from kafka_assign_table(TABLE(groups))").collect()
    assert sorted(left_out, key=str) == sorted(own, key=str)
    next_one = spark.sql("select * from kafka_plan_table(TABLE(groups))").collect()
    assert sorted(next_one, key=str) == sorted(plan_groups(frame, changes=[]).collect(), key=str)
    column = spark.sql("select kafka_assign(group_id, topics, members, 'sticky') as x from groups")
    assert [row["x"] for row in column.collect()] == wanted
    unknown = spark.sql("select error from kafka_assign_table(TABLE(groups), 'stick')").collect()
    column = spark.sql("select kafka_assign(group_id, topics, members, 'stick').error from groups")
    assert sorted(unknown) == sorted(column.collect())
    assert 'assignor: "stick" is not known' in unknown[0]["error"]
    planned = spark.sql(
        "select * from kafka_plan_table(TABLE(groups), 'add-members=1; bounce-members')"
    )
    changes = ["add-members=1", "bounce-members"]
    expected = plan_groups(frame, changes=changes).collect()
    assert sorted(planned.collect(), key=str) == sorted(expected, key=str)
    array = spark.sql(
        "select * from kafka_plan_table(TABLE(groups), array('add-members=1', 'bounce-members'))"
    )
    assert sorted(array.collect(), key=str) == sorted(expected, key=str)
    for given, text in (("'hop=1'", "hop=1"), ("5", "5"), ("array('hop=1')", "hop=1")):
        wrong = spark.sql(f"select error from kafka_plan_table(TABLE(groups), {given})").collect()
        assert len(wrong) == len(expected)
        assert f'changes[0]: "{text}" begins with none of add-members, ' in wrong[0]["error"]
    column = spark.sql(
        "select kafka_plan(group_id, topics, members, assignor, "
        "array('add-members=1', 'bounce-members')) as x from groups"
    )
    assert [row["x"] for row in column.collect()] == expected


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("select * from kafka_assign_table('groups', 'range')", "give one, as TABLE(groups)"),
        ("select * from kafka_plan_table('groups', 'add-members=1')", "as TABLE(groups)"),
        (
            "select kafka_plan(group_id, topics, members, assignor, 'add-members=1') from groups",
            "changes: a text; give an array of texts, as array('add-members=1')",
        ),
        ("select kafka_assign(group_id, topics) as r from groups", "2 arguments; give group_id, "),
        ("select * from kafka_assign_table(TABLE(groups), 'range', 3)", "too many arguments; "),
        ("select * from kafka_plan_table()", "give one, as TABLE(groups)"),
    ],
)
def test_wrong_arguments_in_sql_are_a_sentence_in_each_row(
    spark: SparkSession, query: str, said: str
) -> None:
    register_functions(spark)
    spark.createDataFrame(captured(), INPUT_SCHEMA).createOrReplaceTempView("groups")
    rows = [row[0] if len(row) == 1 else row for row in spark.sql(query).collect()]
    assert rows
    assert all(row["error_kind"] == "call" and said in row["error"] for row in rows)
