# SPDX-License-Identifier: Apache-2.0
"""Assigns and plans groups in bulk, as Arrow record batches with one row for each group."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kafka_rebalance import _core
from kafka_rebalance.errors import MissingExtra
from kafka_rebalance.group.model import MAX_PARTITIONS
from kafka_rebalance.group.spec import GroupSpec

if TYPE_CHECKING:
    import pyarrow as pa

_FORMS = "give a RecordBatch, a Table, a frame of polars or pandas, or a list of GroupSpec"


def assign_batch(
    batch: object,
    assignor: str | None = None,
    *,
    max_partitions: int = MAX_PARTITIONS,
    threads: int | None = None,
) -> "pa.RecordBatch":
    """Assigns every row of a batch of groups; docs/contract.md describes the columns.

    `batch` is any object with Arrow's PyCapsule protocol, for arrays or streams (a RecordBatch,
    Table or RecordBatchReader of pyarrow, a frame of polars or pandas, a relation of DuckDB), or a
    list of GroupSpec. If `assignor` is None, each row's own assignor is used. If `threads` is None,
    all cores are used.

    Answer   columns group_id, assignor, assignment, anomalies, standby, error, error_kind. A bad
             group has an error and a null assignment; a row that comes with an `error` keeps it.
    Errors   TypeError for a column that is missing or has another type; GroupError for an unknown
             `assignor`.
    """
    threads = _threads(threads)
    answers = _core.assign_batch(_one_batch(batch), assignor, max_partitions, threads)
    return _record_batch(answers, "assign_batch")


def plan_batch(
    batch: object,
    assignor: str | None = None,
    changes: Sequence[str] | None = None,
    *,
    max_partitions: int = MAX_PARTITIONS,
    threads: int | None = None,
) -> "pa.RecordBatch":
    """Plans every row of a batch of groups; each answer row has the figures of `plan`.

    `changes` are texts for every group, for example `add-members=2`. If `changes` is None, each row
    has its own changes in a column `changes`, a list of texts (null: no changes). The other
    parameters are those of `assign_batch`.

    Answer   columns group_id, assignor, those of `Figures`, not_affected, error, error_kind. A bad
             group, or a group with a change that does not fit, has an error and null figures. If a
             group lacks the topic, member, client or rack to which one of the call's `changes`
             refers, this change is left out for the group and listed in not_affected. If no change
             is left, the figures are null.
    """
    threads = _threads(threads)
    answers = _core.plan_batch(_one_batch(batch), assignor, changes, max_partitions, threads)
    return _record_batch(answers, "plan_batch")


def compare_batch(
    batch: object,
    changes: Sequence[str] = (),
    *,
    max_partitions: int = MAX_PARTITIONS,
    threads: int | None = None,
) -> "pa.RecordBatch":
    """Compares all built-in assignors for every row of a batch of groups, as `compare` does.

    `changes` are texts for every group, as in `plan_batch`. The other parameters are those of
    `assign_batch`.

    Answer   columns group_id, assignor (the group's own), recommended, reason, candidates (the
             figures of each assignor, or its error), not_affected, error, error_kind.
    """
    threads = _threads(threads)
    answers = _core.compare_batch(_one_batch(batch), list(changes), max_partitions, threads)
    return _record_batch(answers, "compare_batch")


def _one_batch(groups: object) -> object:
    """Returns groups in any form as one batch. Errors: TypeError for another form."""
    if hasattr(groups, "__arrow_c_array__"):
        return groups
    if hasattr(groups, "__arrow_c_stream__"):
        pa = _pyarrow("a stream of Arrow")
        table = _whole_numbers(pa.table(groups)).combine_chunks()
        empty = pa.RecordBatch.from_pylist([], table.schema)
        return table.to_batches()[0] if table.num_rows else empty
    if not isinstance(groups, list | tuple):
        kind = type(groups).__name__
        raise TypeError(f"batch: a {kind} has no Arrow data; {_FORMS}")
    for i, group in enumerate(groups):
        if not isinstance(group, GroupSpec):
            raise TypeError(f"batch[{i}]: a {type(group).__name__} is not a GroupSpec; {_FORMS}")
    pa = _pyarrow("a list of groups")
    return pa.RecordBatch.from_pylist([group.to_dict() for group in groups], _schema(pa))


def _whole_numbers(table: Any) -> Any:
    """Turns floats into integers: pandas turns a column of integers with nulls into floats."""
    pa = _pyarrow("a stream of Arrow")

    def whole(kind: Any) -> Any:
        if pa.types.is_floating(kind):
            return pa.int64()
        if pa.types.is_struct(kind):
            return pa.struct([one.with_type(whole(one.type)) for one in kind])
        if pa.types.is_list(kind):
            return pa.list_(kind.value_field.with_type(whole(kind.value_type)))
        return kind

    wanted = pa.schema([one.with_type(whole(one.type)) for one in table.schema])
    if wanted == table.schema:
        return table
    try:
        return table.cast(wanted)
    except pa.ArrowInvalid as error:
        raise TypeError(f"batch: a number is not whole: {error}") from None


def _schema(pa: Any) -> Any:
    """Returns the Arrow schema for a list of groups; not all columns of the contract are in it."""
    text, number = pa.string(), pa.int32()

    def structs(**fields: Any) -> Any:
        return pa.list_(pa.struct(fields))

    numbers = pa.list_(number)
    tasks = structs(subtopology_id=text, partitions=numbers)
    names = ["member_id", "group_instance_id", "client_id", "client_host", "rack_id", "user_data"]
    member = {
        **dict.fromkeys(names, text),
        "topics": pa.list_(text),
        "owned_partitions": structs(topic=text, partitions=numbers),
        **dict.fromkeys(("generation_id", "user_data_generation_id"), number),
        "subscription_version": number,
        "process_id": text,
        **dict.fromkeys(("active_tasks", "standby_tasks"), tasks),
        "task_offsets": structs(subtopology_id=text, partition=number, offset=pa.int64()),
    }
    topic = {"name": text, "partitions": number, "racks": pa.list_(pa.list_(text))}
    topic |= {"topic_id": text, "initialized": numbers}
    columns = {"group_id": text, "generation_id": number, "assignor": text, "leader_library": text}
    columns |= {"topics": structs(**topic), "members": structs(**member)}
    columns["subtopologies"] = structs(subtopology_id=text, tasks=number, stateful=pa.bool_())
    return pa.schema({**columns, "num_standby_replicas": number})


def _pyarrow(part: str) -> Any:
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingExtra(part, "arrow") from None
    return pa


def _threads(threads: int | None) -> int:
    return os.cpu_count() or 1 if threads is None else threads


def _record_batch(answers: object, part: str) -> "pa.RecordBatch":
    batch: pa.RecordBatch = _pyarrow(part).record_batch(answers)
    return batch
