# SPDX-License-Identifier: Apache-2.0
"""Reads records of `__consumer_offsets` from files: JSON lines, or Parquet as Spark writes it.

A JSON line contains `partition`, `offset`, `timestamp` (ms), and `key` and `value` in base64;
`value` is null for a tombstone. A file whose name ends in `.gz` is decompressed; a directory, or a
file whose name ends in `.parquet`, is read as Parquet.
"""

import base64
import gzip
import json
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_rebalance.errors import GroupError, MissingExtra
from kafka_rebalance.group.line_files import MAX_LINE_BYTES, TOO_LONG, Source, read_lines
from kafka_rebalance.wire.group_records import OffsetsRecord as OffsetsRecord

if TYPE_CHECKING:
    import pyarrow

_NUMBERS = ("partition", "offset", "timestamp")
_COLUMNS = (*_NUMBERS, "key", "value")


def read_records(*paths: str) -> Iterator[OffsetsRecord]:
    """Yields the records of files, in the files' order; the path `-` is standard input.

    Errors: GroupError with the file, and the line or the column.
    """
    for path in paths:
        if path == "-":
            yield from _lines(path, sys.stdin.buffer)
        elif is_parquet(path):
            yield from _parquet(path)
        else:
            with gzip.open(path) if path.endswith(".gz") else Path(path).open("rb") as source:
                yield from _lines(path, source)


def _lines(path: str, source: Source) -> Iterator[OffsetsRecord]:
    number = 0
    try:
        for line in read_lines(source, MAX_LINE_BYTES):
            number += 1
            if line is None:
                raise ValueError(TOO_LONG)
            if line.strip():
                yield _record(line)
    except RecursionError:
        raise GroupError(f"{path}:{number}", "not JSON: nested too deeply") from None
    except (ValueError, KeyError, TypeError) as error:
        # `_record` raises these: not JSON (ValueError), an absent field, a value of another type.
        named = f"{error.args[0]}: missing" if isinstance(error, KeyError) else error
        fields = "partition, offset, timestamp, key and value"
        problem = f"{named}; a line is a JSON object with {fields}, the last two in base64"
        raise GroupError(f"{path}:{number}", problem) from None
    except (OSError, EOFError, zlib.error) as error:  # a gzip file that is truncated or damaged
        raise GroupError(path, str(error)) from None


def _record(line: bytes) -> OffsetsRecord:
    fields = json.loads(line)
    if not isinstance(fields, dict):
        raise TypeError("not an object")
    for name in _NUMBERS:
        if type(fields[name]) is not int:
            raise TypeError(f"{name}: not a whole number")
    key, value = (_bytes(fields[name], name) for name in ("key", "value"))
    partition, offset, timestamp_ms = (fields[name] for name in _NUMBERS)
    return OffsetsRecord(partition, offset, timestamp_ms, key or b"", value)


def _bytes(text: str | None, name: str) -> bytes | None:
    try:
        return None if text is None else base64.b64decode(text, validate=True)
    except (TypeError, ValueError):  # not a string, or not base64 (binascii.Error is a ValueError)
        raise TypeError(f"{name}: not base64") from None


def _parquet(path: str) -> Iterator[OffsetsRecord]:
    for batch in read_columns(path):
        columns = [column.to_pylist() for column in batch.columns]
        columns[3] = [key or b"" for key in columns[3]]
        yield from map(OffsetsRecord._make, zip(*columns, strict=True))


def is_parquet(path: str) -> bool:
    return path.endswith(".parquet") or Path(path).is_dir()


def read_columns(path: str) -> "Iterator[pyarrow.RecordBatch]":
    """Yields the batches of a Parquet file or directory: numbers as int64, times in ms."""
    try:
        import pyarrow
        from pyarrow import parquet  # `pyarrow.dataset` would import pandas
    except ImportError:
        raise MissingExtra(f"{path}: Parquet", "arrow") from None
    try:
        for name in sorted(Path(path).rglob("*.parquet")) if Path(path).is_dir() else [path]:
            file = parquet.ParquetFile(name)
            _check_types(path, file.schema_arrow)
            for batch in file.iter_batches(columns=list(_COLUMNS)):
                columns = [_values(path, name, batch.column(name)) for name in _COLUMNS]
                yield pyarrow.record_batch(columns, list(_COLUMNS))
    except pyarrow.ArrowException as error:
        raise GroupError(path, str(error).partition("\n")[0]) from None


def _check_types(path: str, schema: "pyarrow.Schema") -> None:
    """Raises a GroupError that names a column that is missing or has a wrong type."""
    from pyarrow import types

    binary = (types.is_binary, types.is_large_binary, types.is_null)  # is_null: only nulls
    wanted = {
        "partition": ("a whole number", (types.is_integer,)),
        "offset": ("a whole number", (types.is_integer,)),
        "timestamp": ("a timestamp or milliseconds", (types.is_timestamp, types.is_integer)),
        "key": ("binary", binary),
        "value": ("binary", binary),
    }
    lacking = [name for name in _COLUMNS if name not in schema.names]
    if lacking:
        raise GroupError(path, f"no column {lacking[0]}; records have {', '.join(_COLUMNS)}")
    for name, (kind, tests) in wanted.items():
        found = schema.field(schema.names.index(name)).type
        if not any(fits(found) for fits in tests):
            wrong = f"its type is {found}, not {kind}; write it as Spark's Kafka source does"
            raise GroupError(path, f"column {name}: {wrong}")


def _values(path: str, name: str, column: "pyarrow.Array") -> "pyarrow.Array":
    """Returns a column with its type in Kafka: a time is in milliseconds since 1970, UTC.

    Errors: GroupError for a null in a number column.
    """
    import pyarrow

    if name not in _NUMBERS:
        return column.cast(pyarrow.large_binary())
    if column.null_count:
        problem = "null in a row; each record has one, so leave that row out"
        raise GroupError(path, f"column {name}: {problem}")
    if pyarrow.types.is_timestamp(column.type):
        # Arrow counts from 1970 in UTC, whatever the column's zone. Python's datetime would treat a
        # time without a zone as local time, but Spark writes UTC without a zone.
        column = column.cast(pyarrow.timestamp("ms", column.type.tz), safe=False)
    return column.cast(pyarrow.int64())
