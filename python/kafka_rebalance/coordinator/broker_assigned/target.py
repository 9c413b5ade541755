# SPDX-License-Identifier: Apache-2.0
"""Targets of groups whose broker assigns partitions: in memory, and as an assignor reads them.

Source   TargetAssignmentBuilder (Kafka 4.4.0).
"""

from collections.abc import Iterable, Mapping
from typing import Any

from kafka_rebalance.assignors.consumer import targets
from kafka_rebalance.java.hash_map import HashMap, HashSet, Uuid, integer_hash, uuid_hash
from kafka_rebalance.wire.broker_groups import DescribedPartitions

from ..machine.cluster import ClusterTopics
from ..machine.state import CoordinatorState

Target = Mapping[Uuid, tuple[int, ...]]
"""Partitions by topic id, in the order of Kafka's hash tables."""

NO_TARGET: Target = {}


def group_view(
    members: Iterable[targets.MemberView], cluster: ClusterTopics, is_homogeneous: bool
) -> targets.View:
    """Returns a group as an assignor reads it, with all topics of the cluster."""
    return targets.View(
        tuple(members),
        {topic: one.partitions for topic, one in cluster.by_id.items()},
        {topic: one.name for topic, one in cluster.by_id.items()},
        is_homogeneous,
    )


def target_in(answer: Mapping[str, HashMap[Uuid, Any]], member_id: str) -> Target:
    """Returns the target that an assignor computed for a member."""
    found = answer.get(member_id)
    return {} if found is None else {topic: tuple(numbers) for topic, numbers in found.items()}


def table_of(present: Target) -> targets.Target:
    """Returns a target in memory as an assignor reads it."""
    target: targets.Target = HashMap(uuid_hash)
    for topic, numbers in present.items():
        target.put(topic, HashSet.copied(integer_hash, numbers))
    return target


def has_changed(before: Target | None, new: Target) -> bool:
    """Returns whether a target needs a record; None: the member had none."""
    return before is None or _content(before) != _content(new)


def _content(target: Target) -> dict[Uuid, frozenset[int]]:
    return {topic: frozenset(numbers) for topic, numbers in target.items()}


def described_partitions(
    state: CoordinatorState, partitions: Mapping[Uuid, Iterable[int]]
) -> tuple[DescribedPartitions, ...]:
    """Returns the partitions of topics that exist."""
    known = state.cluster.by_id
    return tuple(
        DescribedPartitions(topic, known[topic].name, tuple(numbers))
        for topic, numbers in partitions.items()
        if topic in known
    )
