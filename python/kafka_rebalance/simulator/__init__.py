"""Rebalances in virtual time: `simulate(scenario)` plays one, and tells who held what when."""

from .engine import simulate
from .from_group import Pace, scenario_from_group
from .holds import Gap, Hold
from .measure import Settling, Stopped, Totals, settlings, stops, totals
from .network import Network
from .run import Rebalance, Run
from .scenario import Happening, Kind, MemberPlan, Scenario, TopicPlan, Work
from .seeds import SeedRuns, Spread, simulate_seeds

__all__ = [
    "Gap",
    "Happening",
    "Hold",
    "Kind",
    "MemberPlan",
    "Network",
    "Pace",
    "Rebalance",
    "Run",
    "Scenario",
    "SeedRuns",
    "Settling",
    "Spread",
    "Stopped",
    "TopicPlan",
    "Totals",
    "Work",
    "scenario_from_group",
    "settlings",
    "simulate",
    "simulate_seeds",
    "stops",
    "totals",
]
