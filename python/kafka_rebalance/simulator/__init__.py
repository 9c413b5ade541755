"""Rebalances in virtual time: `simulate(scenario)` plays one, and tells who held what when."""

from .engine import simulate
from .holds import Gap, Hold
from .measure import Settling, Stopped, Totals, settlings, stops, totals
from .network import Network
from .run import Rebalance, Run
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
    "Settling",
    "Stopped",
    "TopicPlan",
    "Totals",
    "Work",
    "settlings",
    "simulate",
    "stops",
    "totals",
]
