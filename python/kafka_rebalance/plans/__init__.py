"""What would happen if: plans, comparisons, and why."""

from .affected import as_far_as_affected
from .compare import Candidate, Comparison, compare, migration
from .explain import explain, partition_from_text
from .figures import Figures
from .plan import RebalancePlan, Step, plan
from .rounds import Round
from .samples import Samples, enough_draws, sample

__all__ = [
    "Candidate",
    "Comparison",
    "Figures",
    "RebalancePlan",
    "Round",
    "Samples",
    "Step",
    "as_far_as_affected",
    "compare",
    "enough_draws",
    "explain",
    "migration",
    "partition_from_text",
    "plan",
    "sample",
]
