# SPDX-License-Identifier: Apache-2.0
"""Assigns, plans or compares the groups in files, with tasks that read and write files themselves.

    assign_files(spark, "s3a://lake/groups", "s3a://lake/assigned")

No row passes between Spark and Python, and no row is written twice, even if a task is repeated:

1. Spark lists the files of the input; the driver cuts them into splits (`bulk/splits.py`).
2. Each task writes its answers to a new file in OUTPUT/_temporary, and reports the name of this
   file.
3. Spark hands the driver one report for each task, even if the task ran several times.
4. The driver moves the reported files to OUTPUT, then removes all others and `_temporary`.
5. The driver writes `_SUCCESS`.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema

from kafka_rebalance.bulk import calls, paths
from kafka_rebalance.bulk.output_directory import output_directory
from kafka_rebalance.bulk.parts import Done, Job, WrittenPart, summed, write_part
from kafka_rebalance.bulk.splits import Split, bytes_each, cut
from kafka_rebalance.errors import GroupError, SchemaError
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.model import MAX_PARTITIONS
from kafka_rebalance.plans.changes.change import Change

from . import schema
from .workers import Batches, map_in_workers

_REPORT = "name string, groups bigint, errors bigint, never_ends bigint"
_CORES = 16


def assign_files(
    spark: SparkSession,
    source: str,
    target: str,
    *,
    assignor: str | None = None,
    max_partitions: int = MAX_PARTITIONS,
    keep: Sequence[str] = (),
    format: str | None = None,
    tasks: int | None = None,
    overwrite: bool = False,
) -> Done:
    """Assigns every group of the files in `source`, and writes `target`: Parquet, OUTPUT_SCHEMA.

    The rows are those of `assign_groups`, at about a third of its CPU time (docs/cluster.md).
    Driver and workers open the paths with pyarrow: local ones, `hdfs://`, `s3a://`, `gs://`,
    `abfss://`; or else with fsspec. They use the environment's credentials, not Hadoop's
    configuration.

    `format` is "lines" or "parquet"; if None, the files' suffixes decide. With lines, `keep` is an
    error. `tasks` is the approximate number of tasks; row groups are not cut. `target` must not
    exist, except with `overwrite`. Returns the counts.

    Errors: as in `assign_groups`; GroupError for a path that cannot be used; SchemaError for a
    column that occurs only in the names of directories (except `cluster`), or for a kept column
    whose types in two files are incompatible.
    """
    call = calls.assign_call(assignor, max_partitions)
    work = _Work(spark, source, target, format, tasks, overwrite)
    return work.run("assign", call, calls.unread(assignor), schema.OUTPUT_SCHEMA, keep)


def plan_files(
    spark: SparkSession,
    source: str,
    target: str,
    *,
    assignor: str | None = None,
    changes: Iterable[Change | str] | None = None,
    max_partitions: int = MAX_PARTITIONS,
    keep: Sequence[str] = (),
    format: str | None = None,
    tasks: int | None = None,
    overwrite: bool = False,
) -> Done:
    """Plans as `plan_groups` does, but from files to files; writes the columns of PLAN_SCHEMA."""
    call = calls.plan_call(assignor, changes, max_partitions)
    work = _Work(spark, source, target, format, tasks, overwrite)
    more = ("changes",) if changes is None else ()
    return work.run("plan", call, calls.not_planned([call]), schema.PLAN_SCHEMA, keep, more)


def compare_files(
    spark: SparkSession,
    source: str,
    target: str,
    *,
    changes: Iterable[Change | str] = (),
    max_partitions: int = MAX_PARTITIONS,
    keep: Sequence[str] = (),
    format: str | None = None,
    tasks: int | None = None,
    overwrite: bool = False,
) -> Done:
    """Compares as `compare_groups` does, but from files to files, with COMPARE_SCHEMA's columns."""
    call = calls.compare_call(changes, max_partitions)
    work = _Work(spark, source, target, format, tasks, overwrite)
    return work.run("compare", call, calls.NOT_COMPARED, schema.COMPARE_SCHEMA, keep)


class _Work(Frozen):
    """The arguments that `assign_files`, `plan_files` and `compare_files` share."""

    spark: SparkSession
    source: str
    target: str
    format: str | None
    tasks: int | None
    overwrite: bool

    def run(
        self,
        verb: str,
        call: calls.Call,
        drop: set[str],
        answers_schema: str,
        keep: Sequence[str],
        more: Sequence[str] = (),
    ) -> Done:
        """Runs the module's five steps. The core reads the contract's columns, and `more`."""
        start = time.perf_counter()
        if self.tasks is not None and self.tasks < 1:
            raise GroupError("tasks", f"{self.tasks} is less than 1")
        is_lines = self._is_lines()
        if is_lines and (keep or more):
            name = "keep" if keep else "changes"
            raise SchemaError(f"{name}: contract lines have no columns")
        frame = self._frame(is_lines)
        if not is_lines:
            self._check(frame.schema, answers_schema, keep, more)
        # Spark returns the paths as URIs: characters that a URI cannot contain are written as %XX.
        names = sorted(unquote(name) for name in frame.inputFiles())
        self._check_target(names)
        wanted = {*schema.leaf_paths(drop), *more, *keep, "error"}
        files = self._splits(names)
        has_cluster = "cluster" in frame.columns
        if is_lines:
            has_cluster = any(file.cluster is not None for file in files)
        else:
            self._check_directories(names, wanted)
        kept = to_arrow_schema(t.StructType([frame.schema[name] for name in keep]))
        columns = frozenset({*wanted, "cluster"})
        with output_directory(self.target, overwrite=self.overwrite) as output:
            job = Job(verb, [call], is_lines, columns, kept, has_cluster, output.parts)
            # If all files are empty, one task writes a part without rows.
            work = cut(files, self._bytes_each(files), lines=is_lines) or [files[:1]]
            parts = _run(self.spark, job, work)
            output.commit([part.name for part in parts if part.name is not None])
        return summed(parts, time.perf_counter() - start)

    def _is_lines(self) -> bool:
        format = self.format or paths.format_of(self.source)
        if format not in (paths.LINES, paths.PARQUET):
            problem = f"{format} is not {paths.LINES} or {paths.PARQUET}"
            raise GroupError("format", problem)
        return format == paths.LINES

    def _frame(self, is_lines: bool) -> DataFrame:
        """Returns a frame of the input's files, to learn their names and columns; Spark reads no
        row of it.
        """
        read = self.spark.read
        if is_lines:
            return read.option("recursiveFileLookup", "true").text(self.source)
        return read.parquet(self.source)

    def _check(
        self, found: t.StructType, answers_schema: str, keep: Sequence[str], more: Sequence[str]
    ) -> None:
        """Checks Parquet's columns, as the functions for DataFrames do. Errors: SchemaError."""
        # The cluster may be a number (Spark reads `cluster=1` so); the tasks turn it into a string.
        others = t.StructType([field for field in found if field.name != "cluster"])
        schema.check(others)
        if "changes" in more:
            schema.check_changes(others)
        clusters = ["cluster"] if "cluster" in found.names else []
        schema.kept_fields(
            keep, others, schema.answers_type(schema.with_keys(answers_schema, clusters))
        )

    def _check_target(self, names: Sequence[str]) -> None:
        """Raises GroupError if the target overlaps the files, or if Spark would take its path for
        another place.
        """
        if not paths.SCHEME.match(self.target) and not self._plain_is_local(names):
            raise GroupError("target", f"{self.target} needs a scheme, for example hdfs://")
        if paths.overlaps(self.target, [self.source, *names]):
            problem = f"{self.target} overlaps the source, which would be overwritten"
            raise GroupError("target", problem)

    def _plain_is_local(self, names: Sequence[str]) -> bool:
        if isinstance(self.spark, SparkSession):
            hadoop = self.spark.sparkContext._jsc.hadoopConfiguration()
            return paths.split_path(hadoop.get("fs.defaultFS"))[0] == "file"
        # Spark Connect does not show Hadoop's default file system: the URIs of the input files show
        # it instead.
        return all(paths.split_path(name)[0] == "file" for name in names)

    def _check_directories(self, names: Sequence[str], wanted: set[str]) -> None:
        """Raises SchemaError if a wanted column occurs in the names of directories (`NAME=VALUE`),
        not in the files.
        """
        needed = wanted | {path.partition(".")[0] for path in wanted}
        for name in sorted(needed & paths.columns_of(names, below=self.source)):
            problem = "a directory's name has it, not the files; use assign_groups"
            raise SchemaError(f"{name}: {problem}")

    def _splits(self, names: Sequence[str]) -> list[Split]:
        if not names:
            raise GroupError("source", f"there is no file in {self.source}")
        sizes = paths.file_sizes(names)
        clusters = paths.clusters_of(names, below=self.source)
        return [
            Split(name, 0, sizes[name], cluster)
            for name, cluster in zip(names, clusters, strict=True)
        ]

    def _bytes_each(self, files: list[Split]) -> int:
        # Spark Connect does not show the number of cores, so `_CORES` is assumed.
        is_classic = isinstance(self.spark, SparkSession)
        cores = self.spark.sparkContext.defaultParallelism if is_classic else _CORES
        return bytes_each(sum(file.end for file in files), self.tasks, cores)


def _run(spark: SparkSession, job: Job, work: list[list[Split]]) -> list[WrittenPart]:
    def run(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                part = pa.RecordBatch.from_pylist([asdict(write_part(job, number, work[number]))])
                yield part.set_column(0, "name", part.column(0).cast(pa.string()))

    tasks = map_in_workers(spark.range(0, len(work), 1, len(work)), run, _REPORT)
    return [WrittenPart(*row) for row in tasks.collect()]
