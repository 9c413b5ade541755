# SPDX-License-Identifier: Apache-2.0
"""The contract as Spark columns, and a check that a DataFrame fits it."""

from pyspark.sql import types as t

from kafka_rebalance.errors import SchemaError

INPUT_SCHEMA = (
    "group_id string, assignor string, "
    "topics array<struct<name: string, partitions: int, racks: array<array<string>>>>, "
    "members array<struct<member_id: string, group_instance_id: string, client_id: string, "
    "topics: array<string>, "
    "owned_partitions: array<struct<topic: string, partitions: array<int>>>, "
    "generation_id: int, rack_id: string, "
    "subscription_version: int, user_data: string, user_data_generation_id: int>>"
)
"""The columns of input. Integers may be bigint, optional fields may be absent, others are ignored.

`members[].topics` may be array<int> and `owned_partitions[].topic` int: indexes into the group's
`topics`. Indexes make rows much smaller, because names are most of a row.
"""

OUTPUT_SCHEMA = (
    "group_id string, assignor string, "
    "assignment array<struct<member_id: string, "
    "partitions: array<struct<topic: string, partitions: array<int>>>>>, "
    "anomalies array<struct<kind: string, topic: string, partition: int, member_id: string>>, "
    "error string"
)
"""The columns of output. `assignment` is null if there is an `error`; `anomalies` is null if there
are none. Partitions are in Kafka's order. Each run of one topic is an entry, so a topic may have
several entries."""

_BALANCE = "struct<min: int, max: int, mean: double, stddev: double>"

PLAN_SCHEMA = (
    "group_id string, assignor string, rounds bigint, moves bigint, least_moves bigint, "
    "unavailable bigint, unavailable_rounds bigint, waiting bigint, leaderless bigint, "
    f"balance_before {_BALANCE}, balance_after {_BALANCE}, balance_possible {_BALANCE}, "
    "rack_share_before double, rack_share_after double, "
    "settled boolean, depends_on_ids boolean, owns_nothing boolean, "
    "not_affected string, error string"
)
"""The columns of a plan: those of `kafka_rebalance.Figures`, null if there is an `error`.

`not_affected` lists the changes that are left out, because they refer to a topic, member, client or
rack that this group does not have; if no change is left, the figures are null.
"""

_OPTIONAL = {
    "assignor",
    "topics[].racks",
    "members[].group_instance_id",
    "members[].client_id",
    "members[].owned_partitions",
    "members[].generation_id",
    "members[].rack_id",
    "members[].subscription_version",
    "members[].user_data",
    "members[].user_data_generation_id",
}


_PLACES = {"members[].topics[]", "members[].owned_partitions[].topic"}


def contract() -> t.StructType:
    """Returns INPUT_SCHEMA as a type, without a session."""
    racks = t.ArrayType(t.ArrayType(t.StringType()))
    topic = t.StructType(
        [
            t.StructField("name", t.StringType()),
            t.StructField("partitions", t.IntegerType()),
            t.StructField("racks", racks),
        ]
    )
    owned = t.StructType(
        [
            t.StructField("topic", t.StringType()),
            t.StructField("partitions", t.ArrayType(t.IntegerType())),
        ]
    )
    member = t.StructType(
        [
            t.StructField("member_id", t.StringType()),
            t.StructField("group_instance_id", t.StringType()),
            t.StructField("client_id", t.StringType()),
            t.StructField("topics", t.ArrayType(t.StringType())),
            t.StructField("owned_partitions", t.ArrayType(owned)),
            t.StructField("generation_id", t.IntegerType()),
            t.StructField("rack_id", t.StringType()),
            t.StructField("subscription_version", t.IntegerType()),
            t.StructField("user_data", t.StringType()),
            t.StructField("user_data_generation_id", t.IntegerType()),
        ]
    )
    return t.StructType(
        [
            t.StructField("group_id", t.StringType()),
            t.StructField("assignor", t.StringType()),
            t.StructField("topics", t.ArrayType(topic)),
            t.StructField("members", t.ArrayType(member)),
        ]
    )


def check(found: t.StructType) -> None:
    """Raises SchemaError for the first column or field that is missing or has another type."""
    _check_fields(contract(), found, "")


def check_changes(found: t.StructType) -> None:
    """Raises SchemaError if the column `changes` is missing or has another type."""
    expected = t.StructType([t.StructField("changes", t.ArrayType(t.StringType()))])
    _check_fields(expected, found, "")


def _check_fields(expected: t.StructType, found: t.StructType, at: str) -> None:
    types = {field.name: field.dataType for field in found.fields}
    for field in expected.fields:
        path = f"{at}{field.name}"
        if field.name in types:
            _check_type(field.dataType, types[field.name], path)
        elif path not in _OPTIONAL:
            raise SchemaError(f"{path}: missing; expected {field.dataType.simpleString()}")


def _check_type(expected: t.DataType, found: t.DataType, path: str) -> None:
    if isinstance(found, t.NullType):
        return
    if isinstance(expected, t.StructType) and isinstance(found, t.StructType):
        _check_fields(expected, found, f"{path}.")
    elif isinstance(expected, t.ArrayType) and isinstance(found, t.ArrayType):
        _check_type(expected.elementType, found.elementType, f"{path}[]")
    elif path in _PLACES and isinstance(found, t.IntegerType | t.LongType):
        return
    elif not _fits(expected, found):
        raise SchemaError(f"{path}: {found.simpleString()} in place of {expected.simpleString()}")


def _fits(expected: t.DataType, found: t.DataType) -> bool:
    if isinstance(expected, t.IntegerType):
        return isinstance(found, t.IntegerType | t.LongType)
    return isinstance(found, type(expected))
