# SPDX-License-Identifier: Apache-2.0
"""Spark's answers equal those of the core, and each group has a row, perhaps with an error."""

from __future__ import annotations

import gzip
import json
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as f
from pyspark.sql import types as t

import kafka_rebalance as kr
from kafka_rebalance import bulk
from kafka_rebalance.data import captured_lines
from kafka_rebalance.spark import (
    INPUT_SCHEMA,
    OUTPUT_SCHEMA,
    SchemaError,
    assign_groups,
    assign_lines,
    assign_udf,
    plan_applications,
    schema,
)
from tests.support.recorded_applications import recorded_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VECTORS = Path(__file__).parent.parent / "vectors"
NAMES = ["range", "roundrobin", "sticky", "cooperative-sticky"]


def captured() -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in captured_lines()]
    return [line for line in lines if "error" not in line]


def frozen(name: str) -> list[dict[str, Any]]:
    with gzip.open(VECTORS / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line)["case"] for line in lines]


def expected(case: dict[str, Any], assignor: str | None = None) -> Any:
    """Returns the answer in the form of the columns: an error, or entries by member.

    Neighbouring partitions of one topic in the member's list form an entry.
    """
    try:
        answer = kr.assign(kr.GroupSpec.from_dict(case), assignor)
    except kr.GroupError as error:
        return str(error)
    return {
        member_id: [
            (topic, [partition for _, partition in run])
            for topic, run in groupby(partitions, key=lambda tp: tp.topic)
        ]
        for member_id, partitions in answer.items()
    }


def got(row: Any) -> Any:
    if row["error"] is not None:
        assert row["assignment"] is None
        assert row["assignor"] is None
        return row["error"]
    return {
        member["member_id"]: [(run["topic"], run["partitions"]) for run in member["partitions"]]
        for member in row["assignment"]
    }


def frame(spark: Any, cases: list[dict[str, Any]]) -> Any:
    return spark.createDataFrame(cases, INPUT_SCHEMA)


@pytest.mark.parametrize("assignor", NAMES)
def test_the_sample_is_assigned_as_by_the_core(spark: SparkSession, assignor: str) -> None:
    cases = captured()
    answers = assign_groups(frame(spark, cases), assignor=assignor)
    assert {row["group_id"]: got(row) for row in answers.collect()} == {
        case["group_id"]: expected(case, assignor) for case in cases
    }


@pytest.mark.parametrize("name", [*NAMES, "sticky-treeified"])
def test_vectors_are_assigned_as_by_the_core(spark: SparkSession, name: str) -> None:
    cases = frozen(name)
    rows = assign_groups(frame(spark, cases)).collect()
    assert [got(row) for row in rows] == [expected(case) for case in cases]


def test_streams_groups_have_standby_tasks_in_a_column(spark: SparkSession) -> None:
    with gzip.open(VECTORS / "streams-sticky.jsonl.gz", "rt", encoding="utf-8") as lines:
        vectors = [json.loads(line) for line in lines][:60]
    rows = spark.createDataFrame([one["case"] for one in vectors], schema.contract())
    for one, row in zip(vectors, assign_groups(rows).collect(), strict=True):
        for part in ("assignment", "standby"):
            assert one["expected"][part] == {
                member["member_id"]: [
                    [run["topic"], p] for run in member["partitions"] for p in run["partitions"]
                ]
                for member in row[part]
            }


def test_lines_are_answered_as_columns_are(spark: SparkSession) -> None:
    cases = frozen("cooperative-sticky")[:300]
    lines = spark.createDataFrame([(json.dumps(case).encode(),) for case in cases], "line binary")
    rows = assign_lines(lines).collect()
    assert [got(row) for row in rows] == [expected(case) for case in cases]


def test_anomalies_are_a_column(spark: SparkSession) -> None:
    member = {"member_id": "B", "topics": ["t"]}
    # Member A comes first in hash order: it subscribes to nothing, but gets partitions.
    case = {
        "group_id": "g",
        "topics": [{"name": "t", "partitions": 2}],
        "members": [{"member_id": "A", "topics": []}, member],
    }
    answer = kr.assign(kr.GroupSpec.from_dict(case), "sticky")
    assert answer.anomalies
    (row,) = assign_groups(frame(spark, [case]), assignor="sticky").collect()
    assert [anomaly.asDict() for anomaly in row["anomalies"]] == [
        anomaly.to_dict() for anomaly in answer.anomalies
    ]
    (sound,) = assign_groups(frame(spark, captured()[:1]), assignor="sticky").collect()
    assert sound["anomalies"] is None


def test_the_answer_has_the_published_schema(spark: SparkSession) -> None:
    answers = assign_groups(frame(spark, captured()))
    assert answers.schema == spark.createDataFrame([], OUTPUT_SCHEMA).schema
    # Spark takes Arrow's columns by position, and ignores their names and types.
    assert answers.collect()[0]["assignor"] in NAMES


def test_columns_may_be_wider_missing_or_more(spark: SparkSession) -> None:
    case = {
        "more": 1,
        "members": [{"member_id": "a", "topics": ["t"], "client_id": "c"}],
        "topics": [{"partitions": 3, "name": "t", "more": True}],
        "group_id": "g",
    }
    read = spark.read.json(spark.sparkContext.parallelize([json.dumps(case)]))
    topics = read.schema["topics"].dataType
    assert isinstance(topics, t.ArrayType)
    assert isinstance(topics.elementType, t.StructType)
    assert isinstance(topics.elementType["partitions"].dataType, t.LongType)
    for assignor in NAMES:
        (row,) = assign_groups(read, assignor=assignor).collect()
        assert got(row) == {"a": [("t", [0, 1, 2])]}


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ("topics array<struct<name: string, partitions: int>>", "group_id: missing"),
        ("group_id int", "group_id: int in place of string"),
        ("group_id string, topics string", "topics: string in place of array"),
        ("group_id string, topics array<struct<name: string>>", "topics[].partitions: missing"),
        (
            "group_id string, topics array<struct<name: string, partitions: double>>",
            "topics[].partitions: double in place of int",
        ),
    ],
)
def test_wrong_columns_are_named_before_anything_runs(
    spark: SparkSession, schema: str, problem: str
) -> None:
    with pytest.raises(SchemaError) as raised:
        assign_groups(spark.createDataFrame([], schema), assignor="range")
    assert str(raised.value).startswith(problem)


def test_unknown_assignors_are_refused_before_anything_runs(spark: SparkSession) -> None:
    with pytest.raises(kr.GroupError, match='"nope" is not built in'):
        assign_groups(frame(spark, captured()), assignor="nope")


@pytest.mark.parametrize("assignor", [None, "sticky"])
def test_as_a_column_function(spark: SparkSession, assignor: str) -> None:
    cases = captured()
    columns = ["group_id", "topics", "members"] + ([] if assignor else ["assignor"])
    result = assign_udf(assignor)(*columns)
    rows = frame(spark, cases).withColumn("result", result).collect()
    assert [got(row["result"]) for row in rows] == [expected(case, assignor) for case in cases]
    with pytest.raises(TypeError, match="1 columns in place of"):
        assign_udf(assignor)("group_id")


@pytest.mark.parametrize("assignor", [None, "sticky"])
def test_the_column_function_can_be_registered(spark: SparkSession, assignor: str | None) -> None:
    spark.udf.register("answered", assign_udf(assignor))
    groups = frame(spark, captured())
    groups.createOrReplaceTempView("groups")
    more = "" if assignor else ", assignor"
    rows = spark.sql(f"select answered(group_id, topics, members{more}) as x from groups").collect()
    assert [row["x"] for row in rows] == assign_groups(groups, assignor=assignor).collect()


def test_a_bad_group_harms_no_other(spark: SparkSession) -> None:
    good = captured()[0]
    bad = [
        {**good, "members": []},
        {**good, "topics": None},
        {**good, "assignor": "nope"},
        {**good, "topics": [{"name": "t", "partitions": -1}]},
        {**good, "topics": [{"name": "t", "partitions": 2**31 - 1}]},
        {**good, "topics": [{"name": "t", "partitions": 2, "racks": [["a"]]}]},
        {**good, "topics": [{"name": "t", "partitions": 1}] * 2},
        {**good, "members": good["members"][:1] * 2},
        {**good, "members": [{"member_id": "a", "topics": ["t", None]}]},
    ]
    rows = assign_groups(frame(spark, [good, *bad, good])).collect()
    assert got(rows[0]) == got(rows[-1]) == expected(good)
    assert [got(row) for row in rows[1:-1]] == [expected(case) for case in bad]


def test_text_that_is_not_utf8_is_an_error_of_its_row(spark: SparkSession) -> None:
    case = {"group_id": "g", "topics": [], "members": [{"member_id": "a", "topics": []}]}
    broken = frame(spark, [case]).withColumn("group_id", f.unhex(f.lit("ff")).cast("string"))
    rows = assign_groups(broken.union(frame(spark, [case])), assignor="range").collect()
    assert [row["error"] for row in rows] == ["group_id: not UTF-8", None]


def test_a_giant_group_beside_many_small_ones(spark: SparkSession) -> None:
    small = spark.range(2_000).select(
        f.format_string("g%d", "id").alias("group_id"),
        f.expr("array(named_struct('name', 't', 'partitions', 4))").alias("topics"),
        f.expr("array(named_struct('member_id', 'a', 'topics', array('t')))").alias("members"),
    )
    giant = spark.range(1).select(
        f.lit("giant").alias("group_id"),
        f.expr("array(named_struct('name', 't', 'partitions', 1000000))").alias("topics"),
        f.expr(
            "transform(sequence(1, 1000), m -> "
            "named_struct('member_id', string(m), 'topics', array('t')))"
        ).alias("members"),
    )
    answers = assign_groups(small.union(giant), assignor="cooperative-sticky")
    counts = answers.select(
        "group_id",
        f.expr(
            "aggregate(assignment, 0, (n, m) -> n + aggregate(m.partitions, 0, "
            "(k, r) -> k + size(r.partitions)))"
        ).alias("n"),
    ).collect()
    assert {row["n"] for row in counts if row["group_id"] != "giant"} == {4}
    assert [row["n"] for row in counts if row["group_id"] == "giant"] == [1_000_000]
    assert len(counts) == 2_001


PLACES = INPUT_SCHEMA.replace("topics: array<string>", "topics: array<int>").replace(
    "<topic: string, partitions", "<topic: int, partitions"
)


def placed(case: dict[str, Any]) -> dict[str, Any]:
    """Replaces members' topics by indexes into the group's topics; adds topics that are missing."""
    names = [topic["name"] for topic in case["topics"]]
    for member in case["members"]:
        owned = [entry["topic"] for entry in member.get("owned_partitions") or ()]
        names += [name for name in dict.fromkeys([*member["topics"], *owned]) if name not in names]
    known = {topic["name"]: topic for topic in case["topics"]}
    members = [
        {
            **member,
            "topics": [names.index(name) for name in member["topics"]],
            "owned_partitions": [
                {**entry, "topic": names.index(entry["topic"])}
                for entry in member.get("owned_partitions") or ()
            ],
        }
        for member in case["members"]
    ]
    topics = [known.get(name, {"name": name, "partitions": 0}) for name in names]
    return {**case, "topics": topics, "members": members}


def test_topics_by_their_place_give_the_same_answers(spark: SparkSession) -> None:
    cases = [case for name in NAMES for case in frozen(name)[:150]]
    rows = [{**placed(case), "group_id": str(n)} for n, case in enumerate(cases)]
    groups = spark.createDataFrame(rows, PLACES)
    answers = {row["group_id"]: got(row) for row in assign_groups(groups).collect()}
    assert answers == {str(n): expected(case) for n, case in enumerate(cases)}


def test_a_place_that_is_not_there_is_an_error_of_its_row(spark: SparkSession) -> None:
    member = {"member_id": "a", "topics": [0, 1]}
    owning = {**member, "topics": [0], "owned_partitions": [{"topic": -1, "partitions": [0]}]}
    topics = [{"name": "t", "partitions": 1}]
    rows = [
        {"group_id": str(n), "topics": topics, "members": [one]}
        for n, one in enumerate([member, owning, {**member, "topics": [None]}])
    ]
    answers = assign_groups(spark.createDataFrame(rows, PLACES), assignor="sticky").collect()
    assert sorted(row["error"] for row in answers) == [
        "members[0].owned_partitions[0].topic: -1 is not a place in topics, of which there are 1",
        "members[0].topics[0]: null is not a string",
        "members[0].topics[1]: 1 is not a place in topics, of which there are 1",
    ]


def test_applications_of_kafka_streams(spark: SparkSession) -> None:
    """The rows of the core; lines of other groups have none."""
    lines = [json.dumps(recorded_line(number)) for number in (20, 7)]
    frame = spark.createDataFrame(
        [(line,) for line in [*lines, *captured_lines()[:3]]], "line string"
    )
    changes = ["remove-member=0420"]
    rows = plan_applications(frame, changes=changes, given={"acceptable.recovery.lag": 5}).collect()
    expected = bulk.plan_applications(lines, changes, given={"acceptable.recovery.lag": 5})
    assert sorted(map(tuple, rows), key=str) == sorted(map(tuple, expected), key=str)
    with pytest.raises(SchemaError, match="one column"):
        plan_applications(frame.withColumn("more", f.lit(1)))


def test_leaders_of_kafka_streams_answer(spark: SparkSession) -> None:
    """A line has the field `application`; in columns, it is a string. The answers are equal."""
    lines = [recorded_line(number) for number in (20, 7)]
    texts = spark.createDataFrame([(json.dumps(line),) for line in lines], "line string")
    rows = [
        {**kr.GroupSpec.from_dict(line).to_dict(), "application": json.dumps(line["application"])}
        for line in lines
    ]
    columns = spark.createDataFrame(rows, f"{INPUT_SCHEMA}, application string")
    answers = [sorted(assign_groups(one).collect(), key=str) for one in (columns, texts)]
    assert answers[0] == answers[1]
    assert [row["error"] for row in answers[0]] == [None, None]
    assert {len(row["assignment"]) for row in answers[0]} == {4}
