# SPDX-License-Identifier: Apache-2.0
"""DataFrame functions around the Rust core."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.pandas.functions import arrow_udf

from kafka_rebalance.assignors.registry import BUILT_IN
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.model import MAX_PARTITIONS, quoted
from kafka_rebalance.plans.changes import Change
from kafka_rebalance.plans.rebalance_plan import parse_changes

from .schema import OUTPUT_SCHEMA, PLAN_SCHEMA, check, check_changes, contract

if TYPE_CHECKING:
    import pyarrow as pa


def assign_groups(
    groups: DataFrame, *, assignor: str | None = None, max_partitions: int = MAX_PARTITIONS
) -> DataFrame:
    """Assigns every group of a DataFrame, one in each row: INPUT_SCHEMA in, OUTPUT_SCHEMA out.

    If `assignor` is None, each row's own is used. A bad group has an `error`; the job goes on.

    Raises SchemaError, before the job runs, for columns that do not fit the contract; GroupError
    for an unknown assignor. A group is one row, so a group of a million partitions has to fit into
    a task's memory.
    """
    _known(assignor)
    check(groups.schema)
    needed = groups.select(*_needed(groups.schema, assignor))
    return needed.mapInArrow(_worker(assignor, max_partitions, "assign_batch"), OUTPUT_SCHEMA)


def assign_lines(
    lines: DataFrame, *, assignor: str | None = None, max_partitions: int = MAX_PARTITIONS
) -> DataFrame:
    """Assigns every group of a DataFrame with one column of contract lines, as binary or text.

    Rust reads the lines, so that a line that is not JSON or not UTF-8 has an `error`, like other
    bad groups. Binary is better than text. Output and parameters are those of `assign_groups`.
    """
    _known(assignor)
    return lines.mapInArrow(_worker(assignor, max_partitions, "assign_line_batch"), OUTPUT_SCHEMA)


def plan_groups(
    groups: DataFrame,
    *,
    assignor: str | None = None,
    changes: Iterable[Change | str] | None = None,
    max_partitions: int = MAX_PARTITIONS,
) -> DataFrame:
    """Plans every group of a DataFrame, one in each row: INPUT_SCHEMA in, PLAN_SCHEMA out.

    `changes` are for every group, as objects or texts (`add-members=2`); if None, each row has
    its own in a column `changes array<string>`. The figures are those of `kafka_rebalance.plan`; a
    change that does not fit a group is that row's `error`. If one of `changes` refers to a topic,
    member, client or rack that a group lacks, it is left out for this group, see `not_affected`.

    Raises SchemaError for columns that do not fit the contract; GroupError for an unknown assignor,
    or at `changes[i]` for a change that cannot be read.
    """
    _known(assignor)
    check(groups.schema)
    texts = None if changes is None else [str(change) for change in parse_changes(changes)]
    needed = _selected(groups.schema, {"members[].client_host"})
    if texts is None:
        check_changes(groups.schema)
        needed.append(f.col("changes"))

    def run(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa

        from kafka_rebalance import _core

        for batch in batches:
            answers = _core.plan_batch(batch, assignor, texts, max_partitions, 1)
            yield pa.record_batch(answers)

    return groups.select(*needed).mapInArrow(run, PLAN_SCHEMA)


def assign_udf(
    assignor: str | None = None, *, max_partitions: int = MAX_PARTITIONS
) -> Callable[..., Column]:
    """Returns `assign_groups` as a column function for `withColumn`: a struct of OUTPUT_SCHEMA.

        groups.withColumn("result", assign_udf("sticky")("group_id", "topics", "members"))

    The function takes the columns `group_id`, `topics`, `members` and, if `assignor` is None,
    `assignor`, in this order. It needs 1.8 times the CPU of `assign_groups`, which is better if you
    need no other columns. Errors are those of `assign_groups`, but columns are checked at run time.
    """
    _known(assignor)
    names = ["group_id", "topics", "members"] + (["assignor"] if assignor is None else [])

    import pyarrow as pa

    # Spark reads these annotations to find out which kind of function this is.
    def run(*columns: pa.Array) -> pa.Array:
        from kafka_rebalance import _core

        batch = pa.record_batch(list(columns), names=names)
        answers = _core.assign_batch(batch, assignor, max_partitions, 1)
        return pa.record_batch(answers).to_struct_array()

    make_udf: Any = arrow_udf  # its overloads have no functions with any number of arguments
    udf = make_udf(run, _struct(OUTPUT_SCHEMA))

    def column(*columns: Any) -> Column:
        if len(columns) != len(names):
            raise TypeError(f"{len(columns)} columns in place of {', '.join(names)}")
        result: Column = udf(*columns)
        return result

    return column


def _known(assignor: str | None) -> None:
    if assignor is not None and assignor not in BUILT_IN:
        raise GroupError(
            "assignor",
            f"{quoted(assignor)} is not built in; Spark's workers know {', '.join(BUILT_IN)}",
        )


def _worker(
    assignor: str | None, max_partitions: int, name: str
) -> "Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]":
    """Returns the function of a Python worker. It uses one thread, as a Spark task has one core."""

    def run(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa

        from kafka_rebalance import _core

        for batch in batches:
            answers = getattr(_core, name)(batch, assignor, max_partitions, 1)
            yield pa.record_batch(answers)

    return run


def _needed(found: t.StructType, assignor: str | None) -> list[Column]:
    """Returns the columns and fields that the assignor reads, because others only cost time.

    Other fields are not validated either: for roundrobin, owned partitions may be wrong.
    """
    drop = {"members[].client_id", "members[].client_host"}
    if assignor is not None:
        drop.add("assignor")
    row = BUILT_IN.get(assignor or "")
    if row is not None and row.ignores_racks:
        drop |= {"topics[].racks", "members[].rack_id"}
    if row is not None and not row.remembers:
        drop |= {"members[].owned_partitions", "members[].generation_id"}
    return _selected(found, drop)


def _selected(found: t.StructType, drop: set[str]) -> list[Column]:
    wanted = contract()
    return [
        _pruned(f.col(field.name), field.dataType, field.name, wanted, drop).alias(field.name)
        for field in found.fields
        if field.name in wanted.names and field.name not in drop
    ]


def _struct(columns: str) -> str:
    return f"struct<{columns}>"


def _pruned(
    column: Column, found: t.DataType, path: str, wanted: t.StructType, drop: set[str]
) -> Column:
    """Returns a list of structs without unwanted fields; other columns are returned unchanged."""
    if not (isinstance(found, t.ArrayType) and isinstance(found.elementType, t.StructType)):
        return column
    struct = wanted[path].dataType
    assert isinstance(struct, t.ArrayType)
    assert isinstance(struct.elementType, t.StructType)
    names = [
        name
        for name in found.elementType.names
        if name in struct.elementType.names and f"{path}[].{name}" not in drop
    ]
    if set(names) == set(found.elementType.names):
        return column
    return f.transform(column, lambda one: f.struct(*[one[name].alias(name) for name in names]))
