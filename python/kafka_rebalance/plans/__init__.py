# SPDX-License-Identifier: Apache-2.0
"""Plans (the effect of changes on a group), comparisons of assignors, and explanations."""

from .affected import as_far_as_affected
from .clients import Recipe
from .comparison import Candidate, Comparison, compare
from .description import Description, Finding, describe
from .explanation import partition_from_text
from .figures import Figures
from .migrations import Migration, migration
from .never_ends import Endless, WayOut, endless
from .rebalance_plan import RebalancePlan, plan
from .rounds import Round, Step
from .samples import Samples
from .switch import Bounce

__all__ = [
    "Bounce",
    "Candidate",
    "Comparison",
    "Description",
    "Endless",
    "Figures",
    "Finding",
    "Migration",
    "RebalancePlan",
    "Recipe",
    "Round",
    "Samples",
    "Step",
    "WayOut",
    "as_far_as_affected",
    "compare",
    "describe",
    "endless",
    "migration",
    "partition_from_text",
    "plan",
]
