# SPDX-License-Identifier: Apache-2.0
"""Round-robin: assigns all partitions, one after another, to the members in turn.

1. The members form a circle, static members first. Partitions are sorted by topic, then number.
2. Each partition goes to the next member of the circle that subscribes to its topic. The circle
   does not start anew with a topic: the search goes on behind the last member.

Order    members by static_first; topics by_name.
Cost     O(P * members) at worst, O(P) when all subscribe to the same topics.
Errors   none for a group with members; racks are ignored.
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

from itertools import cycle

from kafka_rebalance.group.model import TopicPartition, static_first
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.java.order import by_name

from .subscriptions import members_in_order


def assign(group: GroupSpec) -> dict[str, list[TopicPartition]]:
    counts = group.partition_counts()
    assignment: dict[str, list[TopicPartition]] = {m.member_id: [] for m in group.members}
    # 1.
    members = static_first(members_in_order(group))
    circle = cycle((member.member_id, set(member.topics)) for member in members)
    subscribed = {topic for member in members for topic in member.topics}
    # 2.
    for topic in by_name(subscribed & counts.keys()):
        for partition in range(counts[topic]):
            member_id = next(member_id for member_id, topics in circle if topic in topics)
            assignment[member_id].append(TopicPartition(topic, partition))
    return assignment
