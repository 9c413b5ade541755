# SPDX-License-Identifier: Apache-2.0
"""Makes rows of totals, as `fleet_summary` returns them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka_rebalance.bulk.plan_totals import PlanTotals

if TYPE_CHECKING:
    from collections.abc import Mapping


def totals_of(
    change: str, group_moves: Mapping[str, int] | None = None, **figures: int
) -> dict[str, Any]:
    """Returns the totals of a change; a count that is not named is 0."""
    row = {"change": change, **PlanTotals().row(1), **figures}
    return row if group_moves is None else {**row, "group_moves": group_moves}
