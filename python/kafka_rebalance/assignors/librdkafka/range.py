# SPDX-License-Identifier: Apache-2.0
"""librdkafka's range: assigns runs of each topic's partitions to the sorted subscribers.

1. The subscribers of each topic are in the order of `by_instance`. Topics are sorted by the ids of
   their subscribers, then by the number of subscribers, then by the number of partitions.
   Neighbours that are equal in all three are co-partitioned.
2. If a topic is not co-partitioned and racks make a difference for it, each subscriber in order
   takes the first partitions that match its rack, up to its share. (A subscriber without a rack
   matches every partition.)
3. In co-partitioned topics, partitions with the same number go together to the first subscriber in
   whose rack each has a replica, and whose share is not used up in any of these topics.
4. In each topic, every subscriber in order takes the first unassigned partitions, up to its share.

Order    a member's list is in the order of assignment: steps 2 and 3 of all topics, then step 4.
Cost     in the core O(P + S log S): P partitions, S subscriptions; with racks O(P * members).
Errors   none, even for a topic without metadata: it is skipped.
Source   librdkafka 2.16 (rd_kafka_range_assignor_assign_cb); KIP-881.
Differs  from Kafka's in the order of subscribers and of the answer, and in step 3.
"""

from collections import deque
from itertools import groupby

from kafka_rebalance.assignors.classic.racks import racks_matter, replica_racks
from kafka_rebalance.assignors.classic.range import (
    TopicShare,
    assign_co_partitioned,
    assign_ranges,
)
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.spec import GroupSpec

from .subscriptions import by_instance, name_bytes, subscribers_of, topics_by_name


def assign(group: GroupSpec) -> dict[str, list[TopicPartition]]:
    # 1.
    topics = sorted(_topic_shares(group), key=_alike)
    assignment: dict[str, list[TopicPartition]] = {m.member_id: [] for m in group.members}
    for _, neighbours in groupby(topics, key=_alike):
        together = list(neighbours)
        # 3.
        if len(together) > 1:
            near = [member for member in together[0].subscribers if member.rack is not None]
            assign_co_partitioned(together, near, assignment)
        # 2.
        elif together[0].needs_racks:
            assign_ranges(together[0], together[0].rack_matches, assignment)
    # 4.
    for topic in topics:
        assign_ranges(topic, lambda _member, _partition: True, assignment)
    return assignment


def _topic_shares(group: GroupSpec) -> list[TopicShare]:
    topics = topics_by_name(group)
    shares = []
    for name, members in subscribers_of(group).items():
        partitions = topics[name].partitions
        racks = replica_racks(topics[name])
        shares.append(
            TopicShare(
                name,
                by_instance(members),
                racks,
                racks_matter({m.rack for m in members if m.rack is not None}, racks),
                deque(range(partitions)),
                *divmod(partitions, len(members)),
            )
        )
    return shares


def _alike(topic: TopicShare) -> tuple[list[bytes], int]:
    """Returns a key that is equal for co-partitioned topics; step 1 sorts by it."""
    ids = [name_bytes(member.member_id) for member in topic.subscribers]
    return ids, len(topic.partition_racks)
