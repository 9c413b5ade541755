# SPDX-License-Identifier: Apache-2.0
"""Plans: the effect of changes on a group, rebalance by rebalance."""

from .clients import Recipe
from .explanation import partition_from_text
from .figures import Figures
from .leaders import LedPlan, plans_by_leader
from .possible import Curve, CurvePoint, Level, Possible, balance_curve, best_possible
from .rebalance_plan import RebalancePlan, plan
from .rounds import Round, Step
from .samples import Samples

__all__ = [
    "Curve", "CurvePoint", "Figures", "LedPlan", "Level", "Possible", "RebalancePlan", "Recipe",
    "Round", "Samples", "Step", "balance_curve", "best_possible", "partition_from_text", "plan",
    "plans_by_leader",
]  # fmt: skip
