# SPDX-License-Identifier: Apache-2.0
"""Sticky: members keep their partitions as far as the balance allows.

1. The claims of all members are settled (`claims.py`).
2. If all subscriptions are equal, the constrained algorithm assigns (`constrained.py`).
3. Else the general algorithm assigns (`general.py`).

Order    see the two algorithms.
Cost     see the two algorithms.
Errors   AssignorThrows where Kafka's class throws.
Source   org.apache.kafka.clients.consumer.StickyAssignor (Kafka 4.4.0); KIP-54, KIP-341, KIP-881.
Differs  Kafka's assignor object remembers the largest generation that it ever saw as a leader.
         This code answers as a new leader, which remembers none.

>>> from kafka_rebalance import GroupSpec, Member, Topic, assign
>>> topics = (Topic("t1", 1), Topic("t2", 2), Topic("t3", 2))
>>> members = (
...     Member("C1", ("t1",)),
...     Member("C2", ("t1", "t2")),
...     Member("C3", ("t1", "t2", "t3")),
... )
>>> print(assign(GroupSpec("g", topics, members), "sticky", engine="reference"))
C1: t1[0]
C2: t2[0, 1]
C3: t3[0, 1]
"""

from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.spec import GroupSpec

from . import constrained, general
from .claims import sent_by_sticky, settle


def assign(group: GroupSpec) -> dict[str, list[TopicPartition]]:
    # 1.
    claims = settle(group, {m.member_id: sent_by_sticky(m) for m in group.members})
    # 2.
    if claims.equal_subscriptions:
        return constrained.assign("sticky", group, claims).assignment
    # 3.
    return general.assign("sticky", group, claims)
