# SPDX-License-Identifier: Apache-2.0
"""The orders in which a leader sees members and topics.

Java's encoder sorts the topics of a subscription by name. If a member has a `subscription_version`,
its topics are already in the order of the member's bytes. The leader puts all members into a hash
map.

Source   ConsumerProtocol.serializeSubscription, AbstractPartitionAssignor.assign (Kafka 4.4.0).
"""

from collections.abc import Sequence

from kafka_rebalance.group.model import Member
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.java.order import by_name, java_hash_order


def members_in_order(group: GroupSpec) -> list[Member]:
    """Returns members in the order of the leader's HashMap; the leader fills it in join order."""
    members = {member.member_id: member for member in group.members}
    return [members[member_id] for member_id in java_hash_order(list(members))]


def topics_as_sent(member: Member) -> Sequence[str]:
    """Returns a member's topics in the order of the bytes that it sent."""
    return by_name(member.topics) if member.subscription_version is None else member.topics


def topics_in_order(group: GroupSpec) -> list[str]:
    """Returns subscribed topics that have partitions, in the order of the leader's HashMap.

    The leader fills a HashSet with all subscribed topics. In the order of that set, it then fills a
    HashMap with the topics that have metadata.
    """
    counts = group.partition_counts()
    subscribed = [topic for member in members_in_order(group) for topic in topics_as_sent(member)]
    return java_hash_order([topic for topic in java_hash_order(subscribed) if topic in counts])
