# SPDX-License-Identifier: Apache-2.0
"""A group as an assignor in the broker sees it: members, topic ids, and the target of each member.

1. Members are in the order of a default `HashMap` that is filled in the group's order.
2. The names to which a member subscribes are in the order of a copied `HashSet`; its topics are the
   ids of those names, in this order. A name without a topic has no id.
3. The group is homogeneous if all members subscribe to the same names.
4. The present target of a member is its `owned_partitions`: a default `HashMap` from topic id to a
   copied `HashSet` of partitions, in the order of the target's record. A topic stays in the map
   with an empty set after its last partition was taken away.

Errors   GroupError if a topic has no `topic_id`, or a member owns partitions of an unknown topic.
Source   TargetAssignmentBuilder, TopicIds, Assignment.fromRecord, ModernGroup.subscriptionType,
         AssignorHelpers (Kafka 4.4.0); KIP-848.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from kafka_rebalance.errors import GroupError
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.model import Member, TopicPartition, quoted, uuid_of
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.java.hash_map import (
    HashMap,
    HashSet,
    Uuid,
    integer_hash,
    slots_for,
    uuid_hash,
)
from kafka_rebalance.java.order import java_hash_order, java_set_order

Target = HashMap[Uuid, HashSet[int]]
"""The partitions of one member, by topic id."""


class MemberView(Frozen):
    """A member as the assignor sees it. `names` is the number of names to which it subscribes,
    `topics` are the ids of those that have partitions; `target` is its present target.
    """

    member: Member
    names: int
    topics: tuple[Uuid, ...]
    target: Target


class View(Frozen):
    """A group as the assignor sees it. `counts` (numbers of partitions) contains only topics with
    partitions; `names` also contains deleted topics.
    """

    members: tuple[MemberView, ...]
    counts: dict[Uuid, int]
    names: dict[Uuid, str]
    homogeneous: bool

    def answer(self, targets: Mapping[str, HashMap[Uuid, Any]]) -> Assignment:
        """Returns the targets in the order of their records; a member without one gets nothing."""
        answer: dict[str, list[TopicPartition]] = {m.member.member_id: [] for m in self.members}
        topics = {}
        for member_id, target in targets.items():
            for topic, partitions in target.items():
                answer[member_id].extend(TopicPartition(self.names[topic], p) for p in partitions)
            if not all(len(partitions) for _, partitions in target.items()):
                topics[member_id] = tuple(self.names[topic] for topic, _ in target.items())
        return Assignment.of(answer, owned_topics=topics)


def view_of(group: GroupSpec, assignor: str) -> View:
    uuids = uuids_of(group, assignor)
    with_partitions = group.partition_counts()
    counts = {uuids[name]: count for name, count in with_partitions.items()}
    # 1.
    by_id = {member.member_id: member for member in group.members}
    members = [by_id[member_id] for member_id in java_hash_order(list(by_id))]
    # 2. and 4.
    subscribers = []
    for member in members:
        names = java_set_order(member.topics)
        topics = tuple(uuids[name] for name in names if name in with_partitions)
        subscribers.append(MemberView(member, len(names), topics, _target(member, uuids)))
    # 3.
    subscribed = Counter(name for member in members for name in set(member.topics))
    homogeneous = all(count == len(members) for count in subscribed.values())
    by_uuid = {uuid: name for name, uuid in uuids.items()}
    return View(tuple(subscribers), counts, by_uuid, homogeneous)


def copied(target: Target) -> Target:
    """Returns a copy for an assignor to change; as in Kafka, the copy may have another order."""
    new: Target = HashMap(uuid_hash, slots_for(len(target)))
    for topic, partitions in target.items():
        new.put(topic, HashSet.copied(integer_hash, partitions))
    return new


def empty_set() -> HashSet[int]:
    return HashSet(integer_hash)


def uuids_of(group: GroupSpec, assignor: str) -> dict[str, Uuid]:
    """Returns topic name -> id. Errors: those of this module; the text names `assignor`."""
    uuids: dict[str, Uuid] = {}
    for i, topic in enumerate(group.topics):
        if topic.topic_id is None:
            problem = f"missing; {assignor} reads it, and kafka-topics.sh --describe shows it"
            raise GroupError(f"topics[{i}].topic_id", problem)
        uuids[topic.name] = uuid_of(topic.topic_id)
    for i, member in enumerate(group.members):
        for owned in (*member.owned_topics, *(topic for topic, _ in member.owned_partitions)):
            if owned not in uuids:
                raise GroupError(
                    f"members[{i}].owned_partitions",
                    f"{quoted(owned)} is not a topic of the group; "
                    "if it was deleted, give its topic_id with it",
                )
    return uuids


def _target(member: Member, uuids: Mapping[str, Uuid]) -> Target:
    lists: dict[str, list[int]] = {topic: [] for topic in member.owned_topics}
    for topic, partition in member.owned_partitions:
        lists.setdefault(topic, []).append(partition)
    target: Target = HashMap(uuid_hash)
    for topic, partitions in lists.items():
        target.put(uuids[topic], HashSet.copied(integer_hash, partitions))
    return target
