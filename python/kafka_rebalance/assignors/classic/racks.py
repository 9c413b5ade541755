# SPDX-License-Identifier: Apache-2.0
"""Racks of members and replicas, as the sticky assignors use them (KIP-881).

Racks are active if some member has a rack, some replica is in one of the members' racks, and not
every partition has replicas in all racks; else they are ignored.

Source   AbstractStickyAssignor.RackInfo, AbstractPartitionAssignor.useRackAwareAssignment.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.spec import GroupSpec

from .claims import Claims


@dataclass(frozen=True, slots=True)
class Racks:
    """The racks that the sticky assignors use; the maps are empty if racks are not active."""

    of_member: dict[str, str]
    of_partition: dict[TopicPartition, frozenset[str]]
    members_near: dict[TopicPartition, int]  # how many members are in a rack with a replica

    @classmethod
    def of(cls, group: GroupSpec, claims: Claims) -> "Racks":
        of_member = {m.member_id: m.rack for m in claims.members if m.rack is not None}
        if not of_member:
            return cls({}, {}, {})
        of_partition: dict[TopicPartition, frozenset[str]] = {}
        for topic in group.topics:
            if topic.name in claims.counts:
                for p, replicas in enumerate(topic.racks or ((),) * topic.partitions):
                    racks = frozenset(rack for rack in replicas if rack is not None)
                    of_partition[TopicPartition(topic.name, p)] = racks
        everywhere = frozenset[str]().union(*of_partition.values())
        if everywhere.isdisjoint(of_member.values()) or all(
            racks == everywhere for racks in of_partition.values()
        ):
            return cls({}, {}, {})
        sizes = Counter(of_member.values())
        near = {tp: sum(sizes[rack] for rack in racks) for tp, racks in of_partition.items()}
        return cls(of_member, of_partition, near)

    def active(self) -> bool:
        return bool(self.of_member)

    def mismatch(self, member_id: str, tp: TopicPartition) -> bool:
        """Returns whether the member has a rack and no replica of the partition is in it."""
        rack = self.of_member.get(member_id)
        return rack is not None and rack not in self.of_partition.get(tp, ())

    def next_near(self, tp: TopicPartition, member_ids: Sequence[str], start: int) -> int | None:
        """Returns the position of the first member near the partition, in a circle from `start`."""
        racks = self.of_partition[tp]
        for i in range(len(member_ids)):
            at = (start + i) % len(member_ids)
            if self.of_member.get(member_ids[at]) in racks:
                return at
        return None
