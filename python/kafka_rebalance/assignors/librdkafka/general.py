# SPDX-License-Identifier: Apache-2.0
"""librdkafka's version of Kafka's general sticky algorithm, which it runs for all groups.

1. The candidates of a partition are the members that can have it. Partitions are sorted by number
   of candidates, topic and number. If every member can have every partition, another order applies:
   repeatedly, the member with the most remaining owned partitions adds one of them, if
   possible one with a previous owner. When no member has any left, the unowned partitions follow.
2. Each member keeps its owned partitions, except those that do not exist, those of topics that it
   left, and those that do not match its rack. If a member loses a partition that has candidates,
   the group has a *revocation*.
3. Each unassigned partition goes to the candidate with the fewest partitions; ids break ties. With
   racks, a first pass considers only members near the partition (a replica is in their rack) and
   members without a rack.
4. Partitions with one candidate take no part in step 5, and neither do *fixed* members. A fixed
   member owns all partitions that it can have, and none that another member could have.
5. Balance: passes over the unassigned partitions (unless step 2 had a revocation), then passes over
   all partitions, each until a pass moves nothing. A partition goes back to its previous owner if
   this member has at least two partitions fewer than the holder. Else it goes to the candidate with
   the fewest partitions, if any candidate has at least two fewer than the holder.
6. Step 5 is undone if it did not lower the score (that of Kafka's algorithm), its passes over all
   partitions moved something, and some member kept a partition in step 2.

Quirks: an empty rack counts as a rack, in which there is usually no replica; a member whose rack is
null matches all. A partition moves away from its holder, which may not be its owner (`claims.py`).

Order    members by (partitions owned, id); dicts are read in reverse, as in `claims.py`.
Cost     O(moves * C) at worst: the test after a move reads all C pairs (candidate, partition).
Errors   AssignorThrows where the leader's process crashes; NeverEnds.
Source   librdkafka 2.16 (rd_kafka_sticky_assignor_assign_cb).
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from itertools import pairwise

from kafka_rebalance.assignors.classic.general import repeat_passes, score
from kafka_rebalance.assignors.classic.racks import racks_matter, replica_racks
from kafka_rebalance.group.model import Member, TopicPartition
from kafka_rebalance.group.spec import GroupSpec

from .claims import Settled
from .movements import NAME, MoveRecords, dies
from .subscriptions import name_bytes, subscribers_of, topics_by_name


def assign(
    group: GroupSpec, members: Sequence[Member], claims: Settled
) -> dict[str, list[TopicPartition]]:
    build = LibrdkafkaBuild(group, members, claims)
    build.sort_partitions()  # 1.
    unassigned = build.keep_owned()  # 2.
    initializing = build.by_size[-1][0] == 0
    build.assign_unassigned(unassigned)  # 3.
    build.take_out_fixed()  # 4.
    build.balance(unassigned, initializing=initializing)  # 5. 6.
    return build.current | build.fixed


class SentRacks:
    """The racks of members and partitions.

    If racks make no difference, all members are treated as having no rack. Otherwise, a
    subscription below version 3 crashes the leader.
    """

    def __init__(
        self, group: GroupSpec, members: Sequence[Member], partitions: Sequence[TopicPartition]
    ) -> None:
        topics = topics_by_name(group)
        racks = {name: replica_racks(topics[name]) for name in {tp.topic for tp in partitions}}
        of_partition = {tp: racks[tp.topic][tp.partition] for tp in partitions}
        of_members = {member.rack for member in members if member.rack is not None}
        self.active = racks_matter(of_members, of_partition.values())
        self._of_member = {m.member_id: m.rack_id for m in members} if self.active else {}
        self._of_partition = of_partition
        if self.active and any(member.version < 3 for member in members):
            raise dies("a subscription has no rack, because its version is older than 3")

    def mismatch(self, member_id: str, tp: TopicPartition) -> bool:
        """Returns whether the member has a rack (which may be empty) without a replica of `tp`."""
        rack = self._of_member.get(member_id)
        return rack is not None and rack not in self._of_partition[tp]


class LibrdkafkaBuild:
    """Runs the steps one by one."""

    def __init__(self, group: GroupSpec, members: Sequence[Member], claims: Settled) -> None:
        self.current = claims.owned
        self.holder = claims.holder
        self.previous = claims.previous
        self.movements = MoveRecords()
        self.fixed: dict[str, list[TopicPartition]] = {}
        self.topics = {member.member_id: frozenset(member.topics) for member in members}
        counts = group.partition_counts()
        self.can: dict[str, list[TopicPartition]] = {member.member_id: [] for member in members}
        self.who: dict[TopicPartition, list[str]] = {}
        for topic, subscribers in subscribers_of(group).items():
            ids = [member.member_id for member in subscribers]
            partitions = [TopicPartition(topic, p) for p in range(counts[topic])]
            self.who.update((tp, ids) for tp in partitions)
            for member_id in ids:
                self.can[member_id] += partitions
        self.racks = SentRacks(group, members, list(self.who))
        self.order: list[TopicPartition] = []
        self.by_size: list[tuple[int, bytes, str]] = []  # sorted (partitions, id's bytes, id)
        self.revocation = False

    def sort_partitions(self) -> None:
        if _all_equal(self.who.values()) and _all_equal(set(can) for can in self.can.values()):
            self.order = self._by_load()
        else:
            self.order = sorted(self.who, key=lambda tp: (len(self.who[tp]), _place(tp)))

    def _by_load(self) -> list[TopicPartition]:
        left: dict[str, list[TopicPartition]] = {}
        for member_id, owned in reversed(self.current.items()):
            owned.sort(key=_place)
            if existing := [tp for tp in owned if tp in self.who]:
                left[member_id] = existing
        order: dict[TopicPartition, None] = {}
        while left:
            largest = max(left, key=lambda m: (len(left[m]), name_bytes(m)))
            owned = left[largest]
            tp = next((tp for tp in owned if tp in self.previous), owned[0])
            owned.remove(tp)
            order[tp] = None
            if not owned:
                del left[largest]
        if not order:
            return sorted(self.who, key=_place)
        return [*order, *(tp for tp in reversed(self.who) if tp not in order)]

    def keep_owned(self) -> list[TopicPartition]:
        kept: set[TopicPartition] = set()
        for member_id, owned in reversed(self.current.items()):
            keep = []
            for tp in owned:
                if tp not in self.who:
                    self.holder.pop(tp, None)
                elif tp.topic not in self.topics[member_id] or self.racks.mismatch(member_id, tp):
                    self.revocation = True
                else:
                    keep.append(tp)
            self.current[member_id] = keep
            kept.update(keep)
        self.by_size = sorted(self._entry(member_id) for member_id in self.current)
        return [tp for tp in self.order if tp not in kept]

    def assign_unassigned(self, unassigned: list[TopicPartition]) -> None:
        if self.racks.active:
            unassigned = [tp for tp in unassigned if not self._assign_smallest(tp, self.racks)]
        for tp in unassigned:
            self._assign_smallest(tp, None)

    def _assign_smallest(self, tp: TopicPartition, racks: SentRacks | None) -> bool:
        for _, _, member_id in self.by_size:
            if member_id in self.who[tp] and not (racks and racks.mismatch(member_id, tp)):
                self._append(member_id, tp)
                return True
        return False

    def take_out_fixed(self) -> None:
        for member_id, owned in [*self.current.items()]:
            if len(owned) >= len(self.can[member_id]) and not any(map(self._is_contested, owned)):
                self._leave_order(member_id)
                self.fixed[member_id] = self.current.pop(member_id)

    def _is_contested(self, tp: TopicPartition) -> bool:
        return len(self.who[tp]) >= 2

    def balance(self, unassigned: list[TopicPartition], *, initializing: bool) -> None:
        before = {member_id: list(owned) for member_id, owned in self.current.items()}
        if not self.revocation:
            self._reassign([tp for tp in unassigned if self._is_contested(tp)])
        moved = self._reassign([tp for tp in self.order if self._is_contested(tp)])
        if moved and not initializing and score(self.current) >= score(before):
            self.current = before

    def _reassign(self, partitions: Sequence[TopicPartition]) -> bool:
        steps = self._reassign_one, self._is_balanced, self._state
        return repeat_passes(NAME, partitions, *steps)

    def _state(self) -> object:
        lists = {member_id: list(owned) for member_id, owned in self.current.items()}
        return lists, dict(self.holder), self.movements.state()

    def _reassign_one(self, tp: TopicPartition) -> bool:
        holder = self.holder.get(tp)
        size = self._size(holder)
        if tp in self.previous and size > self._size(self.previous[tp]) + 1:
            self._move(tp, self.previous[tp])
            return True
        if any(size > self._size(other) + 1 for other in self.who[tp] if other != holder):
            self._move(tp, next(m for _, _, m in self.by_size if m in self.who[tp]))
            return True
        return False

    def _move(self, tp: TopicPartition, destination: str) -> None:
        tp, moves_back = self.movements.actual(tp, self.holder[tp], destination)
        source = self.holder[tp]
        tp = self.movements.record(tp, source, destination, moves_back=moves_back)
        self._append(destination, tp)
        self._leave_order(source)
        if tp in self.current[source]:
            self.current[source].remove(tp)
        insort(self.by_size, self._entry(source))

    def _is_balanced(self) -> bool:
        """Returns whether loads differ by at most 1, or no member could take from a fuller one."""
        if self.by_size[0][0] >= self.by_size[-1][0] - 1:
            return True
        owner = {tp: m for m, owned in reversed(self.current.items()) for tp in owned}
        for size, _, member_id in self.by_size:
            if size == len(self.can[member_id]):
                continue
            owned = set(self.current[member_id])
            for tp in self.can[member_id]:
                if tp not in owned and size < self._size(owner.get(tp)):
                    return False
        return True

    def _size(self, member_id: str | None) -> int:
        if member_id not in self.current:
            raise dies("a partition has no holder that takes part in balancing")
        return len(self.current[member_id])

    def _append(self, member_id: str, tp: TopicPartition) -> None:
        self._leave_order(member_id)
        self.current[member_id].append(tp)
        self.holder[tp] = member_id
        insort(self.by_size, self._entry(member_id))

    def _leave_order(self, member_id: str) -> None:
        del self.by_size[bisect_left(self.by_size, self._entry(member_id))]

    def _entry(self, member_id: str) -> tuple[int, bytes, str]:
        return len(self.current[member_id]), name_bytes(member_id), member_id


def _place(tp: TopicPartition) -> tuple[bytes, int]:
    return name_bytes(tp.topic), tp.partition


def _all_equal(items: Iterable[object]) -> bool:
    return all(a == b for a, b in pairwise(items))
