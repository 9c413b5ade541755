# SPDX-License-Identifier: Apache-2.0
"""Answers that Python computes in the workers: other numbers of members, Streams applications."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from pyspark.sql import DataFrame

from kafka_rebalance.bulk.applications import TEXTS, ApplicationRow, applications_batch, check_plan
from kafka_rebalance.bulk.one_by_one import bad_row, group_of
from kafka_rebalance.errors import GroupError, SchemaError
from kafka_rebalance.plans.changes.change import Change
from kafka_rebalance.scaling.counts import checked, scale

from . import schema
from .workers import Batches, Row, each_group, map_in_workers

APPLICATIONS_SCHEMA = ", ".join(
    f"{name} {'string' if name in TEXTS else 'bigint'}" for name in ApplicationRow._fields
)
"""The columns of `plan_applications`, one row for each application."""

SCALE_SCHEMA = (
    "group_id string, assignor string, members int, summary string, worth array<int>, "
    "counts array<struct<members: int, fullest: int, possible: int, moves: bigint, "
    "rebalances: int, stops: int, idle: int, busiest: double, useful: boolean, settled: boolean>>, "
    "error string"
)
"""The columns of `scale_groups`: the fields of `kafka_rebalance.Scaled` and of its counts. All but
`group_id` and `error` are null if there is an `error`."""


def scale_groups(groups: DataFrame, counts: Sequence[int] | None = None) -> DataFrame:
    """Returns the effect of each number of members, by group: from INPUT_SCHEMA to SCALE_SCHEMA.

    The answers equal those of `kafka_rebalance.scale`; Python computes them in the workers. A bad
    group has an `error`. A column `cluster` is the first column of the answers, too.

    Raises SchemaError for columns that do not fit the contract; GroupError for a wrong count.
    """
    if not hasattr(groups, "mapInArrow"):
        raise SchemaError("groups: give a DataFrame; current_groups makes one of records")
    schema.check(groups.schema)
    keys = schema.keys(groups.schema)
    wanted = None if counts is None else checked(counts)

    def answers(rows: list[Row]) -> Iterator[Row]:
        for row in rows:
            yield {name: row[name] for name in keys} | _answer(row, wanted)

    return each_group(groups, groups.columns[:1], answers, schema.with_keys(SCALE_SCHEMA, keys))


def _answer(row: Row, counts: list[int] | None) -> Row:
    """Returns a row of SCALE_SCHEMA; it may have further fields, which the conversion to Arrow
    leaves out.
    """
    if (error := row.pop("error", None)) is not None:
        return bad_row(row, error)
    try:
        return scale(group_of(row), counts, samples=0).to_dict()
    except GroupError as problem:
        return bad_row(row, problem)


def plan_applications(
    lines: DataFrame,
    *,
    changes: Sequence[Change | str] = (),
    given: Mapping[str, Any] | None = None,
    new_settings: Mapping[str, Any] | None = None,
    restore_rate: int | None = None,
) -> DataFrame:
    """Plans the classic Kafka Streams groups in `lines`, a DataFrame with one column of contract
    lines, binary or string. Returns APPLICATIONS_SCHEMA; lines of other groups have no row.

    The lines are as `snapshot` writes them. `given` are the present settings that the replay cannot
    find, by Kafka's names; `new_settings` are planned ones. A bad line has an `error`; the job
    continues.

    Errors   SchemaError for other columns, GroupError for a bad change or setting, before the job
             runs.
    """
    if len(lines.columns) != 1:
        raise SchemaError(f"{', '.join(lines.columns)}: expected one column of contract lines")
    texts = [*map(str, check_plan(changes, given, new_settings))]
    options = {"given": given, "new_settings": new_settings, "restore_rate": restore_rate}
    return map_in_workers(lines, partial(_planned, texts, options), APPLICATIONS_SCHEMA)


def _planned(changes: Sequence[str], options: Mapping[str, Any], batches: Batches) -> Batches:
    for batch in batches:
        lines = (one or b"" for one in batch.column(0).to_pylist())
        yield applications_batch(lines, changes, **options)
