# SPDX-License-Identifier: Apache-2.0
"""Plays rebalances in virtual time: `simulate(scenario)` returns who held which partition when."""

from kafka_rebalance.coordinator.config import CoordinatorConfig
from kafka_rebalance.member.config import ConsumerConfig, WorkerConfig

from .from_group import Pace, scenario_from_group
from .intervals import Gap, Hold
from .journal import CoordinatorEntry, Entry, EpochEntry, MemberEntry
from .measure import Settling, Stopped, Totals, settlings, stops, totals
from .network import Network
from .run import Absence, Rebalance, Run
from .scenario import Costs, Happening, Kind, MemberConfig, MemberPlan, Scenario, TopicPlan
from .scenario_files import load, ready
from .seeds import Part, SeedRuns, Spread, simulate_seeds
from .simulation import simulate
from .timing import Timed

__all__ = [
    "Absence", "ConsumerConfig", "CoordinatorConfig", "CoordinatorEntry", "Costs", "Entry",
    "EpochEntry", "Gap", "Happening", "Hold", "Kind", "MemberConfig", "MemberEntry", "MemberPlan",
    "Network", "Pace", "Part", "Rebalance", "Run", "Scenario", "SeedRuns", "Settling", "Spread",
    "Stopped", "Timed", "TopicPlan", "Totals", "WorkerConfig", "load", "ready",
    "scenario_from_group", "settlings", "simulate", "simulate_seeds", "stops", "totals",
]  # fmt: skip
