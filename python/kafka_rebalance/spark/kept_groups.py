# SPDX-License-Identifier: Apache-2.0
"""Keeps a table of the present groups up to date from a stream of records.

    stream = stream_consumer_offsets(spark, bootstrap_servers="broker:9092")
    query = keep_current_groups(stream, "/data/groups")
    current_groups(kept_records(spark, "/data/groups"), topics)

    current.json            the name of the current table, and the next offset of each partition
    v-00000007-3f2a91c0/    a table: the last record of each key, as Parquet
    checkpoint/             Spark's checkpoint of the stream

A micro-batch has five steps:

1. Select the records that the table does not contain yet: `offset >= next[partition]`. If there are
   none, continue with step 5.
2. Add them to the current table, and keep the last record of each key.
3. Write the result to a new directory, whose name no other run uses.
4. Replace `current.json` in one step (write a new file, fsync, rename): if the process is killed,
   no record is lost, and none is applied twice.
5. Remove old tables, except the last few before the current one: queries may still read them.
"""

import json
import os
import re
import shutil
import uuid
from collections.abc import Sequence
from dataclasses import asdict, field
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from kafka_rebalance.errors import KafkaRebalanceError
from kafka_rebalance.frozen import Frozen

from .consumer_offsets import (
    BROKER_KEYS,
    COMMIT_KEYS,
    GROUP_KEYS,
    check_records,
    last_records,
    of_kinds,
)

CURRENT = "current.json"
READERS_KEEP = 2
"""The number of older tables that are kept: queries may still read them."""

_TABLE = re.compile(r"v-\d{8}-[0-9a-f]{8}")
_SCHEME = re.compile(r"^(?!file:)[a-z][a-z0-9+.-]+:/", re.IGNORECASE)


def keep_current_groups(
    stream: DataFrame,
    path: str,
    *,
    commits: bool = False,
    every: str | None = "30 seconds",
    checkpoint: str | None = None,
) -> StreamingQuery:
    """Starts and returns a query that keeps the last record of each key of groups in a table.

    `stream` contains the columns that `current_groups` takes. With `commits`, the table also
    contains committed offsets. `every` is the time between two micro-batches; None reads all
    present records, and then stops. The driver and all executors must see the directory `path`.
    Only one query may write to it at a time. A query that is started again with this path continues
    where the last one stopped, even if the last one was killed.

    Errors: SchemaError for wrong columns; ValueError for a path of an object store.
    """
    kinds = (*GROUP_KEYS, *BROKER_KEYS, *(COMMIT_KEYS if commits else ()))
    table = _KeptTable(_local(path), kinds, check_records(stream))
    writer = stream.writeStream.foreachBatch(table.apply).option(
        "checkpointLocation", checkpoint or _uri(table.path / "checkpoint")
    )
    if every is None:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=every).start()


def kept_records(spark: SparkSession, path: str) -> DataFrame:
    """Returns the kept table as records.

    Errors: KafkaRebalanceError if there is no table yet, or if it is damaged.
    """
    directory = _local(path)
    pointer = Pointer.read(directory)
    if pointer is None:
        raise KafkaRebalanceError(
            f"{path}: no table is there yet; keep_current_groups writes it in its first "
            "micro-batch: wait until query.recentProgress is not empty"
        )
    return pointer.table(spark, directory)


class Pointer(Frozen):
    """The content of current.json.

    `next` maps a partition to its next offset; in a table of several clusters the key is the
    cluster, a slash, and the partition. `kinds` are the kinds of records in the table. `files` maps
    the names of the table's files to their sizes in bytes.
    """

    version: int
    directory: str
    next: dict[str, int]
    kinds: list[str]
    previous: list[str] = field(default_factory=list)
    files: dict[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> "Pointer | None":
        """Returns the pointer of a directory; None if the directory contains no table yet."""
        try:
            return cls(**json.loads((path / CURRENT).read_text(encoding="utf-8")))
        except FileNotFoundError:
            made = sorted(one.name for one in path.glob("v-*") if _TABLE.fullmatch(one.name))
            # If the first run was killed, a first table may exist without a pointer; from the
            # second table on, there must be one.
            if made and made[-1] >= "v-00000002":
                raise _damaged(path / CURRENT, f"is gone, {made[-1]} is there") from None
            return None
        except (ValueError, TypeError) as error:
            raise _damaged(path / CURRENT, f"cannot be read: {error}") from error

    def table(self, spark: SparkSession, path: Path) -> DataFrame:
        """Returns the table. Errors: KafkaRebalanceError if a file is missing or cut."""
        directory = path / self.directory
        for name, size in self.files.items():
            file = directory / name
            if not file.is_file() or file.stat().st_size != size:
                raise _damaged(file, f"is not there with its {size} bytes")
        return spark.read.parquet(_uri(directory))

    def replace(self, path: Path) -> None:
        """Replaces the directory's pointer with this one, in one step."""
        aside = path / f"{CURRENT}.{uuid.uuid4().hex[:8]}.tmp"
        with aside.open("w", encoding="utf-8") as file:
            json.dump(asdict(self), file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path / CURRENT)


class _KeptTable:
    def __init__(self, path: Path, kinds: Sequence[str], keys: list[str]) -> None:
        self.path = path
        self._kinds = kinds
        self._keys = keys

    def apply(self, batch: DataFrame, _batch_id: int) -> None:
        """Applies a micro-batch to the table, by the steps in the module's docstring."""
        self.path.mkdir(parents=True, exist_ok=True)
        pointer = Pointer.read(self.path)
        if pointer is not None and pointer.kinds != list(self._kinds):
            raise KafkaRebalanceError(
                f"{self.path}: the table there was made with another value of commits; "
                "take another path, because earlier records are not read from Kafka again"
            )
        columns = [*self._keys, "partition", "key", "value", "offset"]
        # The records are cached before any shuffle: Spark does not merge the small partitions of a
        # cached shuffle.
        wanted = batch.where(of_kinds(self._kinds)).select(*columns)
        fresh = wanted.where(self._is_new(pointer)).persist()
        try:
            ends = fresh.groupBy(self._place().alias("place")).agg(f.max("offset").alias("last"))
            following = {row["place"]: row["last"] + 1 for row in ends.collect()}
            if following:
                self._replace(batch.sparkSession, pointer, fresh, following)
        finally:
            fresh.unpersist()
        self._remove_others(Pointer.read(self.path))

    def _replace(
        self,
        spark: SparkSession,
        pointer: Pointer | None,
        fresh: DataFrame,
        following: dict[str, int],
    ) -> None:
        whole = fresh
        if pointer is not None:
            whole = fresh.unionByName(pointer.table(spark, self.path))
        version = 1 if pointer is None else pointer.version + 1
        directory = f"v-{version:08}-{uuid.uuid4().hex[:8]}"
        latest = last_records(whole, self._kinds, self._keys)
        latest.write.parquet(_uri(self.path / directory))
        if Pointer.read(self.path) != pointer:
            raise KafkaRebalanceError(f"{self.path}: another query writes there; stop one of them")
        before = [] if pointer is None else [pointer.directory, *pointer.previous]
        Pointer(
            version,
            directory,
            {**(pointer.next if pointer else {}), **following},
            list(self._kinds),
            before[:READERS_KEEP],
            {one.name: one.stat().st_size for one in (self.path / directory).glob("*.parquet")},
        ).replace(self.path)

    def _is_new(self, pointer: Pointer | None) -> Column:
        if pointer is None:
            return f.lit(True)
        pairs = [f.lit(value) for pair in pointer.next.items() for value in pair]
        following = f.try_element_at(f.create_map(*pairs), self._place())
        return f.col("offset") >= f.coalesce(following, f.lit(0))

    def _place(self) -> Column:
        partition = f.col("partition").cast("string")
        if not self._keys:
            return partition
        return f.concat(f.coalesce("cluster", f.lit("")), f.lit("/"), partition)

    def _remove_others(self, pointer: Pointer | None) -> None:
        """Removes old tables, which the pointer no longer names, and tables and temporary files of
        killed runs.
        """
        kept = {pointer.directory, *pointer.previous} if pointer else set()
        for path in self.path.iterdir():
            if (_TABLE.fullmatch(path.name) and path.name not in kept) or path.suffix == ".tmp":
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink()


def _damaged(path: Path, problem: str) -> KafkaRebalanceError:
    return KafkaRebalanceError(
        f"{path}: {problem}; the table is damaged: remove its directory and the checkpoint, "
        "and start the query again"
    )


def _uri(path: Path) -> str:
    """Returns the path as a URI, because Spark's default file system may not be the local one."""
    return f"file://{path}"  # not `as_uri`: Spark does not decode %20


def _local(path: str) -> Path:
    if _SCHEME.match(path):
        raise ValueError(
            f"path: {path} is not a directory of a file system that this process sees; current.json"
            " needs its atomic rename (a mounted path is good)"
        )
    return Path(re.sub(r"^file:(//)?(?=/)", "", path)).absolute()
