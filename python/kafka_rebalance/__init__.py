"""Predict, plan and run Kafka rebalances: what Apache Kafka computes, partition for partition.

group = GroupSpec.from_json(line)
result = assign(group, "cooperative-sticky")
"""

from kafka_rebalance.errors import (
    AssignorThrows,
    GroupError,
    KafkaRebalanceError,
    MissingExtra,
    WireError,
)
from kafka_rebalance.model import MAX_PARTITIONS, GroupSpec, Member, Topic, TopicPartition
from kafka_rebalance.ownership import Anomaly, Assignment, Balance, Delta

from kafka_rebalance.assignors import (  # isort: skip (after the nouns)
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
from kafka_rebalance.batch import assign_batch, plan_batch
from kafka_rebalance.changes import (
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
from kafka_rebalance.plans import (
    Candidate,
    Comparison,
    Figures,
    RebalancePlan,
    Round,
    Samples,
    Step,
    compare,
    explain,
    plan,
    sample,
)
from kafka_rebalance.possible import Level, Possible, best_possible

__version__ = "0.1.0"

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
    "Figures",
    "GroupError",
    "GroupSpec",
    "KafkaRebalanceError",
    "Level",
    "Member",
    "MissingExtra",
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
    "WireError",
    "apply",
    "assign",
    "assign_batch",
    "assignor_names",
    "best_possible",
    "change_from_text",
    "compare",
    "explain",
    "plan",
    "plan_batch",
    "register",
    "sample",
    "unregister",
    "validate_cooperative",
]
