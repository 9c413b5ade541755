# SPDX-License-Identifier: Apache-2.0
"""Makes rows of totals, as `fleet_summary` returns them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka_rebalance.bulk.plan_totals import PlanTotals

if TYPE_CHECKING:
    from collections.abc import Mapping


def totals_of(change: str, figures: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the totals of a change; a count that is not in `figures` is 0."""
    return {"change": change, **PlanTotals().row(1), **figures}
