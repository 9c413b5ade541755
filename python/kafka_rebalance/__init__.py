# SPDX-License-Identifier: Apache-2.0
"""Predict, plan and run Kafka rebalances: Kafka's own answers, partition for partition.

group = GroupSpec.from_json(line)
result = assign(group, "cooperative-sticky")

`_NAMES` lists the public names and their modules. `import kafka_rebalance` imports none of these
modules: each is imported when one of its names is first used. docs/api.md describes every name.
"""

from importlib import import_module
from typing import TYPE_CHECKING

_NAMES = {
    "assignors": """
        Assignor CooperativeSticky Range RebalanceProtocol RoundRobin Sticky assign assignor_names
        register unregister validate_cooperative
    """,
    "assignors.registry": "Engine",
    "bulk.batch": "assign_batch compare_batch plan_batch",
    "bulk.lines": "assign_lines",
    "coordinator.classic_group.group": "IllegalTransition",
    "errors": """
        AssignorThrows ClusterError GroupError KafkaRebalanceError MissingExtra NeverEnds
        NoMembersLeft NotAffected SchemaError SparkFailedError WireError
    """,
    "group.model": """
        MAX_PARTITIONS Member StreamsMember Subtopology TaskOffset Topic TopicPartition
    """,
    "group.ownership": "Anomaly AnomalyKind Assignment Balance Delta",
    "group.spec": "GroupSpec",
    "history.coordinator_log": "CoordinatorLog read_coordinator_log",
    "history.counterfactual": "Counterfactual counterfactuals",
    "history.log_causes": "with_log",
    "history.patterns": "Pattern find_patterns",
    "history.rebalance_history": "rebalance_history recorded_generations",
    "history.recorded": "RecordedRebalance",
    "history.records": "read_records",
    "history.replay": "ReplayedRebalance replay replay_shares",
    "live": "client_configs group_lags read_properties snapshot",
    "notes.never_ends": "Endless WayOut endless",
    "notes.note": "Note",
    "notes.plan_notes": "comparison_notes plan_notes",
    "plans": """
        Figures LedPlan RebalancePlan Round Samples Step partition_from_text plan plans_by_leader
    """,
    "plans.changes": """
        AddMembers AddPartitions AddTopics BounceMembers Change RemoveMembers RemoveTopics
        Resubscribe SwitchAssignor SwitchProtocol apply change_from_text
    """,
    "plans.possible": "Level Possible best_possible",
    "present.description": "Description describe",
    "simulator": "Scenario scenario_from_group simulate simulate_seeds",
    "switching.comparison": "Comparison compare",
    "switching.recommendation": "Candidate",
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_MODULE_OF)

if TYPE_CHECKING:  # type checkers cannot read `_NAMES`; a test compares both lists
    __version__: str

    from kafka_rebalance.assignors import Assignor as Assignor
    from kafka_rebalance.assignors import CooperativeSticky as CooperativeSticky
    from kafka_rebalance.assignors import Range as Range
    from kafka_rebalance.assignors import RebalanceProtocol as RebalanceProtocol
    from kafka_rebalance.assignors import RoundRobin as RoundRobin
    from kafka_rebalance.assignors import Sticky as Sticky
    from kafka_rebalance.assignors import assign as assign
    from kafka_rebalance.assignors import assignor_names as assignor_names
    from kafka_rebalance.assignors import register as register
    from kafka_rebalance.assignors import unregister as unregister
    from kafka_rebalance.assignors import validate_cooperative as validate_cooperative
    from kafka_rebalance.assignors.registry import Engine as Engine
    from kafka_rebalance.bulk.batch import assign_batch as assign_batch
    from kafka_rebalance.bulk.batch import compare_batch as compare_batch
    from kafka_rebalance.bulk.batch import plan_batch as plan_batch
    from kafka_rebalance.bulk.lines import assign_lines as assign_lines
    from kafka_rebalance.coordinator.classic_group.group import (
        IllegalTransition as IllegalTransition,
    )
    from kafka_rebalance.errors import AssignorThrows as AssignorThrows
    from kafka_rebalance.errors import ClusterError as ClusterError
    from kafka_rebalance.errors import GroupError as GroupError
    from kafka_rebalance.errors import KafkaRebalanceError as KafkaRebalanceError
    from kafka_rebalance.errors import MissingExtra as MissingExtra
    from kafka_rebalance.errors import NeverEnds as NeverEnds
    from kafka_rebalance.errors import NoMembersLeft as NoMembersLeft
    from kafka_rebalance.errors import NotAffected as NotAffected
    from kafka_rebalance.errors import SchemaError as SchemaError
    from kafka_rebalance.errors import SparkFailedError as SparkFailedError
    from kafka_rebalance.errors import WireError as WireError
    from kafka_rebalance.group.model import MAX_PARTITIONS as MAX_PARTITIONS
    from kafka_rebalance.group.model import Member as Member
    from kafka_rebalance.group.model import StreamsMember as StreamsMember
    from kafka_rebalance.group.model import Subtopology as Subtopology
    from kafka_rebalance.group.model import TaskOffset as TaskOffset
    from kafka_rebalance.group.model import Topic as Topic
    from kafka_rebalance.group.model import TopicPartition as TopicPartition
    from kafka_rebalance.group.ownership import Anomaly as Anomaly
    from kafka_rebalance.group.ownership import AnomalyKind as AnomalyKind
    from kafka_rebalance.group.ownership import Assignment as Assignment
    from kafka_rebalance.group.ownership import Balance as Balance
    from kafka_rebalance.group.ownership import Delta as Delta
    from kafka_rebalance.group.spec import GroupSpec as GroupSpec
    from kafka_rebalance.history.coordinator_log import CoordinatorLog as CoordinatorLog
    from kafka_rebalance.history.coordinator_log import read_coordinator_log as read_coordinator_log
    from kafka_rebalance.history.counterfactual import Counterfactual as Counterfactual
    from kafka_rebalance.history.counterfactual import counterfactuals as counterfactuals
    from kafka_rebalance.history.log_causes import with_log as with_log
    from kafka_rebalance.history.patterns import Pattern as Pattern
    from kafka_rebalance.history.patterns import find_patterns as find_patterns
    from kafka_rebalance.history.rebalance_history import rebalance_history as rebalance_history
    from kafka_rebalance.history.rebalance_history import (
        recorded_generations as recorded_generations,
    )
    from kafka_rebalance.history.recorded import RecordedRebalance as RecordedRebalance
    from kafka_rebalance.history.records import read_records as read_records
    from kafka_rebalance.history.replay import ReplayedRebalance as ReplayedRebalance
    from kafka_rebalance.history.replay import replay as replay
    from kafka_rebalance.history.replay import replay_shares as replay_shares
    from kafka_rebalance.live import client_configs as client_configs
    from kafka_rebalance.live import group_lags as group_lags
    from kafka_rebalance.live import read_properties as read_properties
    from kafka_rebalance.live import snapshot as snapshot
    from kafka_rebalance.notes.never_ends import Endless as Endless
    from kafka_rebalance.notes.never_ends import WayOut as WayOut
    from kafka_rebalance.notes.never_ends import endless as endless
    from kafka_rebalance.notes.note import Note as Note
    from kafka_rebalance.notes.plan_notes import comparison_notes as comparison_notes
    from kafka_rebalance.notes.plan_notes import plan_notes as plan_notes
    from kafka_rebalance.plans import Figures as Figures
    from kafka_rebalance.plans import LedPlan as LedPlan
    from kafka_rebalance.plans import RebalancePlan as RebalancePlan
    from kafka_rebalance.plans import Round as Round
    from kafka_rebalance.plans import Samples as Samples
    from kafka_rebalance.plans import Step as Step
    from kafka_rebalance.plans import partition_from_text as partition_from_text
    from kafka_rebalance.plans import plan as plan
    from kafka_rebalance.plans import plans_by_leader as plans_by_leader
    from kafka_rebalance.plans.changes import AddMembers as AddMembers
    from kafka_rebalance.plans.changes import AddPartitions as AddPartitions
    from kafka_rebalance.plans.changes import AddTopics as AddTopics
    from kafka_rebalance.plans.changes import BounceMembers as BounceMembers
    from kafka_rebalance.plans.changes import Change as Change
    from kafka_rebalance.plans.changes import RemoveMembers as RemoveMembers
    from kafka_rebalance.plans.changes import RemoveTopics as RemoveTopics
    from kafka_rebalance.plans.changes import Resubscribe as Resubscribe
    from kafka_rebalance.plans.changes import SwitchAssignor as SwitchAssignor
    from kafka_rebalance.plans.changes import SwitchProtocol as SwitchProtocol
    from kafka_rebalance.plans.changes import apply as apply
    from kafka_rebalance.plans.changes import change_from_text as change_from_text
    from kafka_rebalance.plans.possible import Level as Level
    from kafka_rebalance.plans.possible import Possible as Possible
    from kafka_rebalance.plans.possible import best_possible as best_possible
    from kafka_rebalance.present.description import Description as Description
    from kafka_rebalance.present.description import describe as describe
    from kafka_rebalance.simulator import Scenario as Scenario
    from kafka_rebalance.simulator import scenario_from_group as scenario_from_group
    from kafka_rebalance.simulator import simulate as simulate
    from kafka_rebalance.simulator import simulate_seeds as simulate_seeds
    from kafka_rebalance.switching.comparison import Comparison as Comparison
    from kafka_rebalance.switching.comparison import compare as compare
    from kafka_rebalance.switching.recommendation import Candidate as Candidate


def __getattr__(name: str) -> object:
    if name == "__version__":
        from kafka_rebalance._core import VERSION

        return VERSION
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Returns the public names and the modules that are imported, not this file's own helpers."""
    return sorted({*globals(), *__all__} - {"TYPE_CHECKING", "import_module"})
