# SPDX-License-Identifier: Apache-2.0
"""Plays rebalances in virtual time: `simulate(scenario)` returns who held which partition when."""

from .from_group import Pace as Pace
from .from_group import scenario_from_group as scenario_from_group
from .measure import Stopped as Stopped
from .measure import Totals as Totals
from .measure import settlings as settlings
from .measure import stops as stops
from .measure import totals as totals
from .network import Network as Network
from .run import Run as Run
from .scenario import Costs as Costs
from .scenario import Happening as Happening
from .scenario import Kind as Kind
from .scenario import MemberPlan as MemberPlan
from .scenario import Scenario as Scenario
from .scenario import TopicPlan as TopicPlan
from .scenario_files import load as load
from .scenario_files import ready as ready
from .seeds import Spread as Spread
from .seeds import simulate_seeds as simulate_seeds
from .simulation import simulate as simulate
