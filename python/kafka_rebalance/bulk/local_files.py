# SPDX-License-Identifier: Apache-2.0
"""Assigns, plans or compares the groups in local files of contract lines, without Spark.

1. Finds the files that Spark would find, and cuts them into the splits of `spark/files.py`.
2. A thread for each core writes the parts; the core computes without Python's lock.
3. `output_directory` moves the parts to their place.
"""

import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_rebalance.errors import MissingExtra

from . import paths
from .calls import Call
from .output_directory import output_directory
from .parts import Done, Job, summed, write_part
from .splits import Split, bytes_each, cut

if TYPE_CHECKING:
    import pyarrow as pa


def files_of(source: str) -> list[Split]:
    """Returns the files of a local path; as in Spark, not the files whose names begin with `.` or
    `_`.
    """
    top = Path(os.path.abspath(str(paths.local(source))))  # noqa: PTH100 as Spark, follows no links
    below = [one for one in top.rglob("*") if one.is_file() and _is_seen(one.relative_to(top))]
    names = sorted(map(str, [top] if top.is_file() else below))
    clusters = paths.clusters_of(names, below=source)
    found = zip(names, clusters, strict=True)
    return [Split(name, 0, Path(name).stat().st_size, cluster) for name, cluster in found]


def _is_seen(path: Path) -> bool:
    return not any(
        name.startswith(".") or (name.startswith("_") and "=" not in name) for name in path.parts
    )


def answer_files(
    files: Sequence[Split],
    target: str,
    verb: str,
    calls: Sequence[Call],
    *,
    tasks: int | None = None,
    has_label: bool = False,
    overwrite: bool = False,
) -> Done:
    """Writes the answers for all groups in the files to a directory; returns the counts."""
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingExtra("fleet", "arrow") from None
    start = time.perf_counter()
    cores = os.cpu_count() or 1
    has_cluster = any(file.cluster is not None for file in files)
    with output_directory(target, overwrite=overwrite) as output, ThreadPoolExecutor(cores) as pool:
        job = Job(
            verb, calls, True, frozenset(), pa.schema([]), has_cluster, output.parts, has_label
        )
        each = bytes_each(sum(file.end for file in files), tasks, cores)
        # If all files are empty, one task writes a part without rows.
        work = cut(files, each, lines=True) or [list(files[:1])]
        parts = list(pool.map(lambda n: write_part(job, n, work[n]), range(len(work))))
        output.commit([part.name for part in parts if part.name is not None])
    return summed(parts, time.perf_counter() - start)


def read_columns(directory: str, names: Sequence[str]) -> "Iterator[pa.Table]":
    """Yields the named columns of a directory's Parquet files, one table for each row group."""
    from pyarrow import parquet

    for path in sorted(Path(directory).glob("*.parquet")):
        file = parquet.ParquetFile(path)
        for number in range(file.num_row_groups):
            yield file.read_row_group(number, list(names))
