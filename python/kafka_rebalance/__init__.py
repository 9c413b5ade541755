# SPDX-License-Identifier: Apache-2.0
"""Predict, plan and run Kafka rebalances: what Apache Kafka computes, partition for partition.

group = GroupSpec.from_json(line)
result = assign(group, "cooperative-sticky")
"""

from importlib import import_module
from typing import TYPE_CHECKING

from kafka_rebalance import _core
from kafka_rebalance.assignors import (
    Assignor,
    CooperativeSticky,
    Range,
    RebalanceProtocol,
    RoundRobin,
    Sticky,
    assign,
    assignor_names,
    register,
    unregister,
    validate_cooperative,
)
from kafka_rebalance.bulk.batch import assign_batch, plan_batch
from kafka_rebalance.errors import (
    AssignorThrows,
    GroupError,
    KafkaRebalanceError,
    MissingExtra,
    NeverEnds,
    NotAffected,
    WireError,
)
from kafka_rebalance.group.model import MAX_PARTITIONS, Member, Topic, TopicPartition
from kafka_rebalance.group.ownership import Anomaly, Assignment, Balance, Delta
from kafka_rebalance.group.spec import GroupSpec

if TYPE_CHECKING:
    from kafka_rebalance.plans.changes import (
        AddMembers,
        AddPartitions,
        AddTopics,
        BounceMembers,
        Change,
        RemoveMembers,
        RemoveTopics,
        Resubscribe,
        SwitchAssignor,
        apply,
        change_from_text,
    )
    from kafka_rebalance.plans.comparison import Candidate, Comparison, compare
    from kafka_rebalance.plans.explanation import explain
    from kafka_rebalance.plans.figures import Figures
    from kafka_rebalance.plans.never_ends import Endless, WayOut, endless
    from kafka_rebalance.plans.possible import Level, Possible, best_possible
    from kafka_rebalance.plans.rebalance_plan import RebalancePlan, Step, plan
    from kafka_rebalance.plans.rounds import Round
    from kafka_rebalance.plans.samples import Samples, sample

__version__: str = _core.VERSION

_LATER = {
    "AddMembers": "plans.changes",
    "AddPartitions": "plans.changes",
    "AddTopics": "plans.changes",
    "BounceMembers": "plans.changes",
    "Change": "plans.changes",
    "RemoveMembers": "plans.changes",
    "RemoveTopics": "plans.changes",
    "Resubscribe": "plans.changes",
    "SwitchAssignor": "plans.changes",
    "apply": "plans.changes",
    "change_from_text": "plans.changes",
    "Candidate": "plans",
    "Comparison": "plans",
    "Endless": "plans",
    "Figures": "plans",
    "RebalancePlan": "plans",
    "Round": "plans",
    "Samples": "plans",
    "Step": "plans",
    "WayOut": "plans",
    "compare": "plans",
    "endless": "plans",
    "explain": "plans",
    "plan": "plans",
    "sample": "plans",
    "Level": "plans.possible",
    "Possible": "plans.possible",
    "best_possible": "plans.possible",
}
"""What only plans need is imported when it is first asked for: assigning starts without."""


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "MAX_PARTITIONS",
    "AddMembers",
    "AddPartitions",
    "AddTopics",
    "Anomaly",
    "Assignment",
    "Assignor",
    "AssignorThrows",
    "Balance",
    "BounceMembers",
    "Candidate",
    "Change",
    "Comparison",
    "CooperativeSticky",
    "Delta",
    "Endless",
    "Figures",
    "GroupError",
    "GroupSpec",
    "KafkaRebalanceError",
    "Level",
    "Member",
    "MissingExtra",
    "NeverEnds",
    "NotAffected",
    "Possible",
    "Range",
    "RebalancePlan",
    "RebalanceProtocol",
    "RemoveMembers",
    "RemoveTopics",
    "Resubscribe",
    "Round",
    "RoundRobin",
    "Samples",
    "Step",
    "Sticky",
    "SwitchAssignor",
    "Topic",
    "TopicPartition",
    "WayOut",
    "WireError",
    "apply",
    "assign",
    "assign_batch",
    "assignor_names",
    "best_possible",
    "change_from_text",
    "compare",
    "endless",
    "explain",
    "plan",
    "plan_batch",
    "register",
    "sample",
    "unregister",
    "validate_cooperative",
]
