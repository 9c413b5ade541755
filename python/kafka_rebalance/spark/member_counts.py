# SPDX-License-Identifier: Apache-2.0
"""Finds the effect of each number of members of many groups, on Spark."""

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql import DataFrame

from kafka_rebalance.bulk.one_by_one import bad_row, group_of
from kafka_rebalance.errors import GroupError, SchemaError
from kafka_rebalance.scaling.counts import checked, scale

from . import schema
from .recorded_patterns import each_group

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

    def answers(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for row in rows:
            yield {name: row[name] for name in keys} | _answer(row, wanted)

    return each_group(groups, groups.columns[:1], answers, schema.with_keys(SCALE_SCHEMA, keys))


def _answer(row: dict[str, Any], counts: list[int] | None) -> dict[str, Any]:
    """Returns a row of SCALE_SCHEMA, perhaps with more fields, which Arrow leaves out."""
    if (error := row.pop("error", None)) is not None:
        return bad_row(row, error)
    try:
        return scale(group_of(row), counts, samples=0).to_dict()
    except GroupError as problem:
        return bad_row(row, problem)
