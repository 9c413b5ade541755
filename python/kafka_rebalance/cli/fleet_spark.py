# SPDX-License-Identifier: Apache-2.0
"""`fleet` on Spark: runs the jobs, and reads figures from their answers."""

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from kafka_rebalance.bulk import paths
from kafka_rebalance.bulk.parts import Done
from kafka_rebalance.errors import NO_MEMBERS, GroupError
from kafka_rebalance.report.fleet import Bin
from kafka_rebalance.spark import files, functions, jobs, schema
from kafka_rebalance.spark.consumer_offsets import count_causes
from kafka_rebalance.spark.summary import fleet_histogram, fleet_summary, racks_of

from .fleet_jobs import BETTER, RECOMMENDABLE, WITHHOLDING, asked


class OnSpark:
    """The fleet in any INPUT; Spark runs its jobs.

    `plain`: whether a path without a scheme is local (`paths.local`). Call `plan` before `summary`
    and `bins`; call `plan` or `answer` before `most_frequent_error`.
    """

    def __init__(self, args: argparse.Namespace, spark: SparkSession, *, plain: bool) -> None:
        self.args = args
        self.plain = plain
        self._spark = spark
        self._plans: DataFrame | None = None

    @cached_property
    def _read(self) -> tuple[DataFrame, Callable[[], dict[str, int]]]:
        """Returns the groups to assign, and a function that counts the others after the job."""
        args = self.args
        groups, passed_over = jobs.read_groups(
            self._spark,
            args.input,
            format=args.format,
            topics=args.topics,
            assume_assigned=args.assume_assigned,
            partitions=args.tasks,
            plain=self.plain,
        )
        left, left_out = jobs.assignable(groups)
        return left, lambda: {**left_out(), **passed_over()}

    def answer(self) -> tuple[Done, dict[str, int]]:
        """Runs the job: tasks answer files, or rows of a frame. Also returns how many groups it
        left out.
        """
        args, counts = self.args, _counts(self.args.word)
        if reads_files(args, self._spark, plain=self.plain):
            how = {name: getattr(args, name) for name in ("format", "tasks", "overwrite")}
            run = getattr(files, f"{args.word}_files")
            done: Done = run(self._spark, args.input, args.output, **how, **asked(args))
            columns = [column.alias(name) for name, column in counts.items()]
            (row,) = self._spark.read.parquet(args.output).agg(*columns).collect()
            return replace(done, counts=row.asDict()), {}
        left, left_out = self._read
        answers = getattr(functions, f"{args.word}_groups")(left, **asked(args))
        how = {"overwrite": args.overwrite, "plain": self.plain}
        done = jobs.write(answers, args.output, counts=counts, **how)
        return done, left_out()

    def causes(self) -> dict[str, int]:
        """Returns each cause of errors in records, with the number of records that have it."""
        if self.args.topics is None:
            return {}
        found = count_causes(self._spark.read.parquet(self.args.output))
        return {row[0]: row[1] for row in found.groupBy("cause").sum("records").collect()}

    def rows(self, names: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yields rows with these columns of the answers, after `cluster` if they contain it."""
        answers = self._spark.read.parquet(self.args.output)
        found = answers.select(*schema.keys(answers.schema), *names)
        return (row.asDict() for row in found.toLocalIterator())

    def worst(self, figure: str, most: int, change: str | None = None) -> list[dict[str, Any]]:
        if change is None:
            rows = self._spark.read.parquet(self.args.output)
        else:
            assert self._plans is not None
            rows = self._plans.where(f.col("change") == change)
        figured = f.expr(FIGURES[figure]).cast("bigint").alias("figure")
        keys = schema.keys(rows.schema)
        found = rows.select(*keys, "group_id", figured)
        found = found.where("figure > 0 and group_id is not null")
        top = found.orderBy(f.desc("figure"), "group_id", *keys).limit(most).collect()
        return [row.asDict() for row in top]

    def contract_lines(
        self, wanted: Iterable[tuple[str | None, str]]
    ) -> dict[tuple[str | None, str], str]:
        return jobs.contract_lines(self._read[0], wanted)

    def left_out(self) -> dict[str, int]:
        """Returns reason -> how many groups or records the plans left out for it."""
        return self._read[1]()

    def racks(self) -> dict[str, int]:
        """Returns the same as `Here.racks`, but at most 1,000 entries."""
        return dict(racks_of(self._read[0]).orderBy("rack").limit(1000).collect())

    def plan(self, changes: Sequence[str], output: str) -> None:
        args = self.args
        how = {"assignor": args.assignor, "max_partitions": args.max_partitions}
        planned = functions.plan_each_change(self._read[0], changes, **how)
        # The change is a column, never a directory name: it may contain a rack, and so any text.
        target = f"{output}/plans"
        jobs.write(planned, target, overwrite=args.overwrite, plain=self.plain)
        self._plans = self._spark.read.parquet(target)

    def summary(self, output: str, worst: int) -> tuple[Sequence[Any], dict[str, Any]]:
        """Writes the summary; returns its rows, and each change's totals over all clusters."""
        assert self._plans is not None
        target = f"{output}/summary"
        summary = fleet_summary(self._plans, worst=worst)
        mode = "overwrite" if self.args.overwrite else "error"
        summary.coalesce(1).write.mode(mode).parquet(target)  # one file
        rows = whole = self._spark.read.parquet(target).collect()
        if "cluster" in self._plans.columns:
            whole = fleet_summary(self._plans.drop("cluster"), worst=1).collect()
        return rows, {row["change"]: row for row in whole}

    @cached_property
    def _histogram(self) -> list[Any]:
        assert self._plans is not None
        rows = fleet_histogram(self._plans.where("change = ''")).collect()
        return sorted(rows, key=lambda row: row["low"])

    def bins(self, figure: str) -> list[Bin]:
        """Returns a histogram of a figure over all groups, for the next rebalance."""
        found = [row for row in self._histogram if row["figure"] == figure]
        return [Bin(row["low"], row["high"], row["groups"]) for row in found]

    def most_frequent_error(self) -> dict[str, Any]:
        plans = self._plans and self._plans.where("change = ''")
        rows = plans or self._spark.read.parquet(self.args.output)
        bad = rows.where("error is not null and not (error_kind <=> 'no-members')")
        errors = bad.groupBy("error").count()
        row = errors.orderBy(f.desc("count"), "error").limit(1).collect()[0]
        return {"error": row["error"], "groups": row["count"]}


def reads_files(args: argparse.Namespace, spark: SparkSession, *, plain: bool) -> bool:
    """Returns whether tasks read and write the files. Errors: GroupError at `--direct`."""
    if args.word == "summary" or args.direct is False:
        return False
    names = (args.input, args.output)
    is_local = all(paths.local(name, plain=plain) is not None for name in names)
    if args.direct is None and not is_local:
        return False
    format = args.format or paths.format_of(args.input, plain=plain)
    problem: str | None = None
    if args.topics is not None or format == paths.RECORDS:
        problem = "records are compacted by Spark"
    elif any(":" not in name for name in names) and not plain:
        problem = "INPUT and OUTPUT need a scheme, for example hdfs://"
    elif format == paths.PARQUET:
        problem = _refused(spark.read.parquet(args.input), args.input)
    if problem is None:
        return True
    if args.direct:
        raise GroupError("--direct", f"{problem}; leave it out")
    return False


def _refused(groups: DataFrame, source: str) -> str | None:
    """Returns why tasks cannot read these groups from the files themselves; None if they can."""
    if {"kind", "state"} <= {*groups.columns}:
        return "Spark leaves out the groups that are not consumer groups with members"
    files = map(unquote, groups.inputFiles())
    known = {*schema.contract().names, "changes", "error"}
    for name in sorted(known & paths.columns_of(files, below=source)):
        return f"the names of directories have the column {name}"
    return None


FIGURES = {
    "never ends": "error_kind = 'never-ends'",
    "better": "assignor != recommended",
    "without_members": f"error_kind = '{NO_MEMBERS}'",
    "uneven": "balance_after.max - balance_after.min - balance_possible.max + balance_possible.min",
    "waiting": "waiting",
    "unavailable": "unavailable",
}
"""Figure for `worst` -> its expression in SQL: a number in an answer row, or a condition."""


def _counts(word: str) -> dict[str, Column]:
    """Returns the columns that the command counts and prints after the groups and errors."""
    if word == "assign":
        perhaps = f.count_if(f.col("assignor").isin(WITHHOLDING))
        return {"with_anomalies": f.count("anomalies"), "perhaps_round_1": perhaps}
    without_members = f.count_if(f.col("error_kind") == NO_MEMBERS)
    if word == "plan":
        spreads = [f"balance_{when}.max - balance_{when}.min" for when in ("after", "possible")]
        return {
            "not_affected": f.count_if(f.isnull("moves") & f.isnull("error")),
            "without_members": without_members,
            "unsettled": f.count_if(~f.col("settled")),
            "moves": f.coalesce(f.sum("moves"), f.lit(0)),
            "with_moves": f.count_if(f.col("moves") > 0),
            "uneven": f.count_if(f.expr(" > ".join(spreads))),
            "without_a_reader": f.coalesce(f.sum("unavailable"), f.lit(0)),
            "with_unavailable": f.count_if(f.col("unavailable") > 0),
        }
    which = {name: f.col("reason").rlike(words) for name, words in BETTER.items()}
    which |= {f"recommended {name}": f.col("recommended") == name for name in RECOMMENDABLE}
    other = f.coalesce(f.col("assignor") != f.col("recommended"), f.lit(False))
    return {
        "not_affected": f.count_if(f.isnull("candidates") & f.isnull("error")),
        "without_members": without_members,
        "another_recommended": f.count_if(other),
        **{name: f.count_if(other & one) for name, one in which.items()},
    }
