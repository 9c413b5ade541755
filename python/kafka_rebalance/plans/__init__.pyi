# SPDX-License-Identifier: Apache-2.0

from kafka_rebalance.assignors.balance.budget import CurvePoint as CurvePoint

from . import changes as changes
from .clients import Recipe as Recipe
from .explanation import Explanation as Explanation
from .explanation import partition_from_text as partition_from_text
from .figures import Figures as Figures
from .leaders import LedPlan as LedPlan
from .leaders import plans_by_leader as plans_by_leader
from .possible.curve import Curve as Curve
from .possible.curve import balance_curve as balance_curve
from .possible.optimum import Level as Level
from .possible.optimum import Possible as Possible
from .possible.optimum import best_possible as best_possible
from .rebalance_plan import RebalancePlan as RebalancePlan
from .rebalance_plan import plan as plan
from .rounds import Round as Round
from .rounds import Step as Step
from .samples import Samples as Samples
