# SPDX-License-Identifier: Apache-2.0
"""Copies groups that were captured from a real cluster, assigns all copies on Spark, plans changes
of them, and prints next steps and the path of a report.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kafka_rebalance.data import captured_lines
from kafka_rebalance.errors import GroupError
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.report.text.sentences import counted, print_sentence
from kafka_rebalance.report.text.tables import print_table

from . import DONE
from .options import add_table, whole

ASSIGNOR = "cooperative-sticky"
_SHOWN = 5


def add_options(parser: argparse.ArgumentParser) -> None:
    options = """
    --groups N: the number of groups after copying (default: %(default)s)
    --sample: only print the captured groups as JSON lines, as input for the other commands
    --output DIR: where to write groups, answers and report (default: a new temporary directory)
    """
    add_table(parser, options, groups={"type": whole(1), "default": 20_000}, output=Path)


class _Outcome(Frozen):
    """A captured group with its assignments before and after the demo's rebalance."""

    group: GroupSpec
    before: Assignment
    after: Assignment

    @property
    def spread_before(self) -> int:
        return self.before.balance.max - self.before.balance.min


def run(args: argparse.Namespace) -> int:
    if args.sample:
        for line in captured_lines():
            print(line)
        return DONE
    sample = [json.loads(line) for line in captured_lines()]
    groups = [GroupSpec.from_dict(line) for line in sample if "error" not in line][: args.groups]
    from kafka_rebalance.spark import jobs
    from kafka_rebalance.spark.functions import assign_groups
    from kafka_rebalance.spark.schema import INPUT_SCHEMA
    from kafka_rebalance.spark.session import session

    from pyspark.sql import functions as f  # isort: skip (after the import that reports a missing pyspark)

    output = args.output or Path(tempfile.mkdtemp(prefix="kafka-rebalance-")) / "demo"
    if output.exists():
        raise GroupError("--output", f"{output} exists already")
    print_sentence(f"starting Spark for {counted(args.groups, 'group')} …")
    spark = session("demo", progress=sys.stderr.isatty(), brief=True)
    try:
        sent = [(group.assignor, group.to_dict()) for group in groups]
        rows = [
            (n, line["group_id"], assignor, line["topics"], line["members"])
            for n, (assignor, line) in enumerate(sent)
        ]
        captured = f.broadcast(spark.createDataFrame(rows, f"n bigint, {INPUT_SCHEMA}"))
        copy = f.col("id") % len(rows) == f.col("n")
        fleet = (
            spark.range(0, args.groups, 1, 8)
            .join(captured, copy)
            .withColumn("number", (f.col("id") / len(rows)).cast("bigint"))
            .withColumn("group_id", f.format_string("%s-%05d", "group_id", "number"))
        )
        fleet.drop("n", "id", "number").write.parquet(str(output / "groups"))
        read = spark.read.parquet(str(output / "groups"))
        anomalies = {"with_anomalies": f.count("anomalies")}
        answered = assign_groups(read, assignor=ASSIGNOR)
        assigned = str(output / "assigned")
        done = jobs.write(answered, assigned, counts=anomalies)
        report = _summary(spark, output)
        first = spark.read.parquet(assigned).where(f.col("group_id").endswith("-00000"))
        answers = {row["group_id"].removesuffix("-00000"): row for row in first.collect()}
    finally:
        spark.stop()
    outcomes = [_outcome(group, answers[group.group_id]["assignment"]) for group in groups]
    _print_run(outcomes, args.groups, done)
    for line in sample:
        if "error" in line:
            print(f"  left out: {line['group_id']} ({line['error']})")
    print()
    _print_most_uneven(outcomes)
    print()
    _print_next_steps(output)
    print(f"The report, for a browser: {report.absolute()}")
    return DONE


def _summary(spark: Any, output: Path) -> Path:
    """Plans changes to all groups, such as one more member; returns the report's path."""
    from kafka_rebalance.spark.session import spark_errors

    from . import fleet
    from .fleet_spark import OnSpark
    from .fleet_summary import write_summary

    print_sentence("planning changes of every group …")
    parser = argparse.ArgumentParser()
    fleet.add_options(parser)
    words = ["summary", str(output / "groups"), str(output / "summary")]
    args = parser.parse_args([*words, "--change", "add-members=1"])
    with spark_errors():
        write_summary(OnSpark(args, spark, plain=True))
    return output / "summary" / "report.html"


def _outcome(group: GroupSpec, rows: Sequence[Any]) -> _Outcome:
    after = {
        row["member_id"]: [
            TopicPartition(run["topic"], partition)
            for run in row["partitions"]
            for partition in run["partitions"]
        ]
        for row in rows
    }
    return _Outcome(group, Assignment.owned(group), Assignment.of(after))


def _print_run(outcomes: Sequence[_Outcome], groups: int, done: Any) -> None:
    copies = [len(range(n, groups, len(outcomes))) for n in range(len(outcomes))]
    copied = [(one.before, n) for one, n in zip(outcomes, copies, strict=True)]
    members = sum(len(owned) * n for owned, n in copied)
    partitions = sum(len(owned.partitions) * n for owned, n in copied)
    print(f"{len(outcomes)} groups of a real cluster, {groups:,} after copying, with {ASSIGNOR}:")
    print(f"  {members:,} members, {partitions:,} partitions")
    print(f"  {done.seconds:.1f} s, {groups / done.seconds:,.0f} groups a second, Spark included")
    print(f"  {done.errors:,} with errors, {done.counts['with_anomalies']:,} with anomalies")


def _print_most_uneven(outcomes: Sequence[_Outcome]) -> None:
    worst = sorted(outcomes, key=lambda one: (-one.spread_before, one.group.group_id))
    print("The most uneven groups (partitions per member, least-most). In round 1 a partition that")
    print("moves is taken from its member; the other gets it in round 2:")
    print_table(
        ["group", "members", "assignor now", "now", f"{ASSIGNOR}, round 1", "moves"],
        [
            [
                one.group.group_id,
                str(len(one.group.members)),
                one.group.assignor or "",
                f"{one.before.balance.min}-{one.before.balance.max}",
                f"{one.after.balance.min}-{one.after.balance.max}",
                str(len((one.after - one.before).revoked.partitions)),
            ]
            for one in worst[:_SHOWN]
        ],
    )


def _print_next_steps(output: Path) -> None:
    print(f"Groups, answers (Parquet) and report are in {output}. Next steps:")
    if (command := Path(sys.executable).with_name("activate")).exists():
        print(f"  . {os.path.relpath(command)}  # puts kafka-rebalance on the path")
    for line in _NEXT:
        print(f"  kafka-rebalance {line}")


_NEXT = (
    "demo --sample > sample.jsonl   # these groups, as input",
    "plan sample.jsonl --group orders --add-members 1",
    "snapshot --bootstrap-server HOST:PORT > groups.jsonl  # your own, with .[kafka]",
    "assign groups.jsonl --assignor cooperative-sticky     # who owns what",
    "fleet summary groups.jsonl OUT                        # many groups",
)
