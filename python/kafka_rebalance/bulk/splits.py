# SPDX-License-Identifier: Apache-2.0
"""Cuts files into splits, and reads the groups of a split in batches of bounded size.

A split is a range of a file's bytes. A line, or a row group in Parquet, belongs to the split that
contains its first byte. A compressed file of lines is one split.
"""

import io
from collections.abc import Iterable, Iterator, Set
from typing import TYPE_CHECKING, Any, BinaryIO

from kafka_rebalance.errors import MissingExtra
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.line_files import MAX_LINE_BYTES, TOO_LONG, read_lines, read_range

from .paths import open_file_system

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_BYTES = 4 * 1024 * 1024
"""The approximate size of a batch of groups, in bytes. Larger batches need more memory, and are
slower because they do not fit into caches.
"""

_VALUE_BYTES = 16
"""The approximate number of bytes in memory for each value of a nested column: a name with its
offset, or a number.
"""

_LEAST_BYTES, _MOST_BYTES = 4 * 1024 * 1024, 128 * 1024 * 1024
"""The smallest and the largest size of a task's input, in bytes."""
_TASKS_A_CORE = 2

_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4", ".br")
_BUFFER_BYTES = 1024 * 1024


class Split(Frozen):
    """The bytes [start, end) of a file; `cluster` is the cluster that the directory names."""

    path: str
    start: int
    end: int
    cluster: str | None = None

    @property
    def is_compressed(self) -> bool:
        return self.path.endswith(_COMPRESSED)


def cut(files: Iterable[Split], bytes_each: int, *, lines: bool) -> list[list[Split]]:
    """Returns a list of splits for each task, in file order, of about `bytes_each` bytes in all."""
    tasks: list[list[Split]] = [[]]
    left = bytes_each
    for file in files:
        is_whole = lines and file.is_compressed
        step = max(file.end if is_whole else bytes_each, 1)
        for start in range(0, file.end, step):
            part = Split(file.path, start, min(start + step, file.end), file.cluster)
            if tasks[-1] and part.end - part.start > left:
                tasks.append([])
                left = bytes_each
            tasks[-1].append(part)
            left -= part.end - part.start
    return [task for task in tasks if task]


def bytes_each(total: int, tasks: int | None, cores: int) -> int:
    """Returns how many bytes each task should read; starting a task costs as much CPU time as
    reading 1 MB.
    """
    if tasks is not None:
        return -(-total // tasks)
    return min(max(total // (_TASKS_A_CORE * cores), _LEAST_BYTES), _MOST_BYTES)


def line_batches(split: Split) -> "Iterator[pa.RecordBatch]":
    """Yields the lines of a split, without blank ones, in a column `line`.

    A line of more than MAX_LINE_BYTES becomes an error line. Errors: MissingExtra without pyarrow.
    """
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingExtra("fleet", "arrow") from None

    too_long = f'{{"error": "line: {TOO_LONG}"}}'.encode()
    lines: list[bytes] = []
    size = 0
    with _opened(split) as source:
        for line in _lines(split, source):
            if line is not None and not line.strip():
                continue
            lines.append(too_long if line is None else line)
            size += len(lines[-1])
            if size >= BATCH_BYTES:
                yield pa.record_batch({"line": pa.array(lines, pa.binary())})
                lines, size = [], 0
    yield pa.record_batch({"line": pa.array(lines, pa.binary())})


def _opened(split: Split) -> BinaryIO:
    system, path = open_file_system(split.path)
    if split.is_compressed:
        source = system.open_input_stream(path, compression="detect")
    else:
        source = system.open_input_file(path)
    return io.BufferedReader(source, _BUFFER_BYTES)


def _lines(split: Split, source: BinaryIO) -> Iterator[bytes | None]:
    if split.is_compressed:
        return read_lines(source, MAX_LINE_BYTES)
    return read_range(source, split.start, split.end, MAX_LINE_BYTES)


def row_batches(split: Split, wanted: Set[str]) -> "Iterator[pa.RecordBatch]":
    """Yields the rows of a split of a Parquet file, with the wanted columns that the file contains.

    A wanted column is a path of names without brackets for lists: `topics.name`. The first batch
    has no rows, so that the columns of a split without rows are known, too.
    """
    import pyarrow as pa
    from pyarrow import parquet

    system, path = open_file_system(split.path)
    with system.open_input_file(path) as source:
        file = parquet.ParquetFile(source)
        places = [
            place
            for place, leaf in enumerate(leaves(file.schema_arrow))
            if not wanted.isdisjoint(leaf)
        ]
        columns = [file.schema.column(place).path for place in places]
        yield pa.RecordBatch.from_pylist([], file.read_row_groups([], columns).schema)
        for n in range(file.num_row_groups):
            group = file.metadata.row_group(n)
            if split.start <= _first_byte(group) < split.end and group.num_rows:
                values = sum(group.column(place).num_values for place in places)
                rows = max(1, BATCH_BYTES * group.num_rows // max(1, values * _VALUE_BYTES))
                yield from file.iter_batches(rows, [n], columns, use_threads=False)


def _first_byte(group: Any) -> int:
    column = group.column(0)
    data: int = column.data_page_offset
    return min(data, column.dictionary_page_offset or data)


def leaves(schema: "pa.Schema") -> Iterator[tuple[str, str]]:
    """Yields the top-level name and the path of each leaf column of a file, in the file's order."""
    from pyarrow import types

    def below(kind: Any, path: str) -> Iterator[str]:
        if types.is_struct(kind):
            for field in kind:
                yield from below(field.type, f"{path}.{field.name}")
        elif types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
            yield from below(kind.value_type, path)
        elif types.is_map(kind):
            yield from below(kind.key_type, path)
            yield from below(kind.item_type, path)
        else:
            yield path

    for field in schema:
        for path in below(field.type, field.name):
            yield field.name, path
