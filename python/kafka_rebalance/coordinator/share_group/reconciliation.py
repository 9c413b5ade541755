# SPDX-License-Identifier: Apache-2.0
"""Moves one member to its target, at its heartbeat, in one step.

The member enters the target's epoch with all partitions of the target whose topics it subscribes
to. If it is in that epoch already, and the request makes a new epoch of the group, its partitions
are selected again. Other members do not matter, because partitions are shared.

Source   ShareGroupAssignmentBuilder (Kafka 4.4.0).
"""

from collections.abc import Collection
from dataclasses import replace

from kafka_rebalance.java.hash_map import HashMap, Uuid, uuid_hash

from ..consumer_group.group import Target
from ..consumer_group.member import ReconciliationState
from ..consumer_group.table_order import copied_map_slots
from .member import Partitions, ShareGroupMember


def share_step(
    member: ShareGroupMember,
    epoch: int,
    target: Target,
    topics: Collection[Uuid],
    *,
    is_new_epoch: bool,
) -> ShareGroupMember:
    """Returns the member's next state; `topics` has the ids to which it subscribes."""
    if epoch != member.member_epoch:
        return replace(
            member,
            state=ReconciliationState.STABLE,
            assigned=_selected(target, topics),
            member_epoch=epoch,
            previous_member_epoch=member.member_epoch,
        )
    if is_new_epoch:
        return replace(member, assigned=_selected(target, topics))
    return member


def _selected(target: Target, topics: Collection[Uuid]) -> Partitions:
    """Returns the target's partitions of these topics; a table with fewer topics is a copy."""
    partitions = {topic: dict.fromkeys(numbers) for topic, numbers in target.items()}
    if all(topic in topics for topic in partitions):
        return partitions
    table = HashMap[Uuid, None](uuid_hash, copied_map_slots(len(partitions)))
    for topic in partitions:
        table.put(topic, None)
    return {topic: partitions[topic] for topic in table if topic in topics}
