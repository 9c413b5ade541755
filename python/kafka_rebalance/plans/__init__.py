# SPDX-License-Identifier: Apache-2.0
"""Plans (the effect of changes on a group), comparisons of assignors, and explanations."""

from .affected import as_far_as_affected as as_far_as_affected
from .clients import Recipe as Recipe
from .comparison import Comparison as Comparison
from .comparison import compare as compare
from .description import Description as Description
from .description import describe as describe
from .explanation import partition_from_text as partition_from_text
from .figures import Figures as Figures
from .findings import Finding as Finding
from .leaders import LedPlan as LedPlan
from .leaders import plans_by_leader as plans_by_leader
from .migrations import Migration as Migration
from .migrations import migration as migration
from .never_ends import Endless as Endless
from .never_ends import WayOut as WayOut
from .never_ends import endless as endless
from .rebalance_plan import RebalancePlan as RebalancePlan
from .rebalance_plan import plan as plan
from .recommendation import Candidate as Candidate
from .rounds import Round as Round
from .rounds import Step as Step
from .samples import Samples as Samples
from .switch import Bounce as Bounce
