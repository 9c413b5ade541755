# SPDX-License-Identifier: Apache-2.0
"""Range: assigns contiguous runs of each topic's partitions to the sorted subscribers.

Each topic is assigned by itself, so the first members get the extra partitions of every topic, and
the skew grows with the number of topics. With racks, partitions go first to members in the rack of
a replica, as far as the members' shares allow.

1. The topics are visited in the order of a Java hash map. The subscribers of a topic are in the
   order of `static_first`.
2. Rack pass, if racks make a difference for any topic. Topics are co-partitioned if they have equal
   subscribers and equal numbers of partitions: their partitions of equal number go together to the
   first subscriber whose rack matches all of them and who has room in each topic. In any other
   topic for which racks make a difference, each member in order takes the first partitions that
   match its rack. (A member without a rack matches every partition.)
3. Each member in order takes the first unassigned partitions of the topic, up to its share.
4. After a rack pass, every list is sorted by topic and partition.

Order    members by `static_first`; topics by `java_hash_order`, visible only without a rack pass.
Cost     O(P + S log S): P partitions, S subscriptions; with racks O(P * members).
Errors   none, even for a topic without metadata: it is skipped.
Source   org.apache.kafka.clients.consumer.RangeAssignor (Kafka 4.4.0); rack pass: KIP-881.
Differs  nowhere.

>>> from kafka_rebalance import GroupSpec, Member, Topic, assign
>>> group = GroupSpec(
...     "g",
...     topics=(Topic("t0", 3), Topic("t1", 3)),
...     members=(Member("C0", ("t0", "t1")), Member("C1", ("t0", "t1"))),
... )
>>> print(assign(group, "range", engine="reference"))
C0: t0[0, 1] t1[0, 1]
C1: t0[2] t1[2]
"""

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice

from kafka_rebalance.group.model import Member, TopicPartition, static_first
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.java.order import name_key

from .racks import racks_matter, replica_racks
from .subscriptions import members_in_order, topics_in_order


def assign(group: GroupSpec) -> dict[str, list[TopicPartition]]:
    # 1.
    topics = topic_shares(group)
    assignment: dict[str, list[TopicPartition]] = {m.member_id: [] for m in group.members}
    # 2.
    rack_pass = any(topic.needs_racks for topic in topics)
    if rack_pass:
        assign_with_racks(topics, assignment)
    # 3.
    for topic in topics:
        assign_ranges(topic, lambda _member, _partition: True, assignment)
    # 4.
    if rack_pass:
        for partitions in assignment.values():
            partitions.sort(key=lambda tp: (name_key(tp.topic), tp.partition))
    return assignment


@dataclass(eq=False)
class TopicShare:
    """The state of one topic: its sorted subscribers, and its unassigned partitions."""

    name: str
    subscribers: list[Member]
    partition_racks: list[frozenset[str]]  # by partition; empty if no subscriber has a rack
    needs_racks: bool
    unassigned: deque[int]
    share: int  # the number of partitions that every member takes
    extras: int  # how many members may still take one more partition
    taken: dict[str, int] = field(default_factory=lambda: defaultdict(int))  # by member

    def partitioned_as(self) -> object:
        """Returns a key that is equal for co-partitioned topics.

        The last part of the key is the number of partitions, or 0 if no subscriber has a rack.
        """
        racks = tuple((member.member_id, member.rack) for member in self.subscribers)
        return racks, len(self.partition_racks)

    def room(self, member: Member) -> int:
        """Returns how many partitions the member may still take."""
        return max(0, self.share + (self.extras > 0) - self.taken[member.member_id])

    def rack_matches(self, member: Member, partition: int) -> bool:
        if member.rack is None:
            return True
        return (
            partition < len(self.partition_racks) and member.rack in self.partition_racks[partition]
        )

    def take(
        self, member: Member, partitions: list[int], into: dict[str, list[TopicPartition]]
    ) -> None:
        into[member.member_id].extend(TopicPartition(self.name, p) for p in partitions)
        self.taken[member.member_id] += len(partitions)
        if self.taken[member.member_id] > self.share:
            self.extras -= 1
        for partition in partitions:
            self.unassigned.remove(partition)  # without racks, it is the first: fast


def topic_shares(group: GroupSpec) -> list[TopicShare]:
    topics = {topic.name: topic for topic in group.topics}
    members = static_first(members_in_order(group))
    shares = []
    for name in topics_in_order(group):
        topic = topics[name]
        subscribers = [member for member in members if name in member.topics]
        member_racks = {member.rack for member in subscribers if member.rack is not None}
        racks = replica_racks(topic) if member_racks else []
        shares.append(
            TopicShare(
                name,
                subscribers,
                racks,
                racks_matter(member_racks, racks),
                deque(range(topic.partitions)),
                *divmod(topic.partitions, len(subscribers)),
            )
        )
    return shares


def assign_with_racks(
    topics: list[TopicShare], assignment: dict[str, list[TopicPartition]]
) -> None:
    together: dict[object, list[TopicShare]] = defaultdict(list)
    for topic in topics:
        together[topic.partitioned_as()].append(topic)
    for group in together.values():
        if len(group) > 1:
            assign_co_partitioned(group, group[0].subscribers, assignment)
        elif group[0].needs_racks:
            assign_ranges(group[0], group[0].rack_matches, assignment)


def assign_co_partitioned(
    topics: list[TopicShare], members: list[Member], assignment: dict[str, list[TopicPartition]]
) -> None:
    """Gives the topics' partitions with one number to a member with room whose rack matches."""
    waiting = list(members)
    for partition in range(len(topics[0].partition_racks)):
        for member in waiting:
            if all(t.rack_matches(member, partition) and t.room(member) for t in topics):
                for topic in topics:
                    topic.take(member, [partition], assignment)
                if not any(topic.room(member) for topic in topics):
                    waiting.remove(member)
                break


def assign_ranges(
    topic: TopicShare,
    may_take: Callable[[Member, int], bool],
    assignment: dict[str, list[TopicPartition]],
) -> None:
    for member in topic.subscribers:
        allowed = (p for p in topic.unassigned if may_take(member, p))
        if run := list(islice(allowed, topic.room(member))):
            topic.take(member, run, assignment)
