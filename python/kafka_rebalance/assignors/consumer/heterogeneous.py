# SPDX-License-Identifier: Apache-2.0
"""Uniform for a group whose members subscribe to different topics.

1. Each member keeps its partitions of topics to which it still subscribes.
2. Topics are sorted by partitions per subscriber, most first; then by number of subscribers, fewest
   first; then by id.
3. Each unassigned partition, topic by topic, goes to the subscriber with the smallest load (number
   of partitions).
4. Topics with two or more subscribers are balanced, in at most 16 sweeps. While the loads of a
   topic's subscribers differ by more than one, the fullest one that owns a partition of the topic
   gives its last such partition to the least loaded one. The balancing ends when a sweep reaches
   the topic of the last change.

Order    members by their load, then by their position in the view (`_Loads`). A partition is moved
         from the end of its owner's partitions of the topic.
Quirk    if two members own a partition, the later member counts as its owner, but both keep it.
Errors   Kafka's class throws if a member keeps a partition that its topic does not have (step 1).
Source   UniformHeterogeneousAssignmentBuilder (Kafka 4.4.0).
"""

import math

from kafka_rebalance.errors import AssignorThrows
from kafka_rebalance.java.hash_map import HashSet, Uuid, integer_hash, slots_for

from .targets import Target, View, copied

_MOST_SWEEPS = 16


def assign(view: View, assignor: str) -> dict[str, Target]:
    builder = HeterogeneousBuild(view, assignor)
    if not builder.subscribers:
        return {}
    builder.keep()
    builder.assign_rest()
    builder.balance()
    ids = (one.member.member_id for one in view.members)
    return dict(zip(ids, builder.targets, strict=True))


class HeterogeneousBuild:
    """Members are numbered as in the view; `owners[topic][partition]` is a member or None."""

    def __init__(self, view: View, assignor: str) -> None:
        self.view = view
        self.assignor = assignor
        self.targets = [one.target for one in view.members]
        self.sizes = [0] * len(view.members)
        self.subscribers: dict[Uuid, list[int]] = {}
        for m, one in enumerate(view.members):
            for topic in one.topics:
                self.subscribers.setdefault(topic, []).append(m)
        self.owners: dict[Uuid, list[int | None]] = {
            topic: [None] * view.counts[topic] for topic in self.subscribers
        }
        # 2.
        self.topics = sorted(self.subscribers, key=self._topic_key)

    def _topic_key(self, topic: Uuid) -> tuple[float, int, Uuid]:
        subscribers = len(self.subscribers[topic])
        return -(self.view.counts[topic] / subscribers), subscribers, topic

    def keep(self) -> None:
        # 1.
        for m, one in enumerate(self.view.members):
            for topic, partitions in one.target.items():
                if topic not in one.topics:
                    self._own_copy(m).remove(topic)
                    continue
                self.sizes[m] += len(partitions)
                for partition in partitions:
                    self._own(topic, partition, m)

    def _own(self, topic: Uuid, partition: int, m: int) -> None:
        owners = self.owners[topic]
        if partition >= len(owners):
            name = self.view.names[topic]
            reason = f"a member owns {name}-{partition}, and {name} has {len(owners)} partitions"
            raise AssignorThrows.of(self.assignor, "ArrayIndexOutOfBoundsException", reason)
        owners[partition] = m

    def assign_rest(self) -> None:
        # 3.
        for topic in self.topics:
            loads = _Loads(self.subscribers[topic], self.sizes)
            for partition, owner in enumerate(self.owners[topic]):
                if owner is None:
                    self._give(topic, partition, loads.next_least())

    def balance(self) -> None:
        # 4.
        topics = [topic for topic in self.topics if len(self.subscribers[topic]) >= 2]
        last_changed: Uuid | None = None
        for _ in range(_MOST_SWEEPS):
            for topic in topics:
                if topic == last_changed:
                    return
                if self._balance_topic(topic) or last_changed is None:
                    last_changed = topic

    def _balance_topic(self, topic: Uuid) -> bool:
        loads = _Loads(self.subscribers[topic], self.sizes)
        if loads.are_even():
            return False
        of_member: dict[int | None, list[int]] = {}
        for partition, owner in enumerate(self.owners[topic]):
            of_member.setdefault(owner, []).append(partition)
        changed = False
        while loads.most_load - loads.least_load > 1:
            most = loads.next_most()
            while most is not None and not of_member.get(most):
                loads.exclude_most()
                most = loads.next_most()
            if most is None:
                break
            partition = of_member[most].pop()
            least = loads.next_least()
            if loads.most_load - loads.least_load <= 1:
                break
            self._own_copy(most)[topic].remove(partition)
            if not len(self.targets[most][topic]):
                self.targets[most].remove(topic)
            self.sizes[most] -= 1
            self._give(topic, partition, least)
            changed = True
        return changed

    def _give(self, topic: Uuid, partition: int, m: int) -> None:
        room = math.ceil(self.view.counts[topic] / len(self.subscribers[topic]))
        slots = slots_for(int(room / 0.75 + 1))
        target = self._own_copy(m)
        target.compute_if_absent(topic, lambda: HashSet(integer_hash, slots)).add(partition)
        self.sizes[m] += 1
        self.owners[topic][partition] = m

    def _own_copy(self, m: int) -> Target:
        """Returns the member's target, which may be changed; the first call copies it."""
        if self.targets[m] is self.view.members[m].target:
            self.targets[m] = copied(self.targets[m])
        return self.targets[m]


class _Loads:
    """Walks the subscribers of one topic from both ends of their order by load.

    `sizes` holds the current loads. `_sorted` keeps the order by the initial loads, except for
    swaps. The least loaded members are a range at the front. After each walk over this range, the
    load of its members is one higher, and the range grows by the members that had this load before.
    The most loaded members are a range at the end, which grows in the same way with lower loads.
    """

    def __init__(self, members: list[int], sizes: list[int]) -> None:
        self._sizes = sizes
        self._sorted = sorted(members, key=lambda m: (sizes[m], m))
        self.least_load = sizes[self._sorted[0]] - 1
        self._least_end = self._next_least = 0
        self.most_load = sizes[self._sorted[-1]] + 1
        self._most_start = self._most_end = len(members)
        self._next_most = len(members) - 1

    def are_even(self) -> bool:
        return self._sizes[self._sorted[-1]] - self._sizes[self._sorted[0]] <= 1

    def next_least(self) -> int:
        if self._next_least >= self._least_end:
            self.least_load += 1
            while self._least_end < len(self._sorted) and self._size(self._least_end) == (
                self.least_load
            ):
                self._least_end += 1
            self._next_least = 0
        self._next_least += 1
        return self._sorted[self._next_least - 1]

    def next_most(self) -> int | None:
        if self._next_most < self._most_start:
            if self._most_end <= self._most_start and self._most_start > 0:
                self.most_load = self._size(self._most_start - 1)
            else:
                self.most_load -= 1
            while self._most_start > 0 and self._size(self._most_start - 1) == self.most_load:
                self._most_start -= 1
            self._next_most = self._most_end - 1
        if self._next_most < 0:
            return None
        self._next_most -= 1
        return self._sorted[self._next_most + 1]

    def exclude_most(self) -> None:
        """Removes the member that `next_most` returned last from the range at the end."""
        here, last = self._next_most + 1, self._most_end - 1
        self._sorted[here], self._sorted[last] = self._sorted[last], self._sorted[here]
        self._most_end -= 1

    def _size(self, place: int) -> int:
        return self._sizes[self._sorted[place]]
