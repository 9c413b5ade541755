# SPDX-License-Identifier: Apache-2.0
"""librdkafka's cooperative sticky: assigns with `general`, but withholds moving partitions.

1. `general` assigns. In this file, a partition's *owner* is the last member that claims it: all
   claims count, however old they are.
2. If `general` assigned a partition to its owner, the owner gets it; if to another member, no
   member gets it in this round.
3. A partition without an owner goes to the member to which `general` assigned it.
4. A partition that `general` assigned to no member (it no longer exists, or its topic has no
   subscriber) goes back to its owner.

Quirk    step 2 treats two members with equal instance ids as one; the owner gets the partition.
Cost     that of `general`.
Errors   AssignorThrows where the leader's process crashes; NeverEnds.
Source   librdkafka 2.16 (rd_kafka_sticky_assignor_assign_cb,
         rd_kafka_cooperative_protocol_adjustment).
Differs  from Kafka's in nearly all steps: docs/behaviour/librdkafka.md.
"""

from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.spec import GroupSpec

from . import general
from .claims import settle
from .movements import dies
from .subscriptions import compare_by_instance, members_with_topics


def assign(group: GroupSpec) -> dict[str, list[TopicPartition]]:
    members = {member.member_id: member for member in members_with_topics(group)}
    answer: dict[str, list[TopicPartition]] = {m.member_id: [] for m in group.members}
    if not members:
        if group.members:
            raise dies("no member subscribes to a topic")
        return answer
    # 1.
    order = list(members.values())
    target = general.assign(group, order, settle(order))
    assigned = {tp: member for member in order for tp in target[member.member_id]}
    owner = {tp: member for member in order for tp in member.owned_partitions}
    # 2.
    for tp, member in assigned.items():
        if tp in owner and compare_by_instance(member, owner[tp]) == 0:
            answer[owner[tp].member_id].append(tp)
    # 3.
    for tp, member in assigned.items():
        if tp not in owner:
            answer[member.member_id].append(tp)
    # 4.
    for tp, member in owner.items():
        if tp not in assigned:
            answer[member.member_id].append(tp)
    return answer
