# SPDX-License-Identifier: Apache-2.0
"""Assigns, plans and compares groups in bulk, as Arrow data with one row for each group."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from kafka_rebalance.errors import MissingExtra
from kafka_rebalance.group.field_paths import a_type
from kafka_rebalance.group.field_types import List, OrNull, Record, Text
from kafka_rebalance.group.group_fields import GROUP
from kafka_rebalance.group.model import MAX_PARTITIONS, quoted
from kafka_rebalance.group.spec import GroupSpec, checked_limit

from .lines import threads_of
from .one_by_one import answers

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_rebalance.plans.changes.change import Change

_FORMS = "give a RecordBatch, a Table, a frame of polars or pandas, or a list of GroupSpec"


def assign_batch(
    batch: object,
    assignor: str | None = None,
    *,
    max_partitions: int = MAX_PARTITIONS,
    threads: int | None = None,
) -> "pa.RecordBatch | pa.Table | pa.RecordBatchReader":
    """Assigns every row of a batch of groups; docs/contract.md describes the columns.

    `batch` is any object with Arrow's PyCapsule protocol, for arrays or streams (a RecordBatch,
    Table or RecordBatchReader of pyarrow, a frame of polars or pandas, a relation of DuckDB), or a
    list of GroupSpec. For a reader, the answer is a reader, which computes one batch at a time; for
    another stream, a Table; for anything else, a RecordBatch. If `assignor` is None, each row's own
    assignor is used. If `threads` is None, all cores are used.

    Answer   columns group_id, assignor, assignment, anomalies, standby, error, error_kind. A bad
             group has an error and a null assignment; a row that comes with an `error` keeps it.
    Errors   TypeError for a column that is missing or has another type; GroupError for an unknown
             `assignor`, and for `max_partitions` or `threads` out of range.
    """
    most, cores = checked_limit(max_partitions), threads_of(threads)
    return _answers(batch, lambda one: answers("assign", one, [assignor, most, cores]))


def plan_batch(
    batch: object,
    assignor: str | None = None,
    changes: "Sequence[Change | str] | None" = None,
    *,
    max_partitions: int = MAX_PARTITIONS,
    threads: int | None = None,
) -> "pa.RecordBatch | pa.Table | pa.RecordBatchReader":
    """Plans every row of a batch of groups; each answer row contains the figures of `plan`.

    `changes` are played in every group, as by `plan`. If `changes` is None, each row has its own
    changes in a column `changes`, a list of strings (null: no changes). The other parameters, and
    the form of the answers, are those of `assign_batch`.

    Answer   columns group_id, assignor, those of `Figures`, not_affected, error, error_kind. A bad
             group, or a group with a change that does not fit, has an error and null figures. If a
             group lacks the topic, member, client or rack to which one of the call's `changes`
             refers, this change is left out for the group and listed in not_affected. If no change
             is left, the figures are null.
    """
    most, cores = checked_limit(max_partitions), threads_of(threads)
    texts = None if changes is None else _texts(changes)
    return _answers(batch, lambda one: answers("plan", one, [assignor, texts, most, cores]))


def compare_batch(
    batch: object,
    changes: "Sequence[Change | str]" = (),
    *,
    max_partitions: int = MAX_PARTITIONS,
    threads: int | None = None,
) -> "pa.RecordBatch | pa.Table | pa.RecordBatchReader":
    """Compares all built-in assignors for every row of a batch of groups, as `compare` does.

    As in `compare`, librdkafka's assignors are compared too if the group's `leader_library` or its
    own assignor is librdkafka's, and an assignor that a member's library lacks is not recommended.
    A group whose own assignor runs only in Python gets an error; use `compare` for it.

    `changes` are played in every group, as in `plan_batch`. The other parameters, and the form of
    the answers, are those of `assign_batch`.

    Answer   columns group_id, assignor (the group's own), recommended, reason, candidates (the
             figures of each assignor, or its error), not_affected, error, error_kind.
    """
    most, cores, texts = checked_limit(max_partitions), threads_of(threads), _texts(changes)
    return _answers(batch, lambda one: answers("compare", one, [texts, most, cores]))


def _texts(changes: "Sequence[Change | str]") -> list[str]:
    """Returns the changes as strings. Errors: TypeError if they are not a list of changes."""
    from kafka_rebalance.plans.changes.change import Change
    from kafka_rebalance.plans.changes.text import change_from_text

    if isinstance(changes, str):
        raise TypeError(f"changes: {quoted(changes)} is one text; give a list, [{quoted(changes)}]")
    if not isinstance(changes, Sequence):
        raise TypeError(f"changes: {a_type(changes)} is not a list of changes")
    for i, change in enumerate(changes):
        if not isinstance(change, Change | str):
            raise TypeError(f"changes[{i}]: {change!r} is not a change; give one, as AddMembers(2)")
        if isinstance(change, Change) and change_from_text(str(change)) != change:
            raise TypeError(f"changes[{i}]: {change!r} cannot be written as a string, for a batch")
    return [str(change) for change in changes]


def _answers(groups: object, work: Callable[[object], Any]) -> Any:
    """Returns the answers for groups in any accepted form. Errors: TypeError for another form."""
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingExtra("Arrow data", "arrow") from None
    _check(pa, groups)
    if hasattr(groups, "__arrow_c_array__"):
        return pa.record_batch(work(groups))
    if not hasattr(groups, "__arrow_c_stream__"):
        return pa.record_batch(work(_batch_of_groups(pa, groups)))
    # Arrow's C interface does not pass the sizes of buffers, so pyarrow reads pyarrow's own data.
    if isinstance(groups, pa.Table):
        reader = groups.to_reader()
    elif isinstance(groups, pa.RecordBatchReader):
        reader = groups
    else:
        reader = pa.RecordBatchReader.from_stream(groups)
    wanted = _wanted(pa, reader.schema)
    # An empty batch is answered first, so that a wrong column raises its error before the
    # stream is read.
    schema = pa.record_batch(work(pa.RecordBatch.from_pylist([], wanted))).schema

    def each() -> Iterator[Any]:
        for batch in reader:
            _check(pa, batch)
            try:
                whole = _cast(pa, batch, wanted)
            except pa.ArrowInvalid as error:
                raise TypeError(f"batch: a number is not whole: {error}") from None
            yield pa.record_batch(work(whole))

    if isinstance(groups, pa.RecordBatchReader):
        return pa.RecordBatchReader.from_batches(schema, each())
    return pa.Table.from_batches(each(), schema)


def _check(pa: Any, data: object) -> None:
    """Raises a ValueError if an offset is beyond its buffer: only pyarrow knows a buffer's end."""
    if isinstance(data, pa.RecordBatch | pa.Table):
        try:
            data.validate()
        except pa.ArrowInvalid as error:
            problem = f"batch: damaged Arrow data: {error}; read or write the data again"
            raise ValueError(problem) from None


def _batch_of_groups(pa: Any, groups: object) -> Any:
    if not isinstance(groups, list | tuple):
        raise TypeError(f"batch: {a_type(groups)} has no Arrow data; {_FORMS}")
    for i, group in enumerate(groups):
        if not isinstance(group, GroupSpec):
            raise TypeError(f"batch[{i}]: {a_type(group)} is not a GroupSpec; {_FORMS}")
    return pa.RecordBatch.from_pylist([group.to_dict() for group in groups], contract_schema())


def _cast(pa: Any, batch: Any, wanted: Any) -> Any:
    """Returns the batch with its columns cast to the types of the schema `wanted`. Errors:
    pyarrow.ArrowInvalid; TypeError for floats in place of another type.

    Columns of the right type are not cast: Arrow would make an invalid array of a list of structs
    in which a field has the null type.
    """
    columns = []
    for column, field in zip(batch.columns, wanted, strict=True):
        if column.type == field.type:
            columns.append(column)
        elif column.null_count == len(column):
            columns.append(pa.nulls(len(column), field.type))
        elif pa.types.is_floating(column.type) and not pa.types.is_integer(field.type):
            raise TypeError(f"{field.name}: {column.type} is not {field.type}")
        else:
            columns.append(column.cast(field.type))
    return pa.RecordBatch.from_arrays(columns, schema=wanted)


def _wanted(pa: Any, schema: Any) -> Any:
    """Returns the schema; columns of the contract get the types that the core reads, others keep
    theirs.
    """
    known = _types(contract_schema()) | {"error": pa.string(), "changes": pa.list_(pa.string())}
    fields = []
    for one in schema:
        new = one.type
        if one.name in known:
            is_float = pa.types.is_floating(one.type) and not pa.types.is_integer(known[one.name])
            new = known[one.name] if is_float else _whole(pa, one.type, known[one.name])
        fields.append(one.with_type(new))
    return pa.schema(fields)


def _whole(pa: Any, found: Any, known: Any) -> Any:
    """Returns the type `found`; if `known` has a type, it replaces a null type, and int64 replaces
    floats where `known` has integers.

    A field that is null in all rows has the null type. If such a field is not in the contract, it
    is left out, because `_cast` cannot handle it in a list. All other types stay the same.
    """
    if known is not None and pa.types.is_null(found):
        return known
    if known is not None and pa.types.is_floating(found) and pa.types.is_integer(known):
        return pa.int64()
    if pa.types.is_struct(found):
        fields = {} if known is None or not pa.types.is_struct(known) else _types(known)
        return pa.struct(
            one.with_type(_whole(pa, one.type, fields.get(one.name)))
            for one in found
            if one.name in fields or not pa.types.is_null(one.type)
        )
    for is_list, new in ((pa.types.is_list, pa.list_), (pa.types.is_large_list, pa.large_list)):
        if is_list(found):
            value = known.value_type if known is not None and pa.types.is_list(known) else None
            return new(found.value_field.with_type(_whole(pa, found.value_type, value)))
    return found


def _types(fields: Any) -> dict[str, Any]:
    return {field.name: field.type for field in fields}


def contract_schema(of: str | None = None) -> "pa.Schema":
    """Returns the contract's columns: those in Spark's schema `of` (see `Field.spark`), or all."""
    import pyarrow as pa

    plain = {"string": pa.string(), "int": pa.int32(), "bigint": pa.int64(), "boolean": pa.bool_()}
    plain["double"] = pa.float64()

    def column(kind: Text) -> Any:
        if isinstance(kind, OrNull):
            return column(kind.item)
        if isinstance(kind, List):
            return pa.list_(column(kind.item))
        return pa.struct(columns(kind)) if isinstance(kind, Record) else plain[kind.spark]

    def columns(record: Record) -> list[tuple[str, Any]]:
        fields = record.in_lines()
        found = (one for one in fields if one.spark and of in (None, *one.spark.split()))
        return [(one.name, column(one.kind)) for one in found]

    return pa.schema(columns(GROUP))
