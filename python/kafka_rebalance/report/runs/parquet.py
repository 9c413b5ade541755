# SPDX-License-Identifier: Apache-2.0
"""Writes simulated runs as Parquet: a row for each interval in which one member held a partition.

A Connect task counts as a partition. In an interval without a holder, `member` is null.
"""

from collections.abc import Mapping
from pathlib import Path

from kafka_rebalance.errors import MissingExtra
from kafka_rebalance.simulator.measure import unheld
from kafka_rebalance.simulator.run import Run


def write_runs(runs: Mapping[str, Run], path: Path) -> None:
    """Writes all runs to one file; the rows of each partition are in order of time."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise MissingExtra("Parquet", "arrow") from None
    rows = [row for name, run in runs.items() for row in _rows(name, run)]
    schema = pa.schema(
        [
            pa.field("run", pa.string(), nullable=False),
            pa.field("partition", pa.string(), nullable=False),
            pa.field("member", pa.string()),
            pa.field("generation_id", pa.int32()),
            pa.field("from_ms", pa.int64(), nullable=False),
            pa.field("to_ms", pa.int64(), nullable=False),
            pa.field("is_stuck", pa.bool_(), nullable=False),
        ]
    )
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    parquet.write_table(
        pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema), path
    )


Row = tuple[str, str, str | None, int | None, int, int, bool]


def _rows(name: str, run: Run) -> list[Row]:
    held: list[Row] = [
        (name, one.partition, one.member, one.generation_id, one.from_ms, one.to_ms, one.is_stuck)
        for one in run.holds
    ]
    nobody: list[Row] = [
        (name, one.partition, None, None, one.from_ms, one.to_ms, False) for one in unheld(run)
    ]
    return sorted(held + nobody, key=lambda row: (row[1], row[4]))
