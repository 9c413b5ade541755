# SPDX-License-Identifier: Apache-2.0
"""What each number of members brings, for many groups on Spark."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema

from kafka_rebalance.bulk.lines import group_id_of
from kafka_rebalance.errors import GroupError, SchemaError
from kafka_rebalance.group import contract
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.scaling import scale
from kafka_rebalance.scaling.counts import checked_counts

from . import schema
from .group_records import GroupRecords
from .kept_columns import answers_type
from .workers import map_in_workers

if TYPE_CHECKING:
    import pyarrow as pa

_COUNT = (
    "members: int, replicas: int, fullest: int, possible: int, moves: bigint, rebalances: int, "
    "stops: int, idle: int, useful: boolean, settled: boolean, depends_on: array<string>, "
    "error: string"
)
SCALE_SCHEMA = (
    "group_id string, assignor string, members int, because string, worth array<int>, "
    f"counts array<struct<{_COUNT}>>, error string"
)
"""The columns of `scale_groups`: those of `kafka_rebalance.scaling.Scaled`, and of its counts. All
but `group_id` and `error` are null if there is an `error`."""


def scale_groups(
    groups: DataFrame,
    counts: Sequence[int] | None = None,
    *,
    assignor: str | None = None,
    per_replica: int = 1,
    samples: int = 0,
) -> DataFrame:
    """Plays the step to each number of members, for every group: INPUT_SCHEMA in, SCALE_SCHEMA out.

    Parameters and answers are those of `kafka_rebalance.scale`; Python plays the steps in the
    workers. `samples` is 0 here, so that each step is played once. A bad group has an `error`. If
    the groups have a column `cluster`, it is the first column of the answers, too.

    Raises SchemaError for columns that do not fit the contract, for `members[].topics` that are
    indexes, and for GroupRecords (`current_groups` makes groups of records); GroupError for a wrong
    count.
    """
    if isinstance(groups, GroupRecords) or not hasattr(groups, "mapInArrow"):
        raise SchemaError("groups: give a DataFrame; current_groups makes one of records")
    schema.check(groups.schema)
    keys = schema.keys(groups.schema)
    wanted = None if counts is None else list(counts)
    checked_counts(wanted or (), per_replica)
    options = {"assignor": assignor, "per_replica": per_replica, "samples": samples}
    answered = answers_type(schema.with_keys(SCALE_SCHEMA, keys))
    arrow = to_arrow_schema(answered)

    def run(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa

        for batch in batches:
            rows = [
                {name: row[name] for name in keys} | _answer(row, wanted, options)
                for row in batch.to_pylist()
            ]
            yield pa.RecordBatch.from_pylist(rows, schema=arrow)

    return map_in_workers(groups.select(*keys, *_lines(groups)), run, answered)


def _lines(groups: DataFrame) -> list[Any]:
    """Returns the columns `line` and `error` of each group, whatever columns describe it."""
    error = f.col("error") if "error" in groups.columns else f.lit(None).cast("string")
    if schema.is_lines(groups.schema):
        return [f.col("line").cast("binary").alias("line"), error.alias("error")]
    members = groups.schema["members"].dataType.elementType  # type: ignore[attr-defined]
    if not isinstance(members["topics"].dataType.elementType, t.StringType):
        raise SchemaError("members[].topics: indexes; give names of topics to scale_groups")
    names = [name for name in schema.contract().names if name in groups.columns]
    return [f.to_json(f.struct(*names)).cast("binary").alias("line"), error.alias("error")]


def _answer(row: Any, counts: list[int] | None, options: dict[str, Any]) -> dict[str, Any]:
    """Returns a row of SCALE_SCHEMA."""
    fields: Any = None
    try:
        fields = contract.parse(row["line"] or b"")
        if row["error"] is not None:
            return {"group_id": group_id_of(fields), "error": row["error"]}
        scaled = scale(GroupSpec.from_dict(fields), counts, **options)
    except GroupError as error:
        return {"group_id": group_id_of(fields), "error": str(error)}
    return {
        "group_id": scaled.group_id,
        "assignor": scaled.assignor,
        "members": scaled.members,
        "because": scaled.because,
        "worth": scaled.worth,
        "counts": [{name: getattr(one, name) for name in _NAMES} for one in scaled.counts],
    }


_NAMES = [one.partition(":")[0] for one in _COUNT.split(", ")]
