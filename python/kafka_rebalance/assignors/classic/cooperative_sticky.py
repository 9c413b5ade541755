# SPDX-License-Identifier: Apache-2.0
"""Cooperative sticky: assigns as sticky does, but withholds transferring partitions.

A partition is transferring if another member has to revoke it first. No member receives it until
the other one has revoked it and the group rebalances again.

1. Sticky's algorithm runs on the claims in the fields of the subscriptions.
2. If all subscriptions are equal, the constrained algorithm has recorded transferring partitions.
3. Else the transferring partitions are those that one member gains and another member revokes.
   For this step, all claims count, however old they are.
4. Each transferring partition is removed from the list of its new owner.

Cost     that of sticky.
Errors   AssignorThrows where Kafka's class throws.
Source   org.apache.kafka.clients.consumer.CooperativeStickyAssignor (Kafka 4.4.0); KIP-429.
Differs  this code answers as a new leader, which remembers no generation (see `sticky.py`).

>>> from kafka_rebalance import GroupSpec, Member, Topic, TopicPartition, assign
>>> t = "t"
>>> owned = lambda *partitions: tuple(TopicPartition(t, p) for p in partitions)
>>> group = GroupSpec(
...     "g",
...     topics=(Topic(t, 3),),
...     members=(
...         Member("C1", (t,), owned_partitions=owned(0, 1), generation_id=1),
...         Member("C2", (t,), owned_partitions=owned(2), generation_id=1),
...         Member("C3", (t,)),
...     ),
... )
>>> print(assign(group, "cooperative-sticky", engine="reference"))
C1: t[0]
C2: t[2]
C3:
"""

from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.spec import GroupSpec

from . import constrained, general
from .claims import Claims, sent_by_cooperative, settle

_NAME = "cooperative-sticky"


def assign(group: GroupSpec) -> dict[str, list[TopicPartition]]:
    # 1.
    claims = settle(group, {m.member_id: sent_by_cooperative(m) for m in group.members})
    # 2.
    if claims.equal_subscriptions:
        target = constrained.assign(_NAME, group, claims)
        assignment, transferring = target.assignment, target.transferring
    # 3.
    else:
        assignment = general.assign(_NAME, group, claims)
        transferring = _transferring(claims, assignment)
    # 4.
    for tp, member_id in transferring.items():
        assignment[member_id].remove(tp)
    return assignment


def _transferring(
    claims: Claims, assignment: dict[str, list[TopicPartition]]
) -> dict[TopicPartition, str]:
    added: dict[TopicPartition, str] = {}
    revoked: set[TopicPartition] = set()
    for member_id, assigned in assignment.items():
        owned = set(claims.sent[member_id].partitions)
        added.update((tp, member_id) for tp in assigned if tp not in owned)
        revoked |= owned.difference(assigned)
    return {tp: member_id for tp, member_id in added.items() if tp in revoked}
