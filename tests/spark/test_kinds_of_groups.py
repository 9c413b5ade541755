# SPDX-License-Identifier: Apache-2.0
"""Groups of every kind on Spark: each row is the answer for that group alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance.spark import (
    GroupRecords,
    compare_groups,
    current_groups,
    fleet_summary,
    plan_each_change,
    plan_groups,
    scale_groups,
)
from tests.support.groups_of_kinds import lines_of_kinds
from tests.test_recorded_groups import KINDS, inventory, line_of, states

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHANGES = ["add-members=1"]


@pytest.fixture(scope="module")
def lines() -> list[str]:
    return [json.dumps(one) for one in lines_of_kinds(25, seed=3)]


def planned(line: str, changes: list[str]) -> dict[str, Any]:
    try:
        plan = kr.plan(kr.GroupSpec.from_json(line), None, changes)
    except kr.GroupError as error:
        return {"error": str(error)}
    return plan.figures().to_dict()


def by_id(frame: DataFrame) -> dict[str, dict[str, Any]]:
    return {row["group_id"]: row.asDict(recursive=True) for row in frame.collect()}


def test_every_kind_is_planned_compared_and_scaled(spark: SparkSession, lines: list[str]) -> None:
    frame = spark.createDataFrame([(line,) for line in lines], "line string")
    plans, compared = by_id(plan_groups(frame, changes=CHANGES)), by_id(compare_groups(frame))
    scaled = by_id(scale_groups(frame, [1, 2]))
    kinds = set()
    for line in lines:
        group = kr.GroupSpec.from_json(line)
        name, expected = group.group_id, planned(line, CHANGES)
        kinds.add((group.assignor or "").partition("/")[0])
        assert {key: plans[name][key] for key in expected} == expected
        comparison = kr.compare(group)
        assert compared[name]["error"] is None
        assert compared[name]["recommended"] == comparison.recommended
        assert scaled[name]["summary"] == kr.scale(group, [1, 2], samples=0).summary
    assert {"consumer", "share", "streams", "sticky"} <= kinds
    (row,) = fleet_summary(plan_each_change(frame, CHANGES)).collect()
    assert (row["groups"], row["errors"]) == (len(lines), 0)


def test_the_switch_of_a_fleet(spark: SparkSession, lines: list[str]) -> None:
    """Groups that have no classic protocol are not affected; members' libraries are read."""
    changes = ["switch-protocol=consumer"]
    classic = next(json.loads(line) for line in lines if '"range"' in line)
    for member in classic["members"]:
        member["client_library"] = "aiokafka"
    bad = json.dumps(classic | {"group_id": "by aiokafka"})
    rows = [(line,) for line in [*lines, bad]]
    found = by_id(plan_groups(spark.createDataFrame(rows, "line string"), changes=changes))
    assert "aiokafka lacks it" in found["by aiokafka"]["error"]
    for line in lines:
        group = kr.GroupSpec.from_json(line)
        row = found[group.group_id]
        if "/" in (group.assignor or ""):
            assert row["moves"] is row["error"] is None
            assert row["not_affected"].startswith("switch-protocol=consumer: ")
        else:
            expected = planned(line, changes)
            assert {key: row[key] for key in expected} == expected


def test_groups_in_records_are_the_lines_of_their_records(spark: SparkSession) -> None:
    """The last record of a key counts; without topic ids, only classic groups are there."""
    rows, topics, expected = [], [], {}
    for i, kind in enumerate(KINDS):
        _, group_id, log, there = next(one for one in states(kind) if one[0]["state"] == "Stable")
        cluster = f"cluster {i}"
        expected[cluster] = line_of(group_id, log, there)
        last = [(cluster, key, value, 0, 2 * n + 1) for n, (key, value) in enumerate(log.items())]
        rows += [*last, *((*one[:2], b"\0\0damaged", 0, one[4] - 1) for one in last)]
        topics += [(cluster, *one.values()) for one in inventory(there)]
    columns = "cluster string, key binary, value binary, partition int, offset bigint"
    records = spark.createDataFrame(rows, columns)
    known = spark.createDataFrame(
        topics, "cluster string, name string, partitions int, topic_id string"
    )
    assert current_groups(records, known.drop("topic_id")).count() == 0
    groups = current_groups(records, known)
    answers = plan_groups(groups, changes=CHANGES).collect()
    direct = plan_groups(GroupRecords(records, known), changes=CHANGES).collect()
    assert sorted(map(str, direct)) == sorted(map(str, answers))
    plans = {row["cluster"]: row.asDict(recursive=True) for row in answers}
    for cluster, line in expected.items():
        assert line is not None
        figures = planned(json.dumps(line), CHANGES)
        assert {key: plans[cluster][key] for key in figures} == figures
