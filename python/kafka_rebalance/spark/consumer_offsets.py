# SPDX-License-Identifier: Apache-2.0
"""Computes the present groups and their commits from the records of `__consumer_offsets`.

    records = spark.read.parquet("lake/consumer_offsets")
    groups = current_groups(records, topics).where("kind = 'consumer' and state = 'Stable'")
    assign_groups(groups)

`records` contains the columns of Spark's Kafka source: key and value binary, partition int, offset
bigint; and optionally `cluster`, which is then part of the key.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

import kafka_rebalance._core as _core

from .compaction import COMMIT_KEYS, GROUP_KEYS, check_records, clusters_in, last_records
from .group_records import GroupRecords
from .schema import GROUPS_SCHEMA, with_keys
from .workers import map_in_workers

if TYPE_CHECKING:
    import pyarrow as pa

COMMITS_SCHEMA = (
    "group_id string, topic string, partition int, offset bigint, leader_epoch int, "
    "metadata string, commit_timestamp timestamp, expire_timestamp timestamp, topic_id string, "
    "error string"
)
"""The columns of `committed_offsets`, after `cluster string` if the records contain that column.

`leader_epoch` is null if the consumer sent none. Only old records of version 1 have
`expire_timestamp`. `topic_id` is null if the broker is older than Kafka 4.4. If `error` is not
null, all columns after `partition` are null.
"""

KINDS_SCHEMA = "kind string, records bigint, tombstones bigint"
"""The columns of `count_records`, after `cluster string` if the records contain that column."""

CAUSES_SCHEMA = "cause string, records bigint, example string"
"""The columns of `count_causes`, after `cluster string` if the rows contain that column."""

_UNREADABLE = "unreadable key"
_KINDS = {
    **dict.fromkeys(COMMIT_KEYS, "offset commit"),
    **dict.fromkeys(GROUP_KEYS, "group"),
    **{f"X'00{key:02X}'": "consumer protocol (KIP-848)" for key in (3, 4, 5, 6, 7, 8, 16)},
    **{f"X'00{key:02X}'": "share group (KIP-932)" for key in range(9, 16)},
    **{f"X'00{key:02X}'": "streams group (KIP-1071)" for key in range(17, 24)},
}
OTHER_KINDS = (*dict.fromkeys(_KINDS.values()), _UNREADABLE)[2:]
"""The known kinds of records, except those that classic groups write."""

_CAUSES = {
    "cut short, or a length is too large": (
        r"needs \d+ bytes|entries are not in the data|announces more than is there|too few for a"
    ),
    "longer than its fields": r"bytes too many",
    "unknown version": r"is not known|is not a version",
    "text that is not UTF-8": r"is not UTF-8",
    "a null where none may be": r"is null",
    "malformed length": r"of more than 5 bytes|an id has 16",
    "key of another record": r"^key: not that of",
    "topic that the inventory lacks": r"the inventory has no topic",
}
"""Cause of an error -> a pattern of the messages that have this cause."""


def current_groups(
    records: DataFrame, topics: DataFrame, *, assume_assigned: bool = False
) -> DataFrame:
    """Returns the groups in the records as contract rows: GROUPS_SCHEMA.

    `topics` is the inventory: name, partitions, and optionally racks (a list for each partition)
    and topic_id. Without topic ids, only classic groups are returned: records of broker-assigned
    groups contain no names of topics. If a classic group subscribes to a topic that the
    inventory lacks, its row has an `error`; with `assume_assigned`, the topic's number of
    partitions is inferred from the assignments instead.

    Errors: SchemaError for a column that is missing or of another type, before anything runs. An
    unreadable record becomes a row with an `error`, and the job continues.
    """
    source = GroupRecords(records, topics, assume_assigned)
    classic = source.answers("groups_from_records", [("", ())], GROUPS_SCHEMA)
    others = source.by_brokers
    return classic if others is None else classic.union(others)


def committed_offsets(records: DataFrame) -> DataFrame:
    """Returns the offsets that groups have committed, with their times: COMMITS_SCHEMA.

    The result contains all groups that commit: classic groups, KIP-848 groups, and consumers that
    assign partitions to themselves.

    Errors: SchemaError as in `current_groups`. An unreadable record becomes a row with an `error`,
    and the job continues.
    """
    keys = check_records(records)

    def run(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa

        for batch in batches:
            commits = pa.record_batch(_core.commits_from_records(batch))
            yield commits.add_column(0, "cluster", batch["cluster"]) if keys else commits

    latest = last_records(records, COMMIT_KEYS, keys).select(*keys, "key", "value")
    return map_in_workers(latest, run, with_keys(COMMITS_SCHEMA, keys))


def count_records(records: DataFrame) -> DataFrame:
    """Returns the number of records and of tombstones of each kind of record: KINDS_SCHEMA."""
    keys = check_records(records)
    kind, tombstone = kind_of_record().alias("kind"), f.col("value").isNull().alias("tombstone")
    return (
        records.select(*keys, kind, tombstone)
        .groupBy(*keys, "kind")
        .agg(f.count("*").alias("records"), f.count_if("tombstone").alias("tombstones"))
    )


def kind_of_record() -> Column:
    """Returns a column: the kind of the record, by the first two bytes of `key`."""
    first = f.substring("key", 1, 2)
    kind = f.when(f.coalesce(f.length("key"), f.lit(0)) < 2, _UNREADABLE)
    for version, name in _KINDS.items():
        kind = kind.when(first == f.expr(version), name)
    version_number = f.conv(f.hex(first), 16, 10)
    return kind.otherwise(f.concat(f.lit("key version "), version_number))


def count_causes(rows: DataFrame) -> DataFrame:
    """Returns the number of rows with each cause of an `error`, and an example: CAUSES_SCHEMA.

    `rows` come from `current_groups` or `committed_offsets`, which read the last record of each
    key. So a corrupt record is not counted if a later one has replaced it.
    """
    keys = clusters_in(rows)
    cause = f.when(f.lit(False), "")
    for name, words in _CAUSES.items():
        cause = cause.when(f.col("error").rlike(words), name)
    return (
        rows.where("error is not null")
        .groupBy(*keys, cause.otherwise("another cause").alias("cause"))
        .agg(f.count("*").alias("records"), f.min("error").alias("example"))
    )
