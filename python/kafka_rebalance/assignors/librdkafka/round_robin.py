# SPDX-License-Identifier: Apache-2.0
"""librdkafka's round-robin: assigns all partitions, one after another, to the members in turn.

1. The members form a circle in the order of `by_instance`. Topics are sorted by name.
2. Each partition goes to the next member of the circle that subscribes to its topic.

Order    members by `by_instance`; topics by the bytes of their names.
Cost     that of Kafka's round-robin.
Errors   none.
Ignores  racks.
Source   librdkafka 2.16 (rd_kafka_roundrobin_assignor_assign_cb).
Differs  from Kafka's: static members do not come before dynamic members in the circle.
"""

from kafka_rebalance.assignors.classic.round_robin import deal
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.spec import GroupSpec

from .subscriptions import by_instance, members_with_topics, name_bytes


def assign(group: GroupSpec) -> dict[str, list[TopicPartition]]:
    # 1.
    circle = by_instance(members_with_topics(group))
    topics = sorted(group.partition_counts(), key=name_bytes)
    # 2.
    return deal(group, circle, topics)
