# SPDX-License-Identifier: Apache-2.0
"""Totals, percentiles and worst groups of plans, computed in this process: the rows of Spark's
`fleet_summary`, whose docstring and SUMMARY_SCHEMA describe the columns.
"""

import heapq
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafka_rebalance.errors import NO_MEMBERS

from .output_directory import output_directory

SUMS = ("moves", "least_moves", "unavailable", "waiting", "leaderless")
SPREADS = ("before", "after", "possible")
GROUP = ("unavailable_rounds", "waiting", "leaderless", "moves")
_COUNTS = (
    "groups", "errors", "never_ends", "throws", "not_affected", "without_members", "unsettled",
    "uneven", *SUMS, *(f"with_{name}" for name in SUMS[2:]),
)  # fmt: skip
_FIGURES = (*(f"spread_{when}" for when in SPREADS), "group_moves")
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
_MOST_HELD = 1_000
"""The largest number of groups to hold in memory in the search for the worst groups."""
READ = (
    "group_id", "settled", "error", "error_kind", "unavailable_rounds", *SUMS,
    *(f"balance_{when}.{end}" for when in SPREADS for end in ("min", "max")),
)  # fmt: skip
"""The columns of plans that the totals read."""


@dataclass
class PlanTotals:
    """The totals of one change. `values` contains the figures of each group, in no order."""

    counts: Counter[str] = field(default_factory=Counter)
    values: Mapping[str, list[int]] = field(default_factory=lambda: {one: [] for one in _FIGURES})
    worst: list[tuple[tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)

    def add(self, row: Mapping[str, Any]) -> None:
        """Adds a row of a plan."""
        counts, error, kind, moves = self.counts, row["error"], row["error_kind"], row["moves"]
        counts["groups"] += 1
        counts["errors"] += error is not None and kind != NO_MEMBERS
        counts["never_ends"] += kind == "never-ends"
        counts["throws"] += kind == "throws"
        counts["without_members"] += kind == NO_MEMBERS
        counts["not_affected"] += moves is None and error is None
        if moves is None:
            return
        counts["unsettled"] += row["settled"] is False
        balances = {when: row[f"balance_{when}"] for when in SPREADS}
        spreads = {when: one["max"] - one["min"] for when, one in balances.items()}
        counts["uneven"] += spreads["after"] > spreads["possible"]
        for name in SUMS:
            count = row[name] or 0  # null: least moves of share groups are unknown
            counts[name] += count
            counts[f"with_{name}"] += count > 0
        group = {f"spread_{when}": spread for when, spread in spreads.items()}
        for name, value in {**group, "group_moves": moves}.items():
            self.values[name].append(value)
        stopped = row["unavailable_rounds"] + row["waiting"] + row["leaderless"]
        order = (spreads["after"] - spreads["possible"], stopped, moves, row["group_id"])
        named = {"group_id": row["group_id"], **group, **{name: row[name] for name in GROUP}}
        self.worst.append((order, named))
        if len(self.worst) > _MOST_HELD:
            self.worst = self._worst(_MOST_HELD // 2)

    def merge(self, other: "PlanTotals") -> None:
        self.counts += other.counts
        for name, values in other.values.items():
            self.values[name].extend(values)
        self.worst += other.worst

    def _worst(self, count: int) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
        return heapq.nlargest(count, self.worst, key=lambda pair: pair[0])

    def row(self, worst: int) -> dict[str, Any]:
        return {
            **{name: self.counts[name] for name in _COUNTS},
            **{name: _percentiles(values) for name, values in self.values.items()},
            "worst": [group for _, group in self._worst(worst)] or None,
        }


def _percentiles(values: Sequence[int]) -> dict[str, int | None]:
    """Returns the exact percentiles; up to 10,000 values, Spark's approximation equals them."""
    last, found = len(values), sorted(values)
    ranks = {name: math.ceil(share * last) for name, share in PERCENTILES.items()}
    return {name: found[rank - 1] if found else None for name, rank in ranks.items()}


def write_totals(rows: Sequence[Mapping[str, Any]], target: str) -> None:
    """Writes rows (`cluster` and `change`, then the totals) as one Parquet file."""
    import pyarrow as pa
    from pyarrow import parquet

    whole = pa.int64()
    group = [("group_id", pa.string()), *((name, whole) for name in (*_FIGURES[:3], *GROUP))]
    types: dict[str, pa.DataType] = {
        **dict.fromkeys(_COUNTS, whole),
        **dict.fromkeys(_FIGURES, pa.struct([(name, whole) for name in PERCENTILES])),
        "worst": pa.list_(pa.struct(group)),
    }
    schema = pa.schema([(name, types.get(name, pa.string())) for name in rows[0]])
    name = "part-00000.parquet"
    with output_directory(target) as output:
        parquet.write_table(pa.Table.from_pylist(rows, schema), f"{output.parts}/{name}")
        output.commit([name])
