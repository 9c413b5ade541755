# SPDX-License-Identifier: Apache-2.0
"""Uniform for a group whose members all subscribe to the same topics.

1. The topics are the first member's, in the order of a copied `HashSet`. The partitions that no
   member owns are unassigned, topic by topic.
2. Each of the M members in turn keeps its partitions, up to its quota: T / M of the T partitions,
   and an extra one while extra ones are left. It revokes the other partitions, which are unassigned
   from then on. A member below its quota leaves its extra partition to the members after it, unless
   enough extra ones remain for all of them. A member that is still below its quota is unfilled.
3. Each unfilled member in turn gains the next unassigned partitions, up to its quota.
4. A member that revokes nothing and gains nothing keeps its present target and its order. Each
   other member's new target is a copy: its revoked partitions are removed, then its gained ones are
   added. A topic that loses its last partition is removed, and so is one without subscribers.

Quirk    owned partitions that do not exist are kept, and count toward the quota.
Errors   Kafka's class throws if partitions are left unassigned, because members own some twice, or
         own some that do not exist.
Source   UniformHomogeneousAssignmentBuilder (Kafka 4.4.0).
"""

from collections.abc import Sequence
from itertools import islice

from kafka_rebalance.errors import AssignorThrows
from kafka_rebalance.java.hash_map import HashSet, Uuid, uuid_hash

from .targets import Target, View, copied, empty_set

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
    keeps: list[int] = []
    rooms: list[int] = []
    least, extras = divmod(len(every), len(view.members))
    for i, one in enumerate(view.members):
        quota = least + (extras > 0)
        listed = _listed(one.target, topics)
        keeps.append(min(len(listed), quota))
        unassigned += listed[quota:]
        room = quota - keeps[i]
        has_extra = extras > 0
        if room > 0 and has_extra and len(view.members) - i > extras:
            room, has_extra = room - 1, False
        extras -= has_extra
        rooms.append(room)
    # 3.
    following = iter(unassigned)
    gains = [list(islice(following, room)) for room in rooms]
    if next(following, None) is not None:
        reason = (
            "partitions were left unassigned, because members own some twice, or beyond a topic"
        )
        raise AssignorThrows.of(assignor, "PartitionAssignorException", reason)
    # 4.
    members = zip(view.members, keeps, gains, strict=True)
    return {
        one.member.member_id: _changed(one.target, topics, kept, gained)
        for one, kept, gained in members
    }


def _listed(target: Target, topics: HashSet[Uuid]) -> list[IdPartition]:
    """Returns the partitions of `topics` in a target, in the target's order."""
    return [
        (topic, p) for topic, partitions in target.items() if topic in topics for p in partitions
    ]


def _changed(
    old: Target, topics: HashSet[Uuid], kept: int, gained: Sequence[IdPartition]
) -> Target:
    """Returns the first `kept` partitions of `old` and the gained ones; `old` if none change."""
    remaining = set(_listed(old, topics)[:kept])
    revoked = [tp for tp in _listed(old, topics) if tp not in remaining]
    unsubscribed = [topic for topic, _ in old.items() if topic not in topics]
    if not revoked and not gained and not unsubscribed:
        return old
    target = copied(old)
    for topic in unsubscribed:
        target.remove(topic)
    for topic, partition in revoked:
        target[topic].remove(partition)
        if not len(target[topic]):
            target.remove(topic)
    for topic, partition in gained:
        target.compute_if_absent(topic, empty_set).add(partition)
    return target
