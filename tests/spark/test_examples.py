# SPDX-License-Identifier: Apache-2.0
"""The Spark examples of docs/start/spark.md and docs/consumer-offsets.md do what they say."""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka_rebalance.assignors.registry import in_core
from kafka_rebalance.data import captured_lines
from kafka_rebalance.spark.jobs import read_topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = Path(__file__).parent.parent.parent / "docs" / "start"


def example(page: str, name: str) -> str:
    text = (START / page).read_text(encoding="utf-8")
    found = re.search(rf"<!-- example: {name} -->\n```\w+\n(.*?)```", text, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_example(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "group.jsonl"
    source.write_text(example("one-group.md", "group.jsonl"), encoding="utf-8")
    # Spark resolves a relative path in the directory in which its JVM was started.
    code = example("spark.md", "spark").replace('"group.jsonl"', repr(str(source)))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "spark.md", "exec"), {"spark": spark})
    assert printed.getvalue().strip() == example("spark.md", "spark output").strip()


def test_the_leaders_library_becomes_the_assignors(spark: SparkSession) -> None:
    rows = [("range", "librdkafka"), ("range", "java"), ("sticky", None)]
    given = spark.createDataFrame(rows, "assignor string, leader_library string")
    names: dict[str, Any] = {"groups": given}
    exec(compile(example("spark.md", "by library"), "spark.md", "exec"), names)
    named = [row["assignor"] for row in names["by_library"].collect()]
    assert named == ["librdkafka/range", "range", "sticky"]
    assert {*named} <= {*in_core()}


def test_the_inventory_has_the_topics_of_a_snapshot(spark: SparkSession, tmp_path: Path) -> None:
    source, target = tmp_path / "groups.jsonl", tmp_path / "topics"
    source.write_text("\n".join(captured_lines()), encoding="utf-8")
    code = example("../consumer-offsets.md", "inventory").replace(
        '"groups.jsonl"', repr(str(source))
    )
    code = code.replace('"lake/topics"', repr(str(target)))
    exec(compile(code, "consumer-offsets.md", "exec"), {"spark": spark})
    groups = map(json.loads, captured_lines())
    topics = {topic["name"]: topic for group in groups for topic in group.get("topics", ())}
    found = {row["name"]: row.asDict() for row in read_topics(spark, str(target)).collect()}
    assert len(found) >= 2
    assert found == {
        name: {
            "name": name,
            "partitions": topic["partitions"],
            "racks": topic.get("racks"),
            "topic_id": topic.get("topic_id"),
        }
        for name, topic in topics.items()
    }
