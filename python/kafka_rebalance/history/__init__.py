# SPDX-License-Identifier: Apache-2.0
"""Reads past rebalances and their causes from the records of `__consumer_offsets`."""

from kafka_rebalance.wire.group_records import OffsetsRecord

from .all_groups import rebalance_history, recorded_generations
from .coordinator_log import CoordinatorEvent, CoordinatorLog, read_coordinator_log
from .counterfactual import Counterfactual, counterfactuals
from .group_log import RecordedGeneration, RecordedMember
from .log_causes import with_log
from .patterns import Pattern, PatternKind, find_patterns
from .recorded import BackMember, Cause, Certainty, RecordedRebalance
from .records import read_records
from .replayed import ReplayedRebalance, ReplayShare, replay, replay_shares

__all__ = [
    "BackMember", "Cause", "Certainty", "CoordinatorEvent", "CoordinatorLog", "Counterfactual",
    "OffsetsRecord", "Pattern", "PatternKind", "RecordedGeneration", "RecordedMember",
    "RecordedRebalance", "ReplayShare", "ReplayedRebalance", "counterfactuals", "find_patterns",
    "read_coordinator_log", "read_records", "rebalance_history", "recorded_generations", "replay",
    "replay_shares", "with_log",
]  # fmt: skip
