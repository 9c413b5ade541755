# SPDX-License-Identifier: Apache-2.0
"""The brokers' assignor `consumer/uniform`: members get nearly equal numbers; few partitions move.

1. A homogeneous group, whose members subscribe to the same topics: `homogeneous.py`.
2. Any other group: `heterogeneous.py`.

Errors   those of `view_of`; AssignorThrows where Kafka's class throws.
Ignores  racks.
Source   org.apache.kafka.coordinator.group.assignor.UniformAssignor (Kafka 4.4.0); KIP-848.
"""

from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.spec import GroupSpec

from . import heterogeneous, homogeneous
from .targets import view_of

NAME = "consumer/uniform"


def assign(group: GroupSpec) -> dict[str, list[TopicPartition]]:
    view = view_of(group, NAME)
    steps = homogeneous if view.homogeneous else heterogeneous
    return view.answer(steps.assign(view, NAME))
