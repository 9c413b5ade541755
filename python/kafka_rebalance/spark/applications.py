# SPDX-License-Identifier: Apache-2.0
"""Plans classic Kafka Streams applications on Spark, from contract lines."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from kafka_rebalance.bulk.applications import TEXTS, ApplicationRow, check_plan
from kafka_rebalance.errors import SchemaError
from kafka_rebalance.plans.changes.change import Change

from .workers import map_in_workers

if TYPE_CHECKING:
    import pyarrow as pa

APPLICATIONS_SCHEMA = ", ".join(
    f"{name} {'string' if name in TEXTS else 'bigint'}" for name in ApplicationRow._fields
)
"""The columns of `plan_applications`, one row for each application."""


def plan_applications(
    lines: DataFrame,
    *,
    changes: Sequence[Change | str] = (),
    given: Mapping[str, Any] | None = None,
    new_settings: Mapping[str, Any] | None = None,
    restore_rate: int | None = None,
) -> DataFrame:
    """Plans the classic Kafka Streams groups in `lines`, a DataFrame with one column of contract
    lines, binary or string. Returns the columns of APPLICATIONS_SCHEMA; other groups have no row.

    The lines are as `snapshot` writes them. `given` are the present settings that the replay cannot
    find, by Kafka's names; `new_settings` are planned ones. A bad line gets an `error`; the job
    continues.

    Errors   SchemaError for other columns, GroupError for a bad change or setting, before the job
             runs.
    """
    if len(lines.columns) != 1:
        raise SchemaError(f"{', '.join(lines.columns)}: expected one column of contract lines")
    texts = [*map(str, check_plan(changes, given, new_settings))]
    options = {"given": given, "new_settings": new_settings, "restore_rate": restore_rate}
    return map_in_workers(lines, partial(_planned, texts, options), APPLICATIONS_SCHEMA)


def _planned(
    changes: Sequence[str], options: Mapping[str, Any], batches: "Iterator[pa.RecordBatch]"
) -> "Iterator[pa.RecordBatch]":
    from kafka_rebalance.bulk.applications import applications_batch

    for batch in batches:
        lines = (one or b"" for one in batch.column(0).to_pylist())
        yield applications_batch(lines, changes, **options)
