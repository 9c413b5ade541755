# SPDX-License-Identifier: Apache-2.0
"""Uniform for a group whose members all subscribe to the same topics.

1. The topics are those of the first member, in the order of a copied `HashSet`. The partitions that
   no member owns are unassigned, topic by topic.
2. Each of the M members in turn keeps what it owns of the T partitions, up to its quota: T / M, and
   an extra one while extra ones are left. It revokes the others, which are unassigned from then on.
   A member below its quota does without its extra one if the members after it are at least as many
   as the extra ones left, its own included. A member that is still below its quota is unfilled.
3. Each unfilled member in turn gets the next unassigned partitions, up to its quota.

Quirk    owned partitions that do not exist are kept, and count toward the quota.
Errors   Kafka's class throws if partitions are left unassigned, because members own some twice, or
         own some that do not exist.
Source   UniformHomogeneousAssignmentBuilder (Kafka 4.4.0).
"""

from collections.abc import Iterator

from kafka_rebalance.errors import AssignorThrows
from kafka_rebalance.java.hash_map import HashSet, Uuid, uuid_hash

from .targets import MemberView, Target, View, copied, empty_set

IdPartition = tuple[Uuid, int]


def assign(view: View, assignor: str) -> dict[str, Target]:
    # 1.
    first = view.members[0]
    topics: HashSet[Uuid] = HashSet.copied(uuid_hash, first.topics, first.names)
    if not len(topics):
        return {}
    owned = {
        (topic, partition)
        for one in view.members
        for topic, partitions in one.target.items()
        for partition in partitions
    }
    every = [(topic, p) for topic in topics for p in range(view.counts[topic])]
    unassigned = [tp for tp in every if tp not in owned]
    # 2.
    targets: dict[str, Target] = {}
    unfilled: list[tuple[MemberView, int]] = []
    least, extras = divmod(len(every), len(view.members))
    for i, one in enumerate(view.members):
        quota = least + (extras > 0)
        target, revoked = _kept(one.target, topics, quota)
        unassigned += revoked
        room = quota - sum(len(partitions) for _, partitions in target.items())
        has_extra = extras > 0
        if room > 0 and has_extra and len(view.members) - i > extras:
            room, has_extra = room - 1, False
        extras -= has_extra
        if room > 0:
            unfilled.append((one, room))
        targets[one.member.member_id] = target
    # 3.
    following = iter(unassigned)
    for one, room in unfilled:
        member_id = one.member.member_id
        targets[member_id] = _filled(one, targets[member_id], following, room)
    if next(following, None) is not None:
        reason = (
            "partitions were left unassigned, because members own some twice, or beyond a topic"
        )
        raise AssignorThrows.of(assignor, "PartitionAssignorException", reason)
    return targets


def _kept(old: Target, topics: HashSet[Uuid], quota: int) -> tuple[Target, list[IdPartition]]:
    """Returns the partitions that a member keeps, and those of `topics` that it revokes.

    A target from which nothing is taken is not copied, so it keeps its order.
    """
    target, revoked = old, []
    for topic, partitions in old.items():
        if topic in topics and len(partitions) <= quota:
            quota -= len(partitions)
            continue
        if target is old:
            target = copied(old)
        if topic not in topics:
            target.remove(topic)
            continue
        for partition in list(partitions)[quota:]:
            target[topic].remove(partition)
            revoked.append((topic, partition))
        quota = 0
        if not len(target[topic]):
            target.remove(topic)
    return target, revoked


def _filled(one: MemberView, target: Target, following: Iterator[IdPartition], room: int) -> Target:
    if target is one.target:
        target = copied(target)
    for _, (topic, partition) in zip(range(room), following, strict=False):
        target.compute_if_absent(topic, empty_set).add(partition)
    return target
