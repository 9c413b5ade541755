"""What would happen if: plans, comparisons, and why."""

from .affected import as_far_as_affected
from .clients import Recipe
from .compare import Candidate, Comparison, compare
from .explain import explain, partition_from_text
from .figures import Figures
from .migration import Migration, migration
from .never_ends import Endless, WayOut, endless
from .plan import RebalancePlan, Step, plan
from .rounds import Round
from .samples import Samples, enough_draws, sample
from .switch import Bounce

__all__ = [
    "Bounce",
    "Candidate",
    "Comparison",
    "Endless",
    "Figures",
    "Migration",
    "RebalancePlan",
    "Recipe",
    "Round",
    "Samples",
    "Step",
    "WayOut",
    "as_far_as_affected",
    "compare",
    "endless",
    "enough_draws",
    "explain",
    "migration",
    "partition_from_text",
    "plan",
    "sample",
]
