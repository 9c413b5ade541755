# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.fleet_of_kinds`: a fleet of groups of every kind on Spark, judged row by row.

Plans, compares and scales `--groups` groups (lines_of_kinds, and the Connect groups' records of
tests/data) on Spark. No row may have an error. Of `--sample` groups, each row must equal the answer
for that group alone. Prints the counts, and the CPU of the whole process tree for each group; then
that of the batch functions for each kind, in this process. The exit code is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from typing import Any

import pyarrow as pa

import kafka_rebalance as kr
from benches.spark_cpu import cpu_seconds
from kafka_rebalance.bulk import one_by_one
from kafka_rebalance.spark import compare_groups, current_groups, plan_groups, scale_groups
from kafka_rebalance.spark.session import session
from tests.support.groups_of_kinds import ASSIGNORS, lines_of_kinds
from tests.test_records import TOPICS, captured

CHANGES = ["add-members=1"]
COUNTS = [1, 4]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fleet_of_kinds")
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--sample", type=int, default=2_000)
    args = parser.parse_args()
    lines = [json.dumps(one) for one in lines_of_kinds(args.groups, seed=37)]
    sample = random.Random(37).sample(lines, min(args.sample, len(lines)))
    spark = session("fleet of kinds", master="local[2]")
    spark.conf.set("spark.sql.shuffle.partitions", "4")
    frame = spark.createDataFrame([(line,) for line in lines], "line string").repartition(8).cache()
    frame.count()
    differs = 0
    for name, answers, expected in (
        ("plan", plan_groups(frame, changes=CHANGES), _planned),
        ("compare", compare_groups(frame, changes=CHANGES), _compared),
        ("scale", scale_groups(frame, COUNTS), _scaled),
    ):
        began, cpu = time.perf_counter(), cpu_seconds()
        rows = {row["group_id"]: row.asDict(recursive=True) for row in answers.collect()}
        cpu, seconds = cpu_seconds() - cpu, time.perf_counter() - began
        refused = sum(row["error"] is not None for row in rows.values())
        wrong = sum(not _equal(rows, line, expected) for line in sample)
        differs += refused + wrong + (len(rows) != len(lines))
        each = cpu / len(lines) * 1e3
        print(
            f"{name}: {len(rows):,} groups, {refused} with errors, {wrong} of {len(sample):,} "
            f"unequal; {seconds:.1f} s, {each:.2f} ms of CPU a group",
            flush=True,
        )
    differs += _connect(spark)
    spark.stop()
    _by_kind(lines)
    return int(differs > 0)


def _equal(rows: dict[str, Any], line: str, expected: Any) -> bool:
    group = kr.GroupSpec.from_json(line)
    told = expected(group)
    return bool({name: rows[group.group_id][name] for name in told} == told)


def _planned(group: kr.GroupSpec) -> dict[str, Any]:
    return kr.plan(group, None, CHANGES).figures().to_dict()


def _compared(group: kr.GroupSpec) -> dict[str, Any]:
    found = kr.compare(group, CHANGES)
    return {"recommended": found.recommended, "reason": found.reason}


def _scaled(group: kr.GroupSpec) -> dict[str, Any]:
    found = kr.scale(group, COUNTS, samples=0)
    return {"summary": found.summary, "worth": list(found.worth)}


def _connect(spark: Any) -> int:
    """Prints how the groups in real records are read, those of Connect among them."""
    columns = "key binary, value binary, partition int, offset bigint"
    rows = [(key, value, 0, offset) for offset, (key, value) in enumerate(captured())]
    topics = spark.createDataFrame([*TOPICS.items()], "name string, partitions int")
    groups = current_groups(spark.createDataFrame(rows, columns), topics)
    kinds = groups.groupBy("kind").agg({"error": "count", "*": "count"}).collect()
    for row in kinds:
        print(f"records of kind {row['kind']}: {row['count(1)']} groups")
    return sum(row["kind"] == "connect" and row["count(error)"] for row in kinds)


def _by_kind(lines: list[str]) -> None:
    for assignor in ASSIGNORS:
        own = [line for line in lines if json.loads(line)["assignor"] == assignor]
        batch = pa.RecordBatch.from_pydict({"line": pa.array(own, pa.string())})
        taken = []
        for verb, arguments in (("plan", (None, CHANGES)), ("compare", (CHANGES,))):
            cpu = time.process_time()
            one_by_one.answers(verb, batch, (*arguments, kr.group.MAX_PARTITIONS, 1), "lines")
            taken.append(f"{verb} {(time.process_time() - cpu) / len(own) * 1e3:.2f} ms")
        print(f"{assignor}: {len(own):,} groups, {', '.join(taken)} of CPU a group")


if __name__ == "__main__":
    sys.exit(main())
