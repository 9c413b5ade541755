# SPDX-License-Identifier: Apache-2.0
"""The sticky algorithm for members with equal subscriptions.

T partitions on m members: every member gets at least q = T // m, and X = T % m members one more.

1. Each member, in hash order, keeps its owned partitions up to its share, in the order of partition
   number and topic, except those that do not match its rack or are multiply owned. The first X
   members that own q + 1 such partitions or more have the share q + 1; all others have q.
   Partitions above the share, and those that do not match, are recorded as revoked.
2. A walk over all partitions, by topic and number, compares them with the sorted kept partitions;
   the partitions that are not kept are unassigned.
3. Two lists of members are sorted by id. The *short* members have fewer than q partitions; the
   members of the second list have q and may take one more. A member is *near* a partition if a
   replica is in the member's rack. With racks, the partitions with the fewest near members come
   first.
4. Rack pass: each partition goes to the next short member near it, else to the first near member
   that may take one more.
5. The remaining partitions go to the short members in turn until each of them has q; then each
   member of the second list gets one, in turn.

Quirks: if a kept partition does not exist, step 2 counts all partitions after it as unassigned,
even the kept ones. The hash order decides which members keep an extra partition.

Order    members in hash order in step 1, by id from step 3 on.
Cost     O(P log P); with racks O(P * members).
Errors   AssignorThrows if partitions that do not exist are kept, and step 2 therefore finds too few
         or too many unassigned partitions for the members' shares.
Source   AbstractStickyAssignor.ConstrainedAssignmentBuilder (Kafka 4.4.0).
Differs  nowhere.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from kafka_rebalance.errors import AssignorThrows
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.java.order import by_name, name_key

from .claims import Claims
from .racks import Racks


@dataclass(slots=True)
class Constrained:
    """The assignment. `transferring` maps each partition that another member has to revoke first,
    and each multiply owned one, to its new owner.
    """

    assignment: dict[str, list[TopicPartition]]
    transferring: dict[TopicPartition, str]


def assign(name: str, group: GroupSpec, claims: Claims) -> Constrained:
    build = ConstrainedBuild(name, claims, Racks.of(group, claims))
    build.keep_owned()  # 1.
    unassigned = build.unassigned()  # 2.
    unassigned = build.sort(unassigned)  # 3.
    if build.racks.active():
        unassigned = build.assign_near(unassigned)  # 4.
    build.assign_round_robin(unassigned)  # 5.
    return Constrained(build.assignment, build.transferring)


class ConstrainedBuild:
    """Runs the steps one by one; `explain/reasons.py` reads the state between two steps."""

    def __init__(self, name: str, claims: Claims, racks: Racks) -> None:
        self.name = name
        self.claims = claims
        self.racks = racks
        members = len(claims.owned)
        self.least, self.extras = divmod(sum(claims.counts.values()), members)
        self.most = self.least + (self.extras > 0)
        self.extras_used = 0
        self.short: list[str] = []  # members below `least`
        self.at_least: deque[str] = deque()  # members at `least` that may have one more
        self.assignment: dict[str, list[TopicPartition]] = {m: [] for m in claims.owned}
        self.revoked_from: dict[TopicPartition, str] = {}
        self.transferring: dict[TopicPartition, str] = {}

    def keep_owned(self) -> None:
        for member_id, claimed in self.claims.owned.items():
            mismatched = [tp for tp in claimed if self.racks.mismatch(member_id, tp)]
            owned = sorted(
                (tp for tp in claimed if not self.racks.mismatch(member_id, tp)),
                key=lambda tp: (tp.partition, name_key(tp.topic)),
            )
            owned = [tp for tp in owned if tp not in self.claims.multiply_owned]
            if len(owned) < self.least:
                keep = len(owned)
                self.short.append(member_id)
            elif len(owned) >= self.most and self.extras_used < self.extras:
                keep = self.most
                self._use_extra()
            else:
                keep = self.least
                if self.extras_used < self.extras:
                    self.at_least.append(member_id)
            self.assignment[member_id] += owned[:keep]
            self.revoked_from.update(dict.fromkeys([*mismatched, *owned[keep:]], member_id))

    def unassigned(self) -> list[TopicPartition]:
        counts = self.claims.counts
        every = [TopicPartition(t, p) for t in by_name(counts) for p in range(counts[t])]
        kept = [tp for partitions in self.assignment.values() for tp in partitions]
        return without_kept(every, sorted(kept, key=lambda tp: (name_key(tp.topic), tp.partition)))

    def sort(self, unassigned: list[TopicPartition]) -> list[TopicPartition]:
        self.short = by_name(self.short)
        self.at_least = deque(by_name(self.at_least))
        return sorted(unassigned, key=lambda tp: self.racks.members_near.get(tp, 0))

    def assign_near(self, unassigned: list[TopicPartition]) -> list[TopicPartition]:
        left = []
        start = 0
        for tp in unassigned:
            at = self.racks.next_near(tp, self.short, start)
            if at is not None:
                member_id = self.short[at]
                count = self._give(tp, member_id)
                if count >= self.least:
                    del self.short[at]
                    if count < self.most and self.extras_used < self.extras:
                        self.at_least.append(member_id)
                else:
                    at += 1
                start = at % len(self.short) if self.short else 0
                continue
            at = self.racks.next_near(tp, self.at_least, 0)
            if at is None:
                left.append(tp)
                continue
            member_id = self.at_least[at]
            if self._give(tp, member_id) == self.most:
                del self.at_least[at]
                self._use_extra()
        return left

    def assign_round_robin(self, unassigned: list[TopicPartition]) -> None:
        at = 0
        for tp in unassigned:
            if self.short:
                at %= len(self.short)
                member_id = self.short[at]
                if self._give(tp, member_id) == self.least:
                    del self.short[at]
                    self.at_least.append(member_id)
                else:
                    at += 1
            elif self.at_least:
                self._give(tp, self.at_least.popleft())
            else:
                raise self._throws("no member may take another partition")
        if self.short:
            raise self._throws("no partition is left for members that have too few")

    def _give(self, tp: TopicPartition, member_id: str) -> int:
        self.assignment[member_id].append(tp)
        taken_from_other = self.revoked_from.get(tp, member_id) != member_id
        if taken_from_other or tp in self.claims.multiply_owned:
            self.transferring[tp] = member_id
        return len(self.assignment[member_id])

    def _use_extra(self) -> None:
        self.extras_used += 1
        if self.extras_used == self.extras:
            self.at_least.clear()

    def _throws(self, reason: str) -> AssignorThrows:
        return AssignorThrows.of(
            self.name, "IllegalStateException", f"{reason}; owned partitions do not fit the topics"
        )


def without_kept(
    every: Sequence[TopicPartition], kept: Sequence[TopicPartition]
) -> list[TopicPartition]:
    """Returns the partitions that are not kept, and all after a kept one that does not exist."""
    unassigned = []
    upcoming = iter(kept)
    next_kept = next(upcoming, None)
    for tp in every:
        if tp == next_kept:
            next_kept = next(upcoming, None)
        else:
            unassigned.append(tp)
    return unassigned
