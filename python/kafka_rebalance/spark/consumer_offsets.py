# SPDX-License-Identifier: Apache-2.0
"""Reads records of `__consumer_offsets`: the last one of each key, commits, and counts by kind.

`records` contains the columns of Spark's Kafka source: key and value binary, partition int, offset
bigint; and optionally `cluster`, which is then part of the key.
"""

import re
from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

import kafka_rebalance._core as _core
from kafka_rebalance.errors import SchemaError
from kafka_rebalance.wire.broker_records import RecordType

from .schema import with_keys
from .workers import Batches, map_in_workers

COMMITS_SCHEMA = (
    "group_id string, topic string, partition int, offset bigint, leader_epoch int, "
    "metadata string, commit_timestamp timestamp, expire_timestamp timestamp, topic_id string, "
    "error string"
)
"""The columns of `committed_offsets`, after `cluster string` if the records contain that column.

`leader_epoch` is null if the consumer sent none. Only old records of version 1 have
`expire_timestamp`. `topic_id` is null if the broker is older than Kafka 4.4. If `error` is not
null, the columns from `offset` to `topic_id` are null.
"""

KINDS_SCHEMA = "kind string, records bigint, tombstones bigint"
"""The columns of `count_records`, after `cluster string` if the records contain that column."""

CAUSES_SCHEMA = "cause string, records bigint, example string"
"""The columns of `count_causes`, after `cluster string` if the rows contain that column."""

GROUP_KEYS = ("X'0002'",)
BROKER_KEYS = tuple(f"X'00{key:02X}'" for key in RecordType)
COMMIT_KEYS = ("X'0000'", "X'0001'")
"""The first two bytes of a record's key, in SQL: GROUP_KEYS for classic groups, BROKER_KEYS for
broker-assigned groups, COMMIT_KEYS for commits.
"""

# `_TOPIC` and `_PATTERN` match the text of a query plan in which Spark's own Kafka source reads the
# topic by name or by pattern.
_SOURCE = r"(?:KafkaRelation\(|kafka010).*"
_TOPIC = re.compile(_SOURCE + "__consumer_offsets")
_PATTERN = re.compile(_SOURCE + r"subscribePattern[=\[][^,\]]*__consumer", re.IGNORECASE)
_NOT_SILENT = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"

_UNREADABLE = "unreadable key"
_KINDS = {
    **dict.fromkeys(COMMIT_KEYS, "offset commit"),
    **dict.fromkeys(GROUP_KEYS, "group"),
    **{f"X'00{key:02X}'": "consumer protocol (KIP-848)" for key in (3, 4, 5, 6, 7, 8, 16)},
    **{f"X'00{key:02X}'": "share group (KIP-932)" for key in range(9, 16)},
    **{f"X'00{key:02X}'": "streams group (KIP-1071)" for key in range(17, 24)},
}
OTHER_KINDS = (*dict.fromkeys(_KINDS.values()), _UNREADABLE)[2:]
"""The kinds of records, except those that classic groups write and unknown versions of keys."""

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


def committed_offsets(records: DataFrame) -> DataFrame:
    """Returns the offsets that groups have committed, with their times: COMMITS_SCHEMA.

    The result contains all groups that commit: classic groups, KIP-848 groups, and consumers that
    assign partitions to themselves.

    Errors: SchemaError as in `current_groups`. An unreadable record becomes a row with an `error`,
    and the job continues.
    """
    keys = check_records(records)

    def run(batches: Batches) -> Batches:
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


def check_records(records: DataFrame) -> list[str]:
    """Returns ["cluster"] if the records contain this column, else [].

    Errors: SchemaError for a column that is missing or of another type, and for a frame of Spark's
    own Kafka source that would read nothing.
    """
    require_columns(
        records,
        {
            "key": t.BinaryType(),
            "value": t.BinaryType(),
            "partition": t.IntegerType(),
            "offset": t.LongType(),
        },
        "records.",
    )
    _refuse_silent_source(records)
    return clusters_in(records)


def _refuse_silent_source(records: DataFrame) -> None:
    if not hasattr(records, "_jdf"):  # not checked: Spark Connect shows no analyzed plan
        return
    is_set = str(records.sparkSession.conf.get(_NOT_SILENT, "false")).lower() == "true"
    # This text is searched but never shown: a plan can contain the options of a source, which can
    # be secret.
    if reads_nothing(records._jdf.queryExecution().analyzed().toString(), is_set=is_set):
        raise SchemaError(
            "records: Spark's own Kafka source finds no partition of __consumer_offsets, so it "
            f"would read nothing; set {_NOT_SILENT} to true and use the option subscribe or "
            "assign, or use read_consumer_offsets"
        )


def reads_nothing(plan: str, *, is_set: bool) -> bool:
    """Returns whether the plan contains Spark's own Kafka source, which would silently read nothing
    of an internal topic.

    If `is_set`, the source has the option _NOT_SILENT: it then finds internal topics by name, but
    not by pattern.
    """
    return bool(_PATTERN.search(plan)) or (not is_set and bool(_TOPIC.search(plan)))


def clusters_in(frame: DataFrame) -> list[str]:
    return ["cluster"] * ("cluster" in frame.columns)


def last_records(records: DataFrame, kinds: Sequence[str], keys: Sequence[str]) -> DataFrame:
    """Returns the last record of each key, for records of these `kinds`; without tombstones.
    `keys`, such as cluster, are part of the key.

    Offsets of different partitions cannot be compared, so a key in two partitions is two keys.
    """
    last = (
        records.where(of_kinds(kinds))
        .groupBy(*keys, "partition", "key")
        .agg(f.max_by("value", "offset").alias("value"), f.max("offset").alias("offset"))
    )
    return last.where("value is not null")


def of_kinds(kinds: Sequence[str]) -> Column:
    """Returns a condition: the first two bytes of a record's key are one of `kinds`."""
    return f.expr(f"substring(key, 1, 2) in ({', '.join(kinds)})")


def group_bytes() -> Column:
    """Returns a column: the bytes of the group id in a key, whose bytes 3 and 4 are its length."""
    return f.expr("substring(key, 5, int(conv(hex(substring(key, 3, 2)), 16, 10)))")


def require_columns(frame: DataFrame, expected: Mapping[str, t.DataType], at: str) -> None:
    """Raises SchemaError with the name of a column that is missing or of another type."""
    found = {field.name: field.dataType for field in frame.schema.fields}
    for name, expected_type in expected.items():
        if name not in found:
            raise SchemaError(f"{at}{name}: missing; expected {expected_type.simpleString()}")
        whole = (t.IntegerType, t.LongType)
        is_whole = isinstance(found[name], whole) and isinstance(expected_type, whole)
        if not (is_whole or isinstance(found[name], type(expected_type))):
            wrong, right = found[name].simpleString(), expected_type.simpleString()
            raise SchemaError(f"{at}{name}: {wrong} in place of {right}")
