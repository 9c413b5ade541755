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
from kafka_rebalance.batch import assign_batch

__version__ = "0.1.0"

__all__ = [
    "MAX_PARTITIONS",
    "Anomaly",
    "Assignment",
    "Assignor",
    "AssignorThrows",
    "Balance",
    "CooperativeSticky",
    "Delta",
    "GroupError",
    "GroupSpec",
    "KafkaRebalanceError",
    "Member",
    "MissingExtra",
    "Range",
    "RebalanceProtocol",
    "RoundRobin",
    "Sticky",
    "Topic",
    "TopicPartition",
    "WireError",
    "assign",
    "assign_batch",
    "assignor_names",
    "register",
    "unregister",
    "validate_cooperative",
]
