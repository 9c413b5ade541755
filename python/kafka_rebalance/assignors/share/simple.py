# SPDX-License-Identifier: Apache-2.0
"""The share assignor of brokers: if members outnumber partitions, several share each partition.

A homogeneous group (all subscribe to the same topics) is one pool of its members and of the
initialised partitions of its topics. In any other group each topic is a pool of its own, with its
subscribers. For T partitions and k members in a pool:

1. Each partition is shared by S members: k / T, rounded up. Together, the members want S * T
   partitions, spread evenly over the members.
2. Each member holds the partitions of its present target, initialised or not. In a homogeneous
   group, topics to which it no longer subscribes are removed.
3. Members that hold more than they want give partitions up. Then, if more than S members hold a
   partition, it is taken from the first of them, until S are left.
4. Each partition with fewer than S members goes to members that hold fewer than they want. These
   members form a circle; for each partition, the circle continues where it stopped before.

Order    members are in the order of the `View`. Partitions of a pool, holders of a partition and
         partitions of a holder are in the order of Java's hash maps.
Quirk    for one partition, the circle can come back to a member. The partition then has fewer than
         S members, because this member gets it a second time.
         In a heterogeneous group, a topic without subscribers stays in the targets.
Errors   those of `consumer/targets.py`; Kafka's class throws if the circle is empty when it starts
         again.
Source   SimpleAssignor, SimpleHomogeneousAssignmentBuilder, SimpleHeterogeneousAssignmentBuilder
         (Kafka 4.4.0); KIP-932.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from kafka_rebalance.assignors.consumer.targets import Target, View, copied, empty_set, view_of
from kafka_rebalance.errors import AssignorThrows
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.java.hash_map import (
    HashMap,
    HashSet,
    Uuid,
    id_partition_hash,
    integer_hash,
    slots_for,
    uuid_hash,
)

NAME = "share/simple"

IdPartition = tuple[Uuid, int]
Assignable = Mapping[Uuid, Sequence[int]]
"""The initialised partitions of each topic, ascending; topics without any may be absent."""


def assign(group: GroupSpec) -> Assignment:
    view = view_of(group, NAME)
    return view.answer(targets_of(view, assignable_of(view, group)))


def assignable_of(view: View, group: GroupSpec) -> dict[Uuid, list[int]]:
    """Returns the initialised partitions of each topic that has partitions, in the view's order."""
    initialized = {one.name: one.initialized for one in group.topics}
    assignable = {}
    for topic, count in view.counts.items():
        known = initialized[view.names[topic]]
        assignable[topic] = [p for p in range(count) if known is None or p in known]
    return assignable


def targets_of(view: View, assignable: Assignable) -> dict[str, Target]:
    """Returns the new targets of the members of a view. Errors: AssignorThrows."""
    targets = [one.target for one in view.members]
    if view.homogeneous:
        if not view.members[0].names:
            return {}
        HomogeneousPool(view, targets, assignable).share()
    else:
        topics: HashSet[Uuid] = HashSet(uuid_hash)
        for one in view.members:
            for topic in one.topics:
                topics.add(topic)
        if not len(topics):
            return {}
        for topic in topics:
            TopicPool(view, targets, assignable, topic).share()
    ids = (one.member.member_id for one in view.members)
    return dict(zip(ids, targets, strict=True))


def _room(size: int) -> int:
    """Returns how many slots Kafka's `newHashMap(size)` and `newHashSet(size)` have."""
    return slots_for(int((size + 1) / 0.75 + 1))


class Pool:
    """Partitions that members share; members are numbered as in the `View`.

    `holders` maps partitions to members, `held` maps members to partitions.
    """

    def __init__(
        self,
        view: View,
        targets: list[Target],
        partitions: list[IdPartition],
        subscribers: list[int],
        hash_of: Callable[[IdPartition], int],
    ) -> None:
        self.view = view
        self.targets = targets
        self.partitions = partitions
        self.subscribers = subscribers
        self.hash_of = hash_of
        members = len(subscribers)
        # 1.
        self.shared_by = math.ceil(members / len(partitions)) if partitions else 0
        each = self.shared_by * len(partitions) / members
        self.wanted = [0] * len(view.members)
        for place, m in enumerate(subscribers):
            self.wanted[m] = math.ceil(each * (place + 1)) - math.ceil(each * place)
        self.holders: HashMap[IdPartition, HashSet[int]] = HashMap(hash_of, _room(len(partitions)))
        self.held: HashMap[int, HashSet[IdPartition]] = HashMap(integer_hash, _room(members))
        self.unfilled: HashSet[int] = HashSet(integer_hash, _room(len(view.members)))

    def hold(self, m: int, tp: IdPartition) -> None:
        self.holders.compute_if_absent(tp, empty_set).add(m)
        self.add_to_held(m, tp)

    def add_to_held(self, m: int, tp: IdPartition) -> None:
        self.held.compute_if_absent(m, lambda: HashSet(self.hash_of)).add(tp)

    def more_than_wanted(self, m: int) -> int:
        """Returns the number of partitions that a member holds, minus the number that it wants."""
        held = self.held.get(m)
        return (0 if held is None else len(held)) - self.wanted[m]

    def give_up(self, m: int) -> None:
        for tp in list(self.held[m])[: self.more_than_wanted(m)]:
            self.holders[tp].remove(m)
            self.take(m, tp)

    def take(self, m: int, tp: IdPartition) -> None:
        self.held[m].remove(tp)
        self.own_copy(m)[tp[0]].remove(tp[1])

    def take_from_crowded(self) -> Iterator[int]:
        """Takes partitions with too many members from their first members; yields these members."""
        for tp, members in self.holders.items():
            for m in list(members)[: max(len(members) - self.shared_by, 0)]:
                members.remove(m)
                self.take(m, tp)
                yield m

    def fill(self) -> None:
        # 4.
        circle: Iterator[int] = iter(list(self.unfilled))
        gave = False
        for tp, members in self.holders.items():
            needed = self.shared_by - len(members)
            while needed > 0:
                m = next(circle, None)
                if m is None:
                    if not gave:
                        break
                    circle, gave = iter(list(self.unfilled)), False
                    m = next(circle, None)
                    if m is None:
                        reason = "no member is left that wants more partitions"
                        raise AssignorThrows.of(NAME, "NoSuchElementException", reason)
                if m in members:
                    continue
                self.own_copy(m).compute_if_absent(tp[0], empty_set).add(tp[1])
                gave = True
                needed -= 1
                self.add_to_held(m, tp)
                if self.more_than_wanted(m) >= 0:
                    self.unfilled.remove(m)
            if not len(self.unfilled):
                break

    def own_copy(self, m: int) -> Target:
        """Returns the member's target, copied before its first change."""
        if self.targets[m] is self.view.members[m].target:
            self.targets[m] = copied(self.targets[m])
        return self.targets[m]


class HomogeneousPool(Pool):
    """The pool of a homogeneous group: all members, and their topics' initialised partitions."""

    def __init__(self, view: View, targets: list[Target], assignable: Assignable) -> None:
        self.topics = view.members[0].topics
        partitions = [tp for topic in self.topics for tp in _partitions(assignable, topic)]
        every = list(range(len(view.members)))
        super().__init__(view, targets, partitions, every, id_partition_hash)

    def share(self) -> None:
        # 2.
        overfilled: HashSet[int] = HashSet(integer_hash, _room(len(self.view.members)))
        for m, one in enumerate(self.view.members):
            for topic, numbers in one.target.items():
                if topic not in self.topics:
                    self.own_copy(m).remove(topic)
                    continue
                for number in numbers:
                    self.hold(m, (topic, number))
                    if self.more_than_wanted(m) == 0:
                        self.own_copy(m)
            if self.more_than_wanted(m) < 0:
                self.unfilled.add(m)
            elif self.more_than_wanted(m) > 0:
                overfilled.add(m)
        # 3.
        for m in overfilled:
            self.give_up(m)
        for m in self.take_from_crowded():
            self.unfilled.add(m)
        for tp in self.partitions:
            self.holders.compute_if_absent(tp, empty_set)
        self.fill()


class TopicPool(Pool):
    """One topic of a heterogeneous group, with its subscribers."""

    def __init__(
        self, view: View, targets: list[Target], assignable: Assignable, topic: Uuid
    ) -> None:
        self.topic = topic
        subscribers = [m for m, one in enumerate(view.members) if topic in one.topics]
        partitions = _partitions(assignable, topic)
        super().__init__(view, targets, partitions, subscribers, lambda tp: tp[1])

    def share(self) -> None:
        # 2.
        for m, one in enumerate(self.view.members):
            for number in one.target.get(self.topic) or ():
                self.hold(m, (self.topic, number))
        # 3.
        for m in self.held:
            if self.more_than_wanted(m) > 0:
                self.give_up(m)
        for _ in self.take_from_crowded():
            pass
        for m in self.subscribers:
            if self.more_than_wanted(m) < 0:
                self.unfilled.add(m)
        room = _room(len(self.subscribers))
        for tp in self.partitions:
            self.holders.compute_if_absent(tp, lambda: HashSet(integer_hash, room))
        self.fill()


def _partitions(assignable: Assignable, topic: Uuid) -> list[IdPartition]:
    return [(topic, p) for p in assignable.get(topic, ())]
