# SPDX-License-Identifier: Apache-2.0
"""Runs the job of `fleet assign`, `plan` or `compare`: on Spark's rows, or on files in tasks."""

import argparse
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from kafka_rebalance.assignors.registry import BUILT_IN
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.model import shell_option, shell_word

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from kafka_rebalance.bulk.parts import Done


def read(
    args: argparse.Namespace, spark: "SparkSession", *, plain: bool
) -> tuple["DataFrame", Callable[[], dict[str, int]]]:
    """Returns the groups to assign, and a function to call after the job: it counts the rest."""
    from kafka_rebalance.spark import jobs

    groups, passed_over = jobs.read_groups(
        spark,
        args.input,
        format=args.format,
        topics=args.topics,
        assume_assigned=args.assume_assigned,
        partitions=args.tasks,
        plain=plain,
    )
    left, left_out = jobs.assignable(groups)
    return left, lambda: {**left_out(), **passed_over()}


def command(
    args: argparse.Namespace, file: Path | str, group_id: str | None, changes: Sequence[Any]
) -> str:
    """Returns a command that plans or compares one group, with the assignor of this job."""
    words = ["kafka-rebalance", "compare" if args.word == "compare" else "plan"]
    words.append(shell_word(os.fspath(file)))
    if group_id is not None:
        words.append(shell_option("--group", group_id))
    if getattr(args, "assignor", None) is not None:
        words.append(shell_option("--assignor", args.assignor))
    return " ".join([*words, *(shell_option("--change", str(change)) for change in changes)])


def reads_files(args: argparse.Namespace, spark: "SparkSession", *, plain: bool) -> bool:
    """Returns whether tasks read and write the files: with `--direct`, or if both are local.

    If the rows may be groups of other kinds, Spark has to filter them. Errors: GroupError at
    `--direct`.
    """
    from kafka_rebalance.bulk import paths

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


def _refused(groups: "DataFrame", source: str) -> str | None:
    """Returns why tasks cannot read these rows from the files, or None."""
    from kafka_rebalance.bulk import paths
    from kafka_rebalance.spark import schema

    if {"kind", "state"} <= {*groups.columns}:
        return "Spark leaves out the groups that are not consumer groups with members"
    files = map(unquote, groups.inputFiles())
    known = {*schema.contract().names, "changes", "error"}
    for name in sorted(known & paths.columns_of(files, below=source)):
        return f"the names of directories have the column {name}"
    return None


def answer_files(args: argparse.Namespace, spark: "SparkSession") -> "Done":
    """Runs the job in tasks that read and write files."""
    from dataclasses import replace

    from kafka_rebalance.spark.files import assign_files, compare_files, plan_files

    runs: dict[str, Any] = {"assign": assign_files, "plan": plan_files, "compare": compare_files}
    how = {name: getattr(args, name) for name in ("format", "tasks", "overwrite")}
    done: Done = runs[args.word](spark, args.input, args.output, **how, **_asked(args))
    counts = [column.alias(name) for name, column in _counts(args.word).items()]
    (row,) = spark.read.parquet(args.output).agg(*counts).collect()
    return replace(done, counts=row.asDict())


def answer(
    args: argparse.Namespace, spark: "SparkSession", *, plain: bool
) -> tuple["Done", dict[str, int]]:
    """Runs the job on Spark's rows; also returns how many groups and records it left out."""
    from kafka_rebalance.spark import jobs
    from kafka_rebalance.spark.functions import assign_groups, compare_groups, plan_groups

    runs: dict[str, Any] = {"assign": assign_groups, "plan": plan_groups, "compare": compare_groups}
    left, left_out = read(args, spark, plain=plain)
    answers, counts = runs[args.word](left, **_asked(args)), _counts(args.word)
    done = jobs.write(answers, args.output, overwrite=args.overwrite, plain=plain, counts=counts)
    return done, left_out()


def _asked(args: argparse.Namespace) -> dict[str, Any]:
    """Returns the job's parameters that this command has as options: `assign` has no changes."""
    names = ("assignor", "changes", "max_partitions")
    return {name: vars(args)[name] for name in names if name in vars(args)}


def _counts(word: str) -> "dict[str, Column]":
    """Returns further columns to count: the command prints them after the groups and errors."""
    from pyspark.sql import functions as f

    if word == "assign":
        return {"with_anomalies": f.count("anomalies")}
    if word == "plan":
        return {
            "not_affected": f.count_if(f.isnull("moves") & f.isnull("error")),
            "unsettled": f.count_if(~f.col("settled")),
            "moves": f.coalesce(f.sum("moves"), f.lit(0)),
            "without_a_reader": f.coalesce(f.sum("unavailable"), f.lit(0)),
        }
    other = f.coalesce(f.col("assignor") != f.col("recommended"), f.lit(False))
    return {
        "not_affected": f.count_if(f.isnull("candidates") & f.isnull("error")),
        "another_recommended": f.count_if(other),
        **{
            f"recommended {name}": f.count_if(f.col("recommended") == name)
            for name, row in BUILT_IN.items()
            if row.clients
        },
    }
