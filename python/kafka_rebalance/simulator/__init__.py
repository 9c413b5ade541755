# SPDX-License-Identifier: Apache-2.0
"""Rebalances in virtual time: `simulate(scenario)` returns which member held what, and when."""

from .from_group import Pace, scenario_from_group
from .measure import Stopped, Totals, settlings, stops, totals
from .network import Network
from .run import Run
from .scenario import Costs, Happening, Kind, MemberPlan, Scenario, TopicPlan
from .seeds import Spread, simulate_seeds
from .simulation import simulate

__all__ = [
    "Costs",
    "Gap",
    "Happening",
    "Kind",
    "MemberPlan",
    "Network",
    "Pace",
    "Run",
    "Scenario",
    "Spread",
    "Stopped",
    "TopicPlan",
    "Totals",
    "scenario_from_group",
    "settlings",
    "simulate",
    "simulate_seeds",
    "stops",
    "totals",
]
