"""Rebalances in virtual time: `simulate(scenario)` plays one, and tells who held what when."""

from .engine import simulate
from .holds import Gap, Hold
from .network import Network
from .run import Rebalance, Run, Totals
from .scenario import Happening, Kind, MemberPlan, Scenario, TopicPlan, Work

__all__ = [
    "Gap",
    "Happening",
    "Hold",
    "Kind",
    "MemberPlan",
    "Network",
    "Rebalance",
    "Run",
    "Scenario",
    "TopicPlan",
    "Totals",
    "Work",
    "simulate",
]
