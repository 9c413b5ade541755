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

    `never_end` counts the `errors` that have the text of `NeverEnds.here` in errors.py.
    """

    groups: int
    errors: int
    never_end: int
    with_anomalies: int
    seconds: float


def is_lines(path: Path) -> bool:
    """Returns whether a file, or any file of a directory, is JSON lines (maybe gzipped)."""
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
    """Assigns every group of `source` and writes Parquet; `partitions` are Spark's, not Kafka's."""
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
    """Returns the answers as a DataFrame; `partitions` is Spark's number of partitions."""
    if is_lines(source):
        # The lines stay bytes, because Spark does not check UTF-8; Rust reports a bad line.
        text = spark.read.option("recursiveFileLookup", "true").text(str(source))
        blank = f.col("value").rlike(r"\A[ \t\r\n\x0b\f]*\z")
        lines = text.where(~blank).select(f.col("value").cast("binary").alias("line"))
        spread = lines if partitions is None else lines.repartition(partitions)
        return assign_lines(spread, assignor=assignor, max_partitions=max_partitions)
    groups = spark.read.parquet(str(source))
    spread = groups if partitions is None else groups.repartition(partitions)
    return assign_groups(spread, assignor=assignor, max_partitions=max_partitions)
