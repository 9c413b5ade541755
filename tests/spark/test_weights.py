# SPDX-License-Identifier: Apache-2.0
"""Weights of another DataFrame reach the groups of their cluster, and change no other column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kafka_rebalance import GroupSpec, Member, Topic, assign
from kafka_rebalance.spark import INPUT_SCHEMA, SchemaError, assign_groups, plan_groups
from kafka_rebalance.spark.weights import with_weights

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BEST = "weighted?budget=none&tolerance=0%&min-gain=0%"
MEMBERS = (Member("a", ("t", "u")), Member("b", ("t", "u")))
TOPICS = (
    Topic("u", 1, weights=(7.0,)),
    Topic("t", 4, weights=(None, None, 2.0, None)),
    Topic("x", 0),
)
GROUP = GroupSpec("g", TOPICS, MEMBERS, "range")
ROWS = "cluster string, topic string, partition bigint, weight float"


def groups(spark: SparkSession) -> Any:
    good, bad = {**GROUP.to_dict(), "seen": {"a": 1}}, {"group_id": "bad", "error": "was down"}
    rows = [{**one, "cluster": cluster} for one in (good, bad) for cluster in ("c1", "c2", None)]
    columns = f"cluster string, {INPUT_SCHEMA}, error string, seen map<string, int>"
    return spark.createDataFrame(rows, columns)


def weights(spark: SparkSession) -> Any:
    each = [("c1", "t", 0, 90.0), ("c1", "t", 1, 60.0), ("c1", "t", None, 1.0)]
    more = [("c1", "gone", 0, 5.0), ("c2", "t", 3, 40.0), (None, "u", 0, 3.0)]
    return spark.createDataFrame([*each, *more], ROWS)


def test_each_group_has_the_weights_of_its_cluster(spark: SparkSession) -> None:
    found = with_weights(groups(spark), weights(spark))
    assert sorted(found.columns) == sorted(groups(spark).columns)
    rows = found.collect()
    of = {
        row["cluster"]: [(topic["name"], topic["weights"]) for topic in row["topics"]]
        for row in rows
        if row["error"] is None
    }
    t = [None, None, 2, None]
    assert of == {
        "c1": [("u", [7]), ("t", [90, 60, 1, 1]), ("x", None)],
        "c2": [("u", [7]), ("t", [*t[:3], 40]), ("x", None)],
        None: [("u", [3]), ("t", t), ("x", None)],
    }
    assert [row["topics"] for row in rows if row["error"]] == [None] * 3
    assert all((row["seen"] == {"a": 1}) == (row["error"] is None) for row in rows)


def test_answers_are_those_of_groups_with_weights(spark: SparkSession) -> None:
    given = {"assignor": BEST, "weights": weights(spark), "keep": ["seen"]}
    answers = {
        row["cluster"]: {
            one["member_id"]: {
                (tp["topic"], p) for tp in one["partitions"] for p in tp["partitions"]
            }
            for one in row["assignment"]
        }
        for row in assign_groups(groups(spark), **given).collect()
        if row["error"] is None
    }
    by = {
        "c1": ((7,), (90, 60, 1, 1)),
        "c2": ((7,), (None, None, 2, 40)),
        None: ((3,), TOPICS[1].weights),
    }
    for cluster, (u, t) in by.items():
        topics = (Topic("u", 1, weights=u), Topic("t", 4, weights=t), TOPICS[2])
        expected = assign(GROUP.edited(topics=topics), BEST)
        assert answers[cluster] == {who: {*owned} for who, owned in expected.items()}
    plans = plan_groups(groups(spark), changes=["add-members=1"], **given).collect()
    assert sorted(row["error"] or "" for row in plans) == [""] * 3 + ["group: was down"] * 3


def test_wrong_weights_are_refused(spark: SparkSession) -> None:
    with pytest.raises(SchemaError, match=r"weights.cluster: missing; give cluster, topic, partit"):
        assign_groups(groups(spark), weights=weights(spark).drop("cluster"))
    lines = groups(spark).select("group_id").withColumnRenamed("group_id", "line")
    with pytest.raises(SchemaError, match=r"weights: .* has no column topics"):
        assign_groups(lines, weights=weights(spark))
    wrong = spark.createDataFrame([("c1", "t", 1, -5.0)], ROWS)
    answers = assign_groups(groups(spark), assignor=BEST, weights=wrong).collect()
    (error,) = {row["error"] for row in answers} - {None, "group: was down"}
    assert error.startswith("topics[1].weights[1]: ")
