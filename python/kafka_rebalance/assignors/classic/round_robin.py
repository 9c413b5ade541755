# SPDX-License-Identifier: Apache-2.0
"""Round-robin: assigns all partitions, one after another, to the members in turn.

1. The members form a circle, static members first. Partitions are sorted by topic, then number.
2. Each partition goes to the next member of the circle that subscribes to its topic. The circle
   does not start again with each topic: the search continues after the member that was last chosen.

Order    members by `static_first`; topics by name.
Cost     O(P * members) at worst, O(P) when all subscribe to the same topics.
Errors   none for a group with members.
Ignores  racks.
Source   org.apache.kafka.clients.consumer.RoundRobinAssignor (Kafka 4.4.0).
Differs  nowhere.

>>> from kafka_rebalance import GroupSpec, Member, Topic, assign
>>> group = GroupSpec(
...     "g",
...     topics=(Topic("t0", 3), Topic("t1", 3)),
...     members=(Member("C0", ("t0", "t1")), Member("C1", ("t0", "t1"))),
... )
>>> print(assign(group, "roundrobin", engine="reference"))
C0: t0[0, 2] t1[1]
C1: t0[1] t1[0, 2]
"""

from collections.abc import Sequence
from itertools import cycle

from kafka_rebalance.group.model import Member, TopicPartition, static_first
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.java.order import by_name

from .subscriptions import members_in_order


def assign(group: GroupSpec) -> dict[str, list[TopicPartition]]:
    # 1.
    members = static_first(members_in_order(group))
    # 2.
    return deal(group, members, by_name(group.partition_counts()))


def deal(
    group: GroupSpec, members: Sequence[Member], topics: Sequence[str]
) -> dict[str, list[TopicPartition]]:
    """Assigns the topics' partitions to their subscribers, in the circle of `members`."""
    counts = group.partition_counts()
    assignment: dict[str, list[TopicPartition]] = {m.member_id: [] for m in group.members}
    circle = cycle((member.member_id, frozenset(member.topics)) for member in members)
    subscribed = {topic for member in members for topic in member.topics}
    for topic in topics:
        for partition in range(counts[topic] if topic in subscribed else 0):
            member_id = next(member_id for member_id, listed in circle if topic in listed)
            assignment[member_id].append(TopicPartition(topic, partition))
    return assignment
