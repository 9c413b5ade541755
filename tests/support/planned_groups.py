# SPDX-License-Identifier: Apache-2.0
"""Groups for the tests of plans: a settled pair of members, and the shipped sample by group id."""

from __future__ import annotations

from typing import Any

from kafka_rebalance import GroupError, GroupSpec, Member, Topic, TopicPartition
from kafka_rebalance.data import captured_lines

TPS = [TopicPartition("t", p) for p in range(6)]


def pair(assignor: str, **fields: Any) -> GroupSpec:
    """Makes a group of two members with three partitions each, in generation 7."""
    return GroupSpec(
        "g",
        (Topic("t", 6),),
        (
            Member("a", ("t",), owned_partitions=tuple(TPS[:3]), generation_id=7, **fields),
            Member("b", ("t",), owned_partitions=tuple(TPS[3:]), generation_id=7),
        ),
        assignor,
    )


def captured() -> dict[str, GroupSpec]:
    groups = {}
    for line in captured_lines():
        try:
            group = GroupSpec.from_json(line)
        except GroupError:
            continue
        groups[group.group_id] = group
    return groups
