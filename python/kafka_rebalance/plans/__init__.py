"""What would happen if: plans, comparisons, and why."""

from .compare import Candidate, Comparison, compare, migration
from .explain import explain, partition_from_text
from .figures import Figures
from .never_ends import Endless, WayOut, endless
from .plan import RebalancePlan, Step, plan
from .rounds import Round
from .samples import Samples, sample

__all__ = [
    "Candidate",
    "Comparison",
    "Endless",
    "Figures",
    "RebalancePlan",
    "Round",
    "Samples",
    "Step",
    "WayOut",
    "compare",
    "endless",
    "explain",
    "migration",
    "partition_from_text",
    "plan",
    "sample",
]
