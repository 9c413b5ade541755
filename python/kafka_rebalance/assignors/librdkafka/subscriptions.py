# SPDX-License-Identifier: Apache-2.0
"""The orders in which a librdkafka leader sees members and topics.

The leader ignores a member with an empty subscription: it gets nothing, and its claims do not
count. The others are in the order of the JoinGroup response; topics are in the order of the
Metadata response. Names are compared by their UTF-8 bytes.

Source   librdkafka 2.16 (rd_kafka_group_member_cmp, rd_list_sort).
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

from kafka_rebalance.group.model import Member, Topic, TopicPartition
from kafka_rebalance.group.spec import GroupSpec

T = TypeVar("T")


def name_bytes(name: str) -> bytes:
    """Returns a sort key for librdkafka's order of names."""
    return name.encode()


def members_with_topics(group: GroupSpec) -> list[Member]:
    """Returns the members that a librdkafka leader knows (with topics), in the group's order."""
    return [member for member in group.members if member.topics]


def subscribers_of(group: GroupSpec) -> dict[str, list[Member]]:
    """Returns topic -> its subscribers; topics without partitions or subscribers are left out.

    Topics and members are in the group's order.
    """
    listed = [(member, frozenset(member.topics)) for member in members_with_topics(group)]
    found = {
        topic: [member for member, topics in listed if topic in topics]
        for topic in group.partition_counts()
    }
    return {topic: members for topic, members in found.items() if members}


def topics_by_name(group: GroupSpec) -> dict[str, Topic]:
    return {topic.name: topic for topic in group.topics}


def compare_by_instance(a: Member, b: Member) -> int:
    """Compares instance ids if both members have one, else member ids; not a transitive order."""
    if a.group_instance_id is not None and b.group_instance_id is not None:
        return _compare(name_bytes(a.group_instance_id), name_bytes(b.group_instance_id))
    return _compare(name_bytes(a.member_id), name_bytes(b.member_id))


def by_instance(members: Iterable[Member]) -> list[Member]:
    """Returns the members in the order in which librdkafka sorts them."""
    return merge_sort(list(members), compare_by_instance)


def merge_sort(items: list[T], compare: Callable[[T, T], int]) -> list[T]:
    """Sorts by merging, as glibc's `qsort` does.

    If `compare` is not transitive, the result depends on this algorithm.
    """
    if len(items) < 2:
        return items
    middle = len(items) // 2
    left = merge_sort(items[:middle], compare)
    right = merge_sort(items[middle:], compare)
    merged: list[T] = []
    i = j = 0
    while i < len(left) and j < len(right):
        if compare(left[i], right[j]) <= 0:
            merged.append(left[i])
            i += 1
        else:
            merged.append(right[j])
            j += 1
    return merged + left[i:] + right[j:]


def reported(partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Returns partitions in the order in which their new owner will claim them."""
    return sorted(partitions, key=lambda tp: (name_bytes(tp.topic), tp.partition))


def _compare(a: bytes, b: bytes) -> int:
    return (a > b) - (a < b)
