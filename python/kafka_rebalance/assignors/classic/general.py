# SPDX-License-Identifier: Apache-2.0
"""The sticky algorithm for members whose subscriptions differ.

1. Partitions are sorted by the number of subscribers of their topic, then topic, then number.
2. Members whose claims are older than the newest generation are recorded as previous owners of the
   partitions that they claim.
3. Each member keeps its owned partitions, except partitions of topics that it left and partitions
   that do not match its rack. If any member loses a partition here, the group has a *revocation*.
4. Each unassigned partition goes to the subscriber with the fewest partitions; ids break ties. With
   racks, a first pass considers only members near the partition (a replica is in their rack) and
   members without a rack.
5. Topics with one subscriber take no part in step 6, and neither do *fixed* members. A fixed member
   owns all partitions that it can have, and none that another member could have.
6. Balance: passes over the unassigned partitions (unless step 3 had a revocation), then passes over
   all partitions, each until a pass moves nothing. A partition goes back to its previous owner if
   this member has at least two partitions fewer than the owner. Else it goes to the subscriber with
   the fewest partitions, if any subscriber has at least two fewer than the owner.
7. Step 6 is undone if it did not lower the score (the sum of the differences of all pairs of
   members), its passes over all partitions moved something, and some member kept a partition in
   step 3.

Quirks: when the movement record (`movements.py`) moves another partition instead, this can undo an
earlier move; then the passes may never end. A partition can go back to a previous owner that no
longer subscribes to the topic; if that owner is fixed, Kafka's class throws. If a kept partition
does not exist, all partitions after it count as unassigned, as in the constrained algorithm.

Order    members by (partitions held, id); subscribers of a topic and claims in hash order;
         partitions that the movement record sends back, in the order of a hash set.
Cost     each move of step 6 tests all P partitions and, for each member, the partitions of its
         topics (S in all): O(moves * (P + S)).
Errors   AssignorThrows where Kafka's class looks up a fixed member; NeverEnds if a state occurs
         again in step 6.
Source   AbstractStickyAssignor.GeneralAssignmentBuilder (Kafka 4.4.0).
Differs  nowhere.
"""

import math
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Sequence

from kafka_rebalance.errors import AssignorThrows, NeverEnds
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.java.hash_table import HashTable
from kafka_rebalance.java.order import java_hash_order, name_key, string_hash

from .claims import Claims
from .constrained import without_kept
from .movements import Movements
from .racks import Racks
from .subscriptions import topics_as_sent

_FIRST_SAVED_PASS = 8  # the first pass whose state is saved; most groups settle in fewer passes


def assign(name: str, group: GroupSpec, claims: Claims) -> dict[str, list[TopicPartition]]:
    build = GeneralBuild(name, claims, Racks.of(group, claims))
    build.sort_partitions()  # 1.
    build.remember_previous()  # 2.
    unassigned = build.keep_owned()  # 3.
    initializing = not any(build.current.values())  # nobody kept a partition
    build.assign_unassigned(unassigned)  # 4.
    build.take_out_fixed()  # 5.
    build.balance(unassigned, initializing=initializing)  # 6. 7.
    return build.answer()


class GeneralBuild:
    """Runs the steps one by one; `explain/reasons.py` reads the state between two steps."""

    def __init__(self, name: str, claims: Claims, racks: Racks) -> None:
        self.name = name
        self.claims = claims
        self.racks = racks
        self.current = claims.owned
        self.fixed: dict[str, list[TopicPartition]] = {}
        self.owners = Owners(claims)
        self.owner = {tp: m for m, partitions in claims.owned.items() for tp in partitions}
        # As in Kafka's class, a topic that a member lists twice is twice in this list.
        self.topics_of = {
            member.member_id: [t for t in topics_as_sent(member) if t in claims.counts]
            for member in claims.members
        }
        self.subscribers: dict[str, list[str]] = {topic: [] for topic in claims.counts}
        for member_id, topics in self.topics_of.items():
            for topic in topics:
                self.subscribers[topic].append(member_id)
        self.holder: dict[TopicPartition, str] = {}
        self.previous: dict[TopicPartition, tuple[str, int]] = {}
        self.revocation = False
        self.movements = Movements()
        self.of_topic: dict[str, list[TopicPartition]] = {}
        self.all_partitions: list[TopicPartition] = []
        self.by_size: list[
            tuple[int, bytes, str]
        ] = []  # sorted (partitions held, key of the id, id)

    def sort_partitions(self) -> None:
        counts = self.claims.counts
        topics = sorted(counts, key=lambda t: (len(self.subscribers[t]), name_key(t)))
        self.of_topic = {t: [TopicPartition(t, p) for p in range(counts[t])] for t in topics}
        self.all_partitions = [tp for t in topics for tp in self.of_topic[t]]

    def remember_previous(self) -> None:
        for member in self.claims.members:
            partitions, generation, _ = self.claims.sent[member.member_id]
            if generation < self.claims.max_generation:
                for tp in partitions:
                    if tp not in self.previous or generation > self.previous[tp][1]:
                        self.previous[tp] = member.member_id, generation

    def keep_owned(self) -> list[TopicPartition]:
        kept = []
        for member_id, owned in self.current.items():
            keep = [
                tp
                for tp in owned
                if tp.topic in self.topics_of[member_id] and not self.racks.mismatch(member_id, tp)
            ]
            self.revocation |= len(keep) < len(owned)
            self.current[member_id] = keep
            kept += keep
        self.by_size = sorted((len(self.current[m]), name_key(m), m) for m in self.current)
        kept.sort(key=lambda tp: (len(self.subscribers[tp.topic]), name_key(tp.topic), tp[1]))
        return without_kept(self.all_partitions, kept)

    def assign_unassigned(self, unassigned: list[TopicPartition]) -> None:
        if self.racks.active():
            unassigned = [tp for tp in unassigned if not self._assign_smallest(tp, self.racks)]
        for tp in unassigned:
            self._assign_smallest(tp, None)

    def _assign_smallest(self, tp: TopicPartition, racks: Racks | None) -> bool:
        for _, _, member_id in self.by_size:
            if tp.topic in self.topics_of[member_id] and not (
                racks and racks.mismatch(member_id, tp)
            ):
                self.give(member_id, tp)
                return True
        return False

    def take_out_fixed(self) -> None:
        for member_id in self.owners.members():
            if not self._can_take_part(member_id):
                self._leave_order(member_id)
                self.fixed[member_id] = self.current.pop(member_id)
        self.owners.take_out(self.fixed)
        self.current = {member_id: self.current[member_id] for member_id in self.owners.order()}

    def _can_take_part(self, member_id: str) -> bool:
        owned = self.current[member_id]
        return len(owned) < self._possible(member_id) or any(
            self._is_contested(tp.topic) for tp in owned
        )

    def _is_contested(self, topic: str) -> bool:
        return len(self.subscribers[topic]) >= 2

    def _possible(self, member_id: str) -> int:
        """Returns how many partitions the member can have at most: all those of its topics."""
        topics = self.topics_of[member_id]
        counts = self.claims.counts
        return sum(counts.values() if len(topics) == len(counts) else (counts[t] for t in topics))

    def balance(self, unassigned: list[TopicPartition], *, initializing: bool) -> None:
        before = {member_id: list(owned) for member_id, owned in self.current.items()}
        self.holder = self._holders()
        if not self.revocation:
            self._reassign([tp for tp in unassigned if self._is_contested(tp.topic)])
        moved = self._reassign([tp for tp in self.all_partitions if self._is_contested(tp.topic)])
        if not initializing and moved and score(self.current) >= score(before):
            self.current = before
            self.owners.copy_back()

    def answer(self) -> dict[str, list[TopicPartition]]:
        """Returns the partitions of all members, with the members in the order of Kafka's map."""
        self.owners.put_back(self.fixed)
        assignment = self.current | self.fixed
        return {member_id: assignment[member_id] for member_id in self.owners.order()}

    def _reassign(self, partitions: Sequence[TopicPartition]) -> bool:
        steps = self._reassign_one, self._is_balanced, self._state
        return repeat_passes(self.name, partitions, *steps)

    def _state(self) -> object:
        lists = {member_id: list(owned) for member_id, owned in self.current.items()}
        return lists, dict(self.owner), self.movements.state()

    def _reassign_one(self, tp: TopicPartition) -> bool:
        size = self._size(self.owner[tp])
        if tp in self.previous:
            previous, _ = self.previous[tp]
            if size > self._size(previous) + 1:
                self.relocate(tp, previous)
                return True
        if not self.fixed and size <= self.by_size[0][0] + 1:
            # No subscriber has few enough partitions, and no fixed one makes Kafka's class throw.
            return False
        subscribers = self.subscribers[tp.topic]
        if self.fixed:
            has_more = any(size > self._size(other) + 1 for other in self._near_first(tp))
        else:
            has_more = size > next(least for least, _, m in self.by_size if m in subscribers) + 1
        if has_more:
            self.relocate(tp, next(m for _, _, m in self.by_size if m in subscribers))
            return True
        return False

    def _near_first(self, tp: TopicPartition) -> list[str]:
        """Returns the subscribers. If the partition's owner is near it, near ones come first.

        The order has one effect: Kafka's class throws if it visits a fixed subscriber before it
        finds one that has at least two partitions fewer.
        """
        subscribers = self.subscribers[tp.topic]
        racks = self.racks.of_partition.get(tp, frozenset())
        if self.racks.of_member.get(self.owner[tp]) not in racks:
            return subscribers
        return [m for m in subscribers if self.racks.of_member.get(m) in racks] + subscribers

    def relocate(self, tp: TopicPartition, destination: str) -> None:
        tp = self.movements.actual(tp, self.owner[tp], destination)
        source = self.owner[tp]
        self.movements.record(tp, source, destination)
        self._take(source, tp)
        self.give(destination, tp)
        self.holder[tp] = destination

    def _holders(self) -> dict[TopicPartition, str]:
        """Returns the holder of each partition; of several holders, the last one in `current`."""
        return {tp: m for m, partitions in self.current.items() for tp in partitions}

    def _is_balanced(self) -> bool:
        """Returns whether no member can take a partition from one with at least two more."""
        if self.by_size[0][0] >= self.by_size[-1][0] - 1:
            return True
        # A move changes one entry. But if several members hold a partition, their order decides
        # which of them counts as its holder.
        has_several = len(self.holder) < sum(size for size, _, _ in self.by_size)
        holder = self._holders() if has_several else self.holder
        most: dict[str, float] = {}  # topic -> the size of the largest holder of its partitions
        for size, _, member_id in self.by_size:
            if size == self._possible(member_id):
                continue
            owned = set(self.current[member_id])
            for topic in self.topics_of[member_id]:
                if topic not in most:
                    most[topic] = self._largest(topic, holder)
                for tp in self.of_topic[topic] if size + 1 < most[topic] else ():
                    if tp not in owned and size + 1 < self._size(holder.get(tp)):
                        return False
        return True

    def _largest(self, topic: str, holder: dict[TopicPartition, str]) -> float:
        """Returns the size of the topic's largest holder; infinity if a partition has no holder."""
        held = [self.current.get(holder.get(tp, "")) for tp in self.of_topic[topic]]
        return max((math.inf if owned is None else len(owned) for owned in held), default=0)

    def _size(self, member_id: str | None) -> int:
        if member_id not in self.current:
            raise AssignorThrows.of(
                self.name,
                "NullPointerException",
                "a member that takes no part in balancing is still known as an owner",
            )
        return len(self.current[member_id])

    def give(self, member_id: str, tp: TopicPartition) -> None:
        self._leave_order(member_id)
        self.current[member_id].append(tp)
        self.owner[tp] = member_id
        insort(self.by_size, self._place(member_id))

    def _take(self, member_id: str, tp: TopicPartition) -> None:
        self._leave_order(member_id)
        self.current[member_id].remove(tp)
        insort(self.by_size, self._place(member_id))

    def _leave_order(self, member_id: str) -> None:
        del self.by_size[bisect_left(self.by_size, self._place(member_id))]

    def _place(self, member_id: str) -> tuple[int, bytes, str]:
        return len(self.current[member_id]), name_key(member_id), member_id


def repeat_passes(
    name: str,
    partitions: Sequence[TopicPartition],
    reassign_one: Callable[[TopicPartition], bool],
    is_balanced: Callable[[], bool],
    state: Callable[[], object],
) -> bool:
    """Passes over the partitions until a pass moves none; returns whether any partition moved."""
    moved_any = False
    moved = bool(partitions)
    passes, save_at = 0, _FIRST_SAVED_PASS
    saved: object = None
    while moved:
        moved = False
        balanced = is_balanced()
        for tp in partitions:
            if balanced:
                break
            if reassign_one(tp):
                moved = True
                balanced = is_balanced()  # only a move changes this result
        moved_any |= moved
        # A pass depends only on the state: if a state occurs a second time, the passes never end.
        passes += 1
        if moved and passes >= _FIRST_SAVED_PASS:
            now = state()
            if now == saved:
                raise NeverEnds.here(name)
            if passes == save_at:
                saved, save_at = now, 2 * save_at
    return moved_any


def score(assignment: dict[str, list[TopicPartition]]) -> int:
    """Returns the sum of the size differences of all pairs of members, in Java's 32-bit int."""
    sizes = sorted(len(partitions) for partitions in assignment.values())
    # Of n ascending sizes, size i is the larger one in i pairs, and the smaller one in n - 1 - i.
    total = sum(size * (2 * i - len(sizes) + 1) for i, size in enumerate(sizes))
    return (total + 2**31) % 2**32 - 2**31


class Owners:
    """The order of the members in Kafka's hash map `currentAssignment`.

    Step 5 removes the fixed members, and the algorithm adds them again at the end. This can change
    the order of members whose slot of the hash map is a tree. If two members hold one partition,
    the order decides which of them counts as its owner.
    """

    def __init__(self, claims: Claims) -> None:
        self._walked = [member.member_id for member in claims.members]
        self._table = _put(self._walked, HashTable())

    def order(self) -> list[str]:
        return self._table.keys()

    def members(self) -> list[str]:
        """Returns all members, in the order of `new HashMap(number of members)`."""
        slots = 1 << max(len(self._walked) - 1, 0).bit_length()
        return _put(self._walked, HashTable(slots)).keys()

    def take_out(self, fixed: Iterable[str]) -> None:
        for member_id in fixed:
            self._table.remove(member_id)

    def copy_back(self) -> None:
        """Clears the map, which keeps its number of slots, and refills it from an older copy."""
        self._table = _put(java_hash_order(self.order()), HashTable(self._table.slots()))

    def put_back(self, fixed: Iterable[str]) -> None:
        _put(java_hash_order(list(fixed)), self._table)


def _put(member_ids: Iterable[str], table: HashTable[str]) -> HashTable[str]:
    for member_id in member_ids:
        table.put(member_id, string_hash(member_id), name_key(member_id))
    return table
