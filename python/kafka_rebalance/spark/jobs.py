# SPDX-License-Identifier: Apache-2.0
"""The bulk jobs: read groups from a path that Spark can read, write Parquet, count answers."""

import json
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as f

from kafka_rebalance.bulk import paths
from kafka_rebalance.bulk.one_by_one import with_names
from kafka_rebalance.bulk.output_directory import whole_directory
from kafka_rebalance.bulk.parts import Done
from kafka_rebalance.errors import GroupError

from . import schema
from .consumer_offsets import OTHER_KINDS, kind_of_record
from .group_records import current_groups
from .summary import failed

_BLANK = r"\A[ \t\r\n\x0b\f]*\z"


def read_groups(
    spark: SparkSession,
    source: str,
    *,
    format: str | None = None,
    topics: str | None = None,
    assume_assigned: bool = False,
    partitions: int | None = None,
    plain: bool = True,
) -> tuple[DataFrame, Callable[[], dict[str, int]]]:
    """Returns the groups at a path, and a function that returns how many records were skipped.

    Call the function after a job has run: it returns their number by kind. A record is skipped if
    its key is unreadable or of an unknown version, or if it is one of a broker-assigned group and
    the topics have no ids. A group is a contract row, or a contract line in the column `line`.

    `format` is one of `paths.FORMATS`; None means RECORDS if `topics` is given, else the suffixes
    decide. For files below a directory `cluster=NAME`, the groups contain a column `cluster`. From
    RECORDS, all classic groups are returned, also those that `assignable` leaves out. `partitions`
    is the number of Spark's partitions; `plain`: whether a path without a scheme is local
    (`paths.local`).
    """
    if format is None:
        suffixes = paths.format_of(source, plain=plain)
        format = suffixes if topics is None else paths.RECORDS
    passed_over: Callable[[], dict[str, int]] = dict
    if format == paths.LINES:
        groups = _lines(spark, source)
    elif format == paths.PARQUET:
        groups = _with_text_cluster(spark.read.parquet(source))
    elif topics is None:
        raise GroupError("--topics", "missing; records do not have the topics' partition counts")
    else:
        records = _with_text_cluster(spark.read.parquet(source))
        known = read_topics(spark, topics, plain=plain)
        has_ids = "topic_id" in known.columns
        records, passed_over = _passing_over(records, OTHER_KINDS[-1:] if has_ids else OTHER_KINDS)
        groups = current_groups(records, known, assume_assigned=assume_assigned)
    return (groups if partitions is None else groups.repartition(partitions)), passed_over


def _passing_over(
    records: DataFrame, kinds: Iterable[str]
) -> tuple[DataFrame, Callable[[], dict[str, int]]]:
    """Returns the records, and a function that, after the job, counts the skipped ones by kind."""
    kind = kind_of_record()
    skipped = {f"records: {name}": kind == name for name in kinds}
    skipped["records: unknown version of key"] = kind.startswith("key version ")
    return _counting(records, skipped)


def _counting(
    rows: DataFrame, conditions: Mapping[str, Column]
) -> tuple[DataFrame, Callable[[], dict[str, int]]]:
    """Returns the rows, and a function that, after the job, counts the rows that met each
    condition.
    """
    found = Observation()
    counts = [f.count_if(condition).alias(name) for name, condition in conditions.items()]
    counted = rows.observe(found, *counts)
    return counted, lambda: {name: count for name, count in found.get.items() if count}


def read_topics(spark: SparkSession, source: str, *, plain: bool = True) -> DataFrame:
    """Returns an inventory of topics: name, partitions; if present, racks, topic_id and cluster."""
    if paths.format_of(source, plain=plain) == paths.PARQUET:
        return _with_text_cluster(spark.read.parquet(source))
    return _with_text_cluster(spark.read.json(source))


def _lines(spark: SparkSession, source: str) -> DataFrame:
    # The lines stay bytes, so that Rust can report a line that is not UTF-8.
    text = spark.read.option("recursiveFileLookup", "true").text(source)
    line = f.col("value").cast("binary").alias("line")
    full = text.where(~f.col("value").rlike(_BLANK))
    files = map(unquote, text.inputFiles())
    if not any(cluster is not None for cluster in paths.clusters_of(files, below=source)):
        return full.select(line)
    # The cluster's name is encoded twice: by Spark in the path, and with the path in the URI.
    path = _decoded(f.col("_metadata.file_path"))
    found = f.regexp_extract(path, paths.cluster_pattern(source), 1)
    name = f.when(~found.isin("", paths.NO_CLUSTER), _decoded(found))
    return full.select(name.alias("cluster"), line)


def _decoded(text: Column) -> Column:
    """Decodes %XX as `unquote` does: a "+" stays, and so does a "%" that encodes nothing."""
    return f.coalesce(f.try_url_decode(f.replace(text, f.lit("+"), f.lit("%2B"))), text)


def _with_text_cluster(frame: DataFrame) -> DataFrame:
    """Returns a frame whose cluster is a string; Spark reads `cluster=1` as a number."""
    if "cluster" not in frame.columns:
        return frame
    return frame.withColumn("cluster", f.col("cluster").cast("string"))


def assignable(groups: DataFrame) -> tuple[DataFrame, Callable[[], dict[str, int]]]:
    """Returns the groups to assign, and a function that, after the job, counts the others by
    reason.
    """
    if "kind" not in groups.columns or "state" not in groups.columns:
        return groups, dict
    is_bad = f.col("error").isNotNull()
    is_consumer = f.coalesce(f.col("kind").isin("consumer", "share", "streams"), f.lit(False))
    is_connect = f.coalesce(f.col("kind") == "connect", f.lit(False))
    has_members = f.coalesce(f.size("members") > 0, f.lit(False))
    others = {
        "empty groups": ~is_bad & is_consumer & ~has_members,
        "Connect clusters": ~is_bad & is_connect,
        "groups of other kinds": ~is_bad & ~is_consumer & ~is_connect,
    }
    counted, left_out = _counting(groups, others)
    return counted.where(is_bad | (is_consumer & has_members)), left_out


def write(
    answers: DataFrame,
    target: str,
    *,
    overwrite: bool = False,
    plain: bool = True,
    counts: Mapping[str, Column] | None = None,
) -> Done:
    """Runs a job: writes its answers as Parquet, and counts them in one pass.

    A local `target` appears (or replaces an older one) only when it is complete. In other file
    systems, Spark's committer writes `_SUCCESS` last. `plain` is as in `paths.local`.
    """
    start = time.perf_counter()
    observed = Observation()
    counted = answers.observe(
        observed,
        f.count(f.lit(1)).alias("groups"),
        f.count_if(failed()).alias("errors"),
        f.count_if(f.col("error_kind") == "never-ends").alias("never_ends"),
        *[column.alias(name) for name, column in (counts or {}).items()],
    )
    here = paths.local(target, plain=plain)
    if here is None:
        mode = "overwrite" if overwrite else "error"
        counted.write.mode(mode).parquet(target)
    else:
        with whole_directory(here, overwrite=overwrite) as written:
            counted.write.mode("error").parquet(written.as_uri())
    found = dict(observed.get)
    seconds = time.perf_counter() - start
    return Done(found.pop("groups"), found.pop("errors"), found.pop("never_ends"), seconds, found)


def contract_lines(
    groups: DataFrame, wanted: Iterable[tuple[str | None, str]]
) -> dict[tuple[str | None, str], str]:
    """Returns (cluster, group id) -> contract line for `wanted`, as input for other commands."""
    pairs = list(wanted)
    ids = sorted({group_id for _, group_id in pairs})
    if not ids:
        return {}
    clusters = schema.keys(groups.schema)
    if schema.is_lines(groups.schema):
        text = f.col("line").cast("string")
        group_id = f.get_json_object(text, "$.group_id")
        rows = groups.select(*clusters, group_id.alias("group_id"), text.alias("line"))
    else:
        names = [*schema.contract().names, "generation_id"]
        rows = groups.select(*clusters, *[name for name in names if name in groups.columns])
    found = {}
    for row in rows.where(f.col("group_id").isin(ids)).collect():
        key = (row["cluster"] if clusters else None, row["group_id"])
        if key in pairs:
            found[key] = row["line"] if "line" in row else _line(row.asDict(recursive=True))
    return found


def _line(row: dict[str, Any]) -> str:
    """Returns a row as a contract line, which lists topics by name, without nulls and `cluster`."""
    row.pop("cluster", None)
    return json.dumps(_without_nulls(with_names(row)))


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(one) for name, one in value.items() if one is not None}
    if isinstance(value, list):
        return [_without_nulls(one) for one in value]
    return value
