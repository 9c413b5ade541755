# SPDX-License-Identifier: Apache-2.0
"""Reads the groups of a Spark job, and makes a command that plans or compares one of them."""

import argparse
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka_rebalance.group.model import shell_option, shell_word

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read(
    args: argparse.Namespace, spark: "SparkSession", *, plain: bool
) -> tuple["DataFrame", Callable[[], dict[str, int]]]:
    """Returns the groups to assign, and a function that counts the others after a job has run."""
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
