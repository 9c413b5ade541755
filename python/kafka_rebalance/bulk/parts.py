# SPDX-License-Identifier: Apache-2.0
"""Assigns, plans or compares the groups in splits; writes the answers to a part, a Parquet file.

A task that runs twice leaves two parts; the caller takes the part that Spark reported.
"""

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from kafka_rebalance.errors import NO_MEMBERS, SchemaError
from kafka_rebalance.frozen import Frozen

from . import one_by_one
from .calls import Call
from .paths import open_file_system
from .splits import Split, line_batches, row_batches

if TYPE_CHECKING:
    import pyarrow as pa

_ROW_GROUP_BYTES = 32 * 1024 * 1024
"""The approximate memory, in bytes, of the answers in a row group of the output."""


class Job(Frozen):
    """The work for each group (`verb` is assign, plan or compare), and the place of the answers."""

    verb: str
    calls: Sequence[Call]
    is_lines: bool
    wanted: frozenset[str]
    """For input in Parquet, the paths of the columns to read, as in `row_batches`."""
    kept: "pa.Schema"
    """For input in Parquet, the columns that are appended to the answers, with their types there.
    """
    has_cluster: bool
    directory: str
    has_label: bool = False
    """Whether the answers have a column `change`: the label of the call."""


class Done(Frozen):
    """The counts of a job, and its seconds of wall time. `errors` includes `never_ends`."""

    groups: int
    errors: int
    never_ends: int
    seconds: float
    counts: Mapping[str, int] = field(default_factory=dict)


class WrittenPart(Frozen):
    """The name of a part's file (None: a part without rows, which is not written), and the counts
    of its rows.
    """

    name: str | None
    groups: int
    errors: int
    never_ends: int


def summed(parts: Iterable[WrittenPart], seconds: float) -> Done:
    """Returns the counts of a job: the sums over its parts."""
    counts = [(part.groups, part.errors, part.never_ends) for part in parts]
    groups, errors, never_ends = map(sum, zip(*counts, strict=True))
    return Done(groups, errors, never_ends, seconds)


def write_part(job: Job, number: int, splits: Sequence[Split]) -> WrittenPart:
    """Writes the answers for all groups in the splits into one part file.

    A part without rows is not written, except part 0: a reader needs a file with the columns.
    """
    from pyarrow import parquet

    name = f"part-{number:05}-{uuid.uuid4()}.parquet"
    system, path = open_file_system(f"{job.directory}/{name}")
    writer: Any = None
    groups = errors = never_ends = 0
    try:
        for table in _row_groups(job, splits):
            if len(table) == 0 and (number > 0 or writer is not None):
                continue
            if writer is None:
                # Times are in microseconds: Spark cannot read nanoseconds.
                options = {"coerce_timestamps": "us", "allow_truncated_timestamps": True}
                writer = parquet.ParquetWriter(path, table.schema, filesystem=system, **options)
            writer.write_table(table)
            groups += len(table)
            kinds = table["error_kind"].drop_null().to_pylist()
            errors += len(table) - table["error"].null_count - kinds.count(NO_MEMBERS)
            never_ends += kinds.count("never-ends")
    finally:
        if writer is not None:
            writer.close()
    return WrittenPart(None if writer is None else name, groups, errors, never_ends)


def _row_groups(job: Job, splits: Sequence[Split]) -> "Iterator[pa.Table]":
    import pyarrow as pa

    answers: list[pa.RecordBatch] = []
    size = 0
    for split in splits:
        for batch in _answers(job, split):
            answers.append(batch)
            size += batch.nbytes
            if size >= _ROW_GROUP_BYTES:
                yield pa.Table.from_batches(answers)
                answers, size = [], 0
    if answers:
        yield pa.Table.from_batches(answers)


def _answers(job: Job, split: Split) -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa

    form = "lines" if job.is_lines else "columns"
    batches = line_batches(split) if job.is_lines else row_batches(split, job.wanted)
    try:
        for batch in batches:
            keys = {"cluster": _cluster(batch, split)} if job.has_cluster else {}
            for label, arguments in job.calls:
                answers = one_by_one.answers(job.verb, batch, arguments, form)
                if job.has_label:
                    keys["change"] = pa.array([label] * len(batch), pa.string())
                columns = dict(zip(answers.schema.names, answers.columns, strict=True))
                yield pa.record_batch({**keys, **columns, **_kept(batch, job.kept, split)})
    except TypeError as error:
        raise SchemaError(f"{split.path}: {error}") from error


def _kept(batch: "pa.RecordBatch", kept: "pa.Schema", split: Split) -> "dict[str, pa.Array]":
    """Returns the columns of `kept`, cast to its types; nulls for a column that the batch lacks.
    Errors: SchemaError.
    """
    import pyarrow as pa

    columns = {}
    for one in kept:
        if one.name not in batch.schema.names:
            columns[one.name] = pa.nulls(len(batch), one.type)
            continue
        found = batch[one.name]
        # Nanoseconds are cut off, as by Spark.
        is_time = pa.types.is_timestamp(found.type) and pa.types.is_timestamp(one.type)
        try:
            columns[one.name] = found.cast(one.type, safe=not is_time)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            # A value does not fit, or Arrow has no cast between the two types.
            problem = f"{found.type} in place of {one.type}: {error}"
            raise SchemaError(f"{split.path}: {one.name}: {problem}") from error
    return columns


def _cluster(batch: "pa.RecordBatch", split: Split) -> "pa.Array":
    import pyarrow as pa

    if "cluster" in batch.schema.names:
        return batch["cluster"].cast(pa.string())
    return pa.array([split.cluster] * len(batch), pa.string())
