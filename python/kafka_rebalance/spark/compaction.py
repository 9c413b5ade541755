# SPDX-License-Identifier: Apache-2.0
"""Compacts records of `__consumer_offsets` as Kafka does: keeps the last record of each key."""

import re
from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from kafka_rebalance.errors import SchemaError
from kafka_rebalance.wire.broker_records import RecordType

GROUP_KEYS = ("X'0002'",)
BROKER_KEYS = tuple(f"X'00{key:02X}'" for key in RecordType)
COMMIT_KEYS = ("X'0000'", "X'0001'")
"""A key's first two bytes, in these tuples: classic groups, broker-assigned groups, and commits."""

# These match the text of a query plan in which Spark's own Kafka source reads the topic.
_SOURCE = r"(?:KafkaRelation\(|kafka010).*"
_TOPIC = re.compile(_SOURCE + "__consumer_offsets")
_PATTERN = re.compile(_SOURCE + r"subscribePattern[=\[][^,\]]*__consumer", re.IGNORECASE)
_NOT_SILENT = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"


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
    # This text is searched but never shown, because a plan can contain the options of a source.
    if reads_nothing(records._jdf.queryExecution().analyzed().toString(), is_set=is_set):
        raise SchemaError(
            "records: Spark's own Kafka source finds no partition of __consumer_offsets, so it "
            f"would read nothing; set {_NOT_SILENT} to true and use the option subscribe or "
            "assign, or use read_consumer_offsets"
        )


def reads_nothing(plan: str, *, is_set: bool) -> bool:
    """Returns whether Spark's own Kafka source in a plan would read nothing of an internal topic.

    If `is_set`, the source has the option _NOT_SILENT: it then finds internal topics by name, but
    not by pattern.
    """
    return bool(_PATTERN.search(plan)) or (not is_set and bool(_TOPIC.search(plan)))


def clusters_in(frame: DataFrame) -> list[str]:
    return ["cluster"] * ("cluster" in frame.columns)


def last_records(records: DataFrame, kinds: Sequence[str], keys: Sequence[str]) -> DataFrame:
    """Returns each key's last record (of `kinds`, by `keys` such as cluster), without tombstones.

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
    """Returns a column: the group id's bytes in a key, whose bytes 3 and 4 count them."""
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
