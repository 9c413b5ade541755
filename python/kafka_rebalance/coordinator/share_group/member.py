# SPDX-License-Identifier: Apache-2.0
"""A member of a share group, as the broker keeps it; an update makes a new member.

A member is STABLE at each step: it never waits for other members. Dicts have the iteration order of
Kafka's hash tables, and compare without order.

Source   ShareGroupMember.java, ModernGroupMember.java (Kafka 4.4.0).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kafka_rebalance.java.hash_map import Uuid

from ..consumer_group.member import Names, ReconciliationState

Partitions = Mapping[Uuid, Mapping[int, None]]
"""Partitions by topic id."""


@dataclass(frozen=True, slots=True)
class ShareGroupMember:
    """A member; its assigned partitions can be assigned to other members, too."""

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: ReconciliationState = ReconciliationState.STABLE
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: Names = field(default_factory=dict)
    assigned: Partitions = field(default_factory=dict)

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is ReconciliationState.STABLE and self.member_epoch == epoch
