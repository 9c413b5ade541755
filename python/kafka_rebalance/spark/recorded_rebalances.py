# SPDX-License-Identifier: Apache-2.0
"""Computes the history of all groups in records of `__consumer_offsets`, on Spark.

    rebalance_history(records).where("cause = 'timed out'").groupBy("group_id").count()

1. A window over each partition of the log finds the offset after its last gap.
2. A window over each group numbers its records. The commits of a partition between two records
   become one row with their first and last time, so few rows are left.
3. The rows of a group are brought together, each record before the commits that follow it; one pass
   over them infers the causes with `history/all_groups.py`.
"""

import struct
from collections.abc import Iterator
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql import types as t

from kafka_rebalance.errors import WireError
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.history.all_groups import GroupReader, group_of, read_key
from kafka_rebalance.history.departures import CommitTimes
from kafka_rebalance.history.group_epochs import SESSION_MS, Sessions
from kafka_rebalance.history.recorded import RecordedRebalance
from kafka_rebalance.history.records import OffsetsRecord
from kafka_rebalance.wire.group_records import OffsetCommitKey

from .consumer_offsets import (
    BROKER_KEYS,
    COMMIT_KEYS,
    GROUP_KEYS,
    check_records,
    group_bytes,
    of_kinds,
    require_columns,
)
from .schema import arrow_schema, with_keys
from .workers import Batches, Row, map_in_workers

HISTORY_SCHEMA = (
    "group_id string, partition int, offset bigint, time_ms bigint, written_ms bigint, "
    "generation_id int, protocol_type string, protocol string, leader string, "
    "leader_library string, members int, partitions int, idle array<string>, "
    "joined array<string>, left array<string>, "
    "back array<struct<old: string, new: string, identity: string, is_static: boolean, "
    "absent_ms: bigint, silent_ms: bigint>>, "
    "resubscribed array<string>, moved int, gained int, revoked int, seconds double, "
    "emptied boolean, gap int, gap_reason string, again boolean, "
    "causes array<struct<kind: string, certainty: string, members: array<string>, "
    "detail: string>>, error string, group_type string, "
    "revocations array<struct<member_id: string, partitions: int, took_ms: bigint>>, "
    "between_ms bigint, reconciled_ms bigint, "
    "clients array<struct<member_id: string, client_id: string>>, cause string"
)
"""The columns of `rebalance_history`, after `cluster string` if the records contain that column.

They are the fields of `history.recorded.RecordedRebalance`; `cause` is the main cause.
"""

_GROUP_KEYS = (*GROUP_KEYS, *BROKER_KEYS)
_BATCH_ROWS = 10_000
_UUID = struct.Struct(">qq")


def rebalance_history(records: DataFrame, *, session_ms: Sessions = SESSION_MS) -> DataFrame:
    """Returns a row for each record of a classic group, and for each epoch of a broker-assigned
    group: HISTORY_SCHEMA. Tombstones have no row.

    `records` contains the columns of Spark's Kafka source: key, value, partition, offset and
    timestamp; with a column `cluster`, groups of several clusters are kept apart. Pass all records,
    because commits distinguish an expired session from a departure. `session_ms` is as in
    `history.rebalance_history`.

    Errors: SchemaError for a column that is missing or of another type, before anything runs. If a
    record cannot be read, its row has an `error`, and the job continues.
    """
    keys = check_records(records)
    require_columns(records, {"timestamp": t.TimestampType()}, "records.")
    log = [*keys, "partition"]
    group = [*log, "group"]
    # 1.
    whole = _whole_from(records, log)
    # 2.
    wanted = records.where(of_kinds((*_GROUP_KEYS, *COMMIT_KEYS))).select(
        *log, "offset", "key", "value",
        f.unix_millis("timestamp").alias("timestamp_ms"),
        group_bytes().alias("group"),
        of_kinds(_GROUP_KEYS).alias("is_group"),
    )  # fmt: skip
    so_far = Window.partitionBy(*group).orderBy("offset").rowsBetween(Window.unboundedPreceding, 0)
    numbered = wanted.withColumn("era", f.sum(f.col("is_group").cast("int")).over(so_far))
    rows = _group_rows(numbered, group).unionByName(_commit_rows(numbered, group))
    # 3.
    ordered = (
        rows.join(f.broadcast(whole), log)
        .join(_names(numbered, group), group, "left")
        .repartition(*group)
        .sortWithinPartitions(*group, "era", f.col("is_group").desc())
    )
    answered = with_keys(HISTORY_SCHEMA, keys)
    return map_in_workers(ordered, _inferred(keys, arrow_schema(answered), session_ms), answered)


def _whole_from(records: DataFrame, log: list[str]) -> DataFrame:
    """Returns, for each log partition, the first offset after the last gap of two or more missing
    offsets.
    """
    before = f.lag("offset").over(Window.partitionBy(*log).orderBy("offset"))
    begins = f.coalesce(f.col("offset") - before > 2, f.lit(True))
    starts = records.select(*log, "offset", begins.alias("begins")).where("begins")
    return starts.groupBy(*log).agg(f.max("offset").alias("whole_from"))


def _group_rows(numbered: DataFrame, group: list[str]) -> DataFrame:
    none: Column = f.lit(None).cast("bigint")
    return numbered.where("is_group").select(
        *group, "era", "is_group", "offset", "key", "value", "timestamp_ms",
        none.alias("last_ms"), none.alias("commits"),
    )  # fmt: skip


def _commit_rows(numbered: DataFrame, group: list[str]) -> DataFrame:
    """Returns a row for each partition's commits after a group record and before the next one."""
    commits = numbered.where("not is_group and era > 0 and value is not null")
    return (
        commits.groupBy(*group, "era", "is_group", "key")
        .agg(
            f.min("timestamp_ms").alias("timestamp_ms"),
            f.max("timestamp_ms").alias("last_ms"),
            f.count("*").alias("commits"),
            f.min("offset").alias("offset"),
        )
        .withColumn("value", f.lit(None).cast("binary"))
    )


def _names(numbered: DataFrame, group: list[str]) -> DataFrame:
    """Returns each group's `names`: pairs (key of a commit without its partition number, id of its
    topic).
    """
    topic = f.expr("substring(key, 1, length(key) - 4)").alias("key")
    one = f.struct(topic, f.expr("substring(value, -16)").alias("id"))
    with_id = "substring(value, 1, 2) = X'0004' and substring(value, -19, 3) = X'010010'"
    commits = numbered.where(f"not is_group and {with_id}")
    return commits.groupBy(*group).agg(f.collect_set(one).alias("names"))


def _inferred(keys: list[str], schema: pa.Schema, session_ms: Sessions) -> Any:
    """Returns a function that infers causes from sorted batches; a group's rows may span several
    batches.
    """
    columns = [*keys, "partition", "group", "is_group", "offset", "key", "value", "timestamp_ms"]
    columns += ["last_ms", "commits", "names", "whole_from"]
    of_key = slice(len(keys) + 2)

    def run(batches: Batches) -> Batches:
        found: list[Row] = []
        by_column = ([one[name].to_pylist() for name in columns] for one in batches)
        rows = (row for lists in by_column for row in zip(*lists, strict=True))
        for key, group in groupby(rows, key=itemgetter(of_key)):
            cluster = {"cluster": key[0]} if keys else {}
            for one in _rebalances((row[len(keys) :] for row in group), session_ms):
                found.append(cluster | one.to_dict())
                if len(found) >= _BATCH_ROWS:
                    yield pa.RecordBatch.from_pylist(found, schema)
                    found.clear()
        yield pa.RecordBatch.from_pylist(found, schema)

    return run


def _rebalances(
    rows: Iterator[tuple[Any, ...]], session_ms: Sessions
) -> Iterator[RecordedRebalance]:
    """Yields the rebalances of one group."""
    first = next(rows)
    names, whole_from = first[-2:]
    history = GroupReader(whole_from, dict(map(_name, names or ())), session_ms)
    for row in chain([first], rows):
        yield from (one for one, _ in _read(history, row))
    yield from (one for one, _ in history.end())


def _name(one: dict[str, bytes]) -> tuple[Any, str]:
    key = read_key(one["key"] + bytes(4))
    assert isinstance(key, OffsetCommitKey)
    return _UUID.unpack(one["id"]), key.topic


def _read(history: GroupReader, row: tuple[Any, ...]) -> Iterator[tuple[RecordedRebalance, Any]]:
    partition, _, is_group, offset, data, value, time_ms, last_ms, commits, *_ = row
    try:
        key = read_key(data)
    except WireError:
        return
    if isinstance(key, OffsetCommitKey):
        times = CommitTimes(time_ms, last_ms, commits)
        history.commit({TopicPartition(key.topic, key.partition): times})
    elif is_group and group_of(key, data) is not None:
        yield from history.add(OffsetsRecord(partition, offset, time_ms, data, value))
