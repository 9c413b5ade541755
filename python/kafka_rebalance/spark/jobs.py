# SPDX-License-Identifier: Apache-2.0
"""The bulk job: reads groups from files, writes answers as Parquet, and counts them."""

import time
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as f

from kafka_rebalance.group.model import MAX_PARTITIONS

from .functions import assign_groups, assign_lines

_LINES = (".jsonl", ".json", ".ndjson")


@dataclass(frozen=True, slots=True)
class Done:
    """The counts of a job; `seconds` is the wall time of reading, assigning and writing.

    `never_end` counts the `errors` of groups whose leader would hang (docs/never-ends.md).
    """

    groups: int
    errors: int
    never_end: int
    with_anomalies: int
    seconds: float


def is_lines(path: Path) -> bool:
    """Whether a file, or any file of a directory, is JSON lines (maybe gzipped), not Parquet."""
    files = [path] if path.is_file() else [p for p in sorted(path.rglob("*")) if p.is_file()]
    names = (file.name.removesuffix(".gz") for file in files)
    return any(name.endswith(_LINES) for name in names)


def run(
    spark: SparkSession,
    source: Path,
    target: Path,
    *,
    assignor: str | None,
    max_partitions: int = MAX_PARTITIONS,
    partitions: int | None = None,
    overwrite: bool = False,
) -> Done:
    """Assigns every group of `source` (JSON lines or Parquet) and writes `target` (Parquet)."""
    answers = answer(
        spark, source, assignor=assignor, max_partitions=max_partitions, partitions=partitions
    )
    return write(answers, target, overwrite=overwrite)


def write(answers: DataFrame, target: Path, *, overwrite: bool = False) -> Done:
    """Runs a job: writes its answers as Parquet, and counts them in one pass."""
    start = time.perf_counter()
    counts = Observation()
    counted = answers.observe(
        counts,
        f.count(f.lit(1)).alias("groups"),
        f.count("error").alias("errors"),
        f.count_if(f.col("error").contains("assignor never ends here")).alias("never_end"),
        f.count("anomalies").alias("with_anomalies"),
    )
    counted.write.mode("overwrite" if overwrite else "error").parquet(str(target))
    seconds = time.perf_counter() - start
    found = counts.get
    return Done(
        found["groups"], found["errors"], found["never_end"], found["with_anomalies"], seconds
    )


def answer(
    spark: SparkSession,
    source: Path,
    *,
    assignor: str | None,
    max_partitions: int = MAX_PARTITIONS,
    partitions: int | None = None,
) -> DataFrame:
    """The answers of a file or directory as a DataFrame."""
    if is_lines(source):
        # As bytes: Spark does not check that text is UTF-8, and Rust reports a bad line.
        text = spark.read.option("recursiveFileLookup", "true").text(str(source))
        blank = f.col("value").rlike(r"\A[ \t\r\n\x0b\f]*\z")
        lines = text.where(~blank).select(f.col("value").cast("binary").alias("line"))
        spread = lines if partitions is None else lines.repartition(partitions)
        return assign_lines(spread, assignor=assignor, max_partitions=max_partitions)
    groups = spark.read.parquet(str(source))
    spread = groups if partitions is None else groups.repartition(partitions)
    return assign_groups(spread, assignor=assignor, max_partitions=max_partitions)
