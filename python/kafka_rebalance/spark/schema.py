# SPDX-License-Identifier: Apache-2.0
"""The fields of a contract line as Spark columns, and a check that a DataFrame contains them."""

import re
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from kafka_rebalance.bulk.batch import contract_schema
from kafka_rebalance.bulk.splits import leaves
from kafka_rebalance.errors import SchemaError, did_you_mean
from kafka_rebalance.group.group_fields import GROUP, rows


def contract(of: str = "all") -> t.StructType:
    """Returns the contract's columns: `all`, those for `input`, or those `recorded` in the log."""
    return from_arrow_schema(contract_schema(of))


def as_text(columns: t.StructType) -> str:
    """Returns columns as Spark's functions take them: `group_id string, assignor string, …`."""
    names = (f"{one.name} {one.dataType.simpleString()}" for one in columns)
    return ",".join(names).replace(",", ", ").replace(":", ": ")


INPUT_SCHEMA = as_text(contract("input"))
"""The columns of input. Integers may be bigint; optional fields may be absent; other columns and
fields are ignored.

`members[].topics` may be array<int> and `owned_partitions[].topic` int: indexes into the group's
`topics`. Indexes make rows much smaller, because names are most of a row.

There may be two more string columns. If there is a column `cluster`, it is the first column of the
answers, too. If a row has an `error`, as rows of `current_groups` can have, the answer has this
error. Instead of all these columns, a frame may contain a column `line`, binary or string, with a
contract line in each row.

Only the brokers' assignors read three more fields: `topics[].topic_id` (string),
`topics[].initialized` (array<int>) and `members[].owned_partitions[].topic_id` (string). For
streams groups there are more fields, of the types in docs/contract.md. Comparisons also read
`leader_library` and `members[].client_library` (string).
"""

GROUPS_SCHEMA = f"kind string, state string, {as_text(contract('recorded'))}, error string"
"""The columns of `current_groups`, after `cluster string` if the records contain that column.

`kind` is "consumer" (of either protocol), "share", "streams", "connect" or another protocol type;
only the first three have members. `state` is Empty or Stable in a classic group, because Kafka
writes records in these states; other groups also have states in which members wait. If `error` is
not null, all columns but `group_id` and `error` are null.
"""

_ASSIGNED = (
    "array<struct<member_id: string, "
    "partitions: array<struct<topic: string, partitions: array<int>>>>>"
)

OUTPUT_SCHEMA = (
    f"group_id string, assignor string, assignment {_ASSIGNED}, "
    "anomalies array<struct<kind: string, topic: string, partition: int, member_id: string>>, "
    f"standby {_ASSIGNED}, error string, error_kind string"
)
"""The columns of output. `assignment` is null if there is an `error`; `anomalies` is null if there
are none. `standby` lists the standby tasks of a streams group; for other groups it is null.
Partitions are in Kafka's order. Each run of one topic is an entry, so a topic may have several
entries.

`error_kind` is for counting: "never-ends" or "throws" if Kafka's own class does so on the group,
"change" for a change that does not fit the group, "no-members" if a change leaves none, "group" for
an error in the group's own fields, "call" for wrong arguments of a function of SQL.
"""

OWNERS_SCHEMA = (
    "group_id string, assignor string, topics array<struct<name: string, partitions: int>>, "
    "members array<string>, owners array<int>, error string, error_kind string"
)
"""The columns of `assign_owners`. `owners` holds an entry for each partition of the first topic,
then of the second, and so on: the owner's index in `members`, or null for a partition without an
owner.
"""

_BALANCE = "struct<min: int, max: int, mean: double, stddev: double>"

_FIGURES = (
    "rounds bigint, moves bigint, least_moves bigint, "
    "unavailable bigint, unavailable_rounds bigint, waiting bigint, leaderless bigint, "
    f"balance_before {_BALANCE}, balance_after {_BALANCE}, balance_possible {_BALANCE}, "
    "rack_share_before double, rack_share_after double, "
    "settled boolean, depends_on_ids boolean, owns_nothing boolean"
)

PLAN_SCHEMA = (
    f"group_id string, assignor string, {_FIGURES}, "
    "not_affected string, error string, error_kind string"
)
"""The columns of a plan: the fields of `kafka_rebalance.Figures`, null if there is an `error`.

`not_affected` lists the changes that are left out, because they refer to a topic, member, client or
rack that this group does not have; if no change is left, the figures are null.
"""

EACH_CHANGE_SCHEMA = f"change string, {PLAN_SCHEMA}"
"""The columns of `plan_each_change`: the change, and its plan. "" is the next rebalance."""

COMPARE_SCHEMA = (
    "group_id string, assignor string, recommended string, reason string, "
    f"candidates array<struct<assignor string, {_FIGURES}, error string, error_kind string>>, "
    "not_affected string, error string, error_kind string"
)
"""The columns of a comparison: the group's own assignor, the recommended one, the reason, and the
figures of every assignor. `recommended` is null if the group settles with none of the assignors
that its clients have. A candidate that fails has an `error`."""

ASSIGNMENT_SCHEMA = "group_id string, member_id string, position int, topic string, partition int"
"""The columns of `explode_assignment`; `position` is the index in the member's list, from 0."""

_PERCENTILES = "struct<p50: bigint, p90: bigint, p99: bigint, max: bigint>"

SUMMARY_SCHEMA = (
    "groups bigint, errors bigint, never_ends bigint, throws bigint, not_affected bigint, "
    "without_members bigint, unsettled bigint, uneven bigint, "
    "moves bigint, least_moves bigint, unavailable bigint, waiting bigint, leaderless bigint, "
    "with_unavailable bigint, with_waiting bigint, with_leaderless bigint, "
    f"spread_before {_PERCENTILES}, spread_after {_PERCENTILES}, "
    f"spread_possible {_PERCENTILES}, group_moves {_PERCENTILES}, "
    "worst array<struct<group_id: string, spread_before: bigint, spread_after: bigint, "
    "spread_possible: bigint, unavailable_rounds: bigint, waiting: bigint, leaderless: bigint, "
    "moves: bigint>>"
)
"""The columns of `fleet_summary`, after `cluster` and `change` if the plans contain them.

`never_ends` and `throws` are among the `errors`. `without_members` counts groups in which a change
leaves no member: nobody reads their partitions. A spread is the difference between the fullest and
the emptiest member; `uneven` counts groups that end with a larger spread than the best possible.
`moves` to `leaderless` are sums over all groups; `with_*` counts groups with such a figure above 0.
The percentiles are over groups. `worst` lists the groups whose spread is the furthest above the
best possible. Ties are broken by the largest sum of partition-rounds without a reader, of waiting
partitions and of leaderless ones, then by the most moves.
"""

HISTOGRAM_SCHEMA = "figure string, low bigint, high bigint, groups bigint"
"""The columns of `fleet_histogram`, after `change` if the plans contain it: the number of groups
whose figure is from `low` to `high`, both included."""

_PLACES = {"members[].topics[]", "members[].owned_partitions[].topic"}


def leaf_paths(drop: set[str]) -> Iterator[str]:
    """Yields the paths of leaf columns for `bulk.splits.row_batches`, except those in `drop`."""
    dropped = [f"{path.replace('[]', '')}." for path in drop]
    for _, path in leaves(contract_schema("all")):
        if not f"{path}.".startswith(tuple(dropped)):
            yield path


def check(found: t.StructType) -> None:
    """Raises SchemaError for the first column or field that is missing or has another type.

    Spark reads a JSON field that is null in every line as a string, so the error about a string
    explains how to read the lines with the right types.
    """
    if not is_lines(found):
        _check_fields(contract(), found, "")
    _check_present(found, ["cluster", "error"])


def is_lines(found: t.StructType) -> bool:
    """Returns whether a frame has contract lines in a column `line`, not the contract's columns."""
    lines = "line" in found.names and "topics" not in found.names
    return lines and isinstance(found["line"].dataType, t.BinaryType | t.StringType)


def keys(found: t.StructType, *names: str) -> list[str]:
    """Returns which of `cluster` and `names` the frame contains. Errors: SchemaError if not
    strings.
    """
    present = [name for name in ("cluster", *names) if name in found.names]
    _check_present(found, present)
    return present


def with_keys(schema: str, present: list[str]) -> str:
    """Returns the schema with a string column at the front for each key in `present`."""
    return ", ".join([*(f"{name} string" for name in present), schema])


def check_answers(found: t.StructType) -> None:
    """Raises SchemaError if a frame lacks `group_id` or `assignment` of OUTPUT_SCHEMA."""
    _check_fields(answers_type(f"group_id string, assignment {_ASSIGNED}"), found, "")


def check_plans(found: t.StructType) -> None:
    """Raises SchemaError if a frame lacks a column of PLAN_SCHEMA that summaries read."""
    balance = "struct<min: int, max: int>"
    expected = answers_type(
        "group_id string, moves bigint, least_moves bigint, unavailable bigint, "
        "unavailable_rounds bigint, waiting bigint, leaderless bigint, "
        f"balance_before {balance}, balance_after {balance}, balance_possible {balance}, "
        "settled boolean, error string, error_kind string"
    )
    _check_fields(expected, found, "")


_HOW_TO_READ = (
    "Spark takes a field that is null in every line of JSON for a string: read the lines with "
    "spark.read.schema(kafka_rebalance.spark.INPUT_SCHEMA).json(path)"
)


def _check_present(found: t.StructType, names: list[str]) -> None:
    present = [t.StructField(name, t.StringType()) for name in names if name in found.names]
    _check_fields(t.StructType(present), found, "")


def check_changes(found: t.StructType) -> None:
    """Raises SchemaError if the column `changes` is missing or has another type."""
    _check_fields(answers_type("changes array<string>"), found, "")


def _check_fields(expected: t.StructType, found: t.StructType, at: str) -> None:
    types = {field.name: field.dataType for field in found.fields}
    for field in expected.fields:
        path = f"{at}{field.name}"
        if field.name in types:
            _check_type(field.dataType, types[field.name], path)
        elif path not in _optional():
            near = did_you_mean(field.name, types.keys() - {*expected.names})
            raise SchemaError(f"{path}: missing; expected {field.dataType.simpleString()}{near}")


def _optional() -> set[str]:
    found = {path.removesuffix("[]") for path, is_required in rows(GROUP) if not is_required}
    return found | {"members[].owned_partitions[].topic_id"}


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
        problem = f"{path}: {found.simpleString()} in place of {expected.simpleString()}"
        is_contract = re.split(r"\W", path, maxsplit=1)[0] in contract().names
        is_input = is_contract and isinstance(found, t.StringType)
        raise SchemaError(f"{problem}; {_HOW_TO_READ}" if is_input else problem)


def _fits(expected: t.DataType, found: t.DataType) -> bool:
    if isinstance(expected, t.IntegerType | t.LongType):
        return isinstance(found, t.IntegerType | t.LongType)
    if isinstance(expected, t.DoubleType):
        return isinstance(found, t.DoubleType | t.FloatType | t.IntegerType | t.LongType)
    return isinstance(found, type(expected))


def kept_fields(keep: Sequence[str], found: t.StructType, answers: t.StructType) -> t.StructType:
    """Returns the fields of the columns to keep, in the order of `keep`.

    Errors: SchemaError at `keep[i]` for a column that the groups lack, that is named twice, or that
    the answers already contain.
    """
    if isinstance(keep, str):
        raise SchemaError(f"keep: a text; give a list of names of columns: [{keep!r}]")
    fields = []
    for i, name in enumerate(keep):
        if name in answers.names:
            raise SchemaError(f"keep[{i}]: {name} is a column of the answers; rename it first")
        if name not in found.names:
            near = did_you_mean(name, {*found.names} - {*answers.names})
            raise SchemaError(f"keep[{i}]: the groups have no column {name}{near}")
        if name in keep[:i]:
            raise SchemaError(f"keep[{i}]: {name} is named twice")
        fields.append(found[name])
    return t.StructType(fields)


def answers_type(schema: str) -> t.StructType:
    """Returns the type of a schema that is written as a string."""
    parsed = t.DataType.fromDDL(schema)
    assert isinstance(parsed, t.StructType)
    return parsed


def arrow_schema(schema: str) -> pa.Schema:
    """Returns Arrow's form of a schema in Spark's string form, which executors cannot parse."""
    return to_arrow_schema(answers_type(schema))
