# SPDX-License-Identifier: Apache-2.0
"""The brokers' assignor `consumer/uniform`: members get nearly equal numbers; few partitions move.

1. A homogeneous group, whose members subscribe to the same topics: `homogeneous.py`.
2. Any other group: `heterogeneous.py`.

Errors   those of `view_of` (`targets.py`); AssignorThrows where Kafka's class throws.
Ignores  racks.
Source   org.apache.kafka.coordinator.group.assignor.UniformAssignor (Kafka 4.4.0); KIP-848.
"""

from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec

from . import heterogeneous, homogeneous
from .targets import Target, View, view_of

NAME = "consumer/uniform"


def assign(group: GroupSpec) -> Assignment:
    view = view_of(group, NAME)
    return view.answer(targets_of(view))


def targets_of(view: View) -> dict[str, Target]:
    if view.homogeneous:
        return homogeneous.assign(view, NAME)
    return heterogeneous.assign(view, NAME)
