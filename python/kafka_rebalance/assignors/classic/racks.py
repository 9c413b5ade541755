# SPDX-License-Identifier: Apache-2.0
"""Racks of members and replicas, as the sticky assignors use them (KIP-881).

Racks are *active* if some replica is in the rack of a member, and some partition lacks a replica in
a rack that has replicas. If racks are not active, they are ignored.

Source   AbstractStickyAssignor.RackInfo, AbstractPartitionAssignor.useRackAwareAssignment.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet

from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.model import Topic, TopicPartition
from kafka_rebalance.group.spec import GroupSpec

from .claims import Claims


def replica_racks(topic: Topic) -> list[frozenset[str]]:
    replicas = topic.racks or ((),) * topic.partitions
    return [frozenset(rack for rack in racks if rack is not None) for racks in replicas]


def racks_matter(of_members: Iterable[str], of_partitions: Collection[AbstractSet[str]]) -> bool:
    """Returns whether racks affect the assignment; takes the racks of members and of replicas."""
    everywhere = frozenset[str]().union(*of_partitions)
    return not everywhere.isdisjoint(of_members) and any(r != everywhere for r in of_partitions)


class Racks(Frozen):
    """The racks of a group; all maps are empty if racks do not affect the assignment."""

    of_member: dict[str, str]
    of_partition: dict[TopicPartition, frozenset[str]]
    members_near: dict[TopicPartition, int]  # number of members whose rack has a replica

    @classmethod
    def of(cls, group: GroupSpec, claims: Claims) -> "Racks":
        of_member = {m.member_id: m.rack for m in claims.members if m.rack is not None}
        if not of_member:
            return cls({}, {}, {})
        of_partition = {
            TopicPartition(topic.name, p): racks
            for topic in group.topics
            if topic.name in claims.counts
            for p, racks in enumerate(replica_racks(topic))
        }
        if not racks_matter(of_member.values(), of_partition.values()):
            return cls({}, {}, {})
        sizes = Counter(of_member.values())
        near = {tp: sum(sizes[rack] for rack in racks) for tp, racks in of_partition.items()}
        return cls(of_member, of_partition, near)

    def active(self) -> bool:
        return bool(self.of_member)

    def mismatch(self, member_id: str, tp: TopicPartition) -> bool:
        """Returns whether the member has a rack without a replica of the partition."""
        rack = self.of_member.get(member_id)
        return rack is not None and rack not in self.of_partition.get(tp, ())

    def next_near(self, tp: TopicPartition, member_ids: Sequence[str], start: int) -> int | None:
        """Returns the index of the first member near the partition, in a circle from `start` on;
        None if no member is near it.
        """
        racks = self.of_partition[tp]
        for i in range(len(member_ids)):
            at = (start + i) % len(member_ids)
            if self.of_member.get(member_ids[at]) in racks:
                return at
        return None
