# SPDX-License-Identifier: Apache-2.0
"""A share group as the broker keeps it: epochs, members, targets, share state.

    epoch, members, …   those of every group whose broker assigns: `broker_assigned/group.py`
    counts              how many members name a topic

A group is Empty without members, else Stable.

Source   ShareGroup.java, ModernGroup.java (Kafka 4.4.0); KIP-932.

A member of a share group, as the broker keeps it; an update makes a new member.

A member is STABLE at each step: it never waits for other members. Dicts have the iteration order of
Kafka's hash tables, and compare without order.

Source   ShareGroupMember.java, ModernGroupMember.java (Kafka 4.4.0).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from kafka_rebalance.java.hash_map import HashMap, Uuid
from kafka_rebalance.java.timeline_hash_map import TimelineHashMap
from kafka_rebalance.wire.messages import GroupState

from ..broker_assigned.group import AssigningGroup, Names, ReconciliationState
from ..broker_assigned.table_order import copied_counts, recount, step_count
from ..broker_assigned.target import NO_TARGET, Target
from .share_state import ShareState

Partitions = Mapping[Uuid, Mapping[int, None]]
"""Partitions by topic id."""


@dataclass(frozen=True, slots=True)
class ShareGroupMember:
    """A member; its assigned partitions can be assigned to other members, too."""

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: ReconciliationState = ReconciliationState.STABLE
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: Names = field(default_factory=dict)
    assigned: Partitions = field(default_factory=dict)

    @property
    def is_revoking(self) -> bool:
        return False

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is ReconciliationState.STABLE and self.member_epoch == epoch


@dataclass(slots=True)
class ShareGroup(AssigningGroup[ShareGroupMember, Target]):
    """A group; its methods return facts, or change the group as one record does."""

    group_type: ClassVar[str] = "share"
    has_offsets: ClassVar[bool] = False

    counts: TimelineHashMap[str, int] = field(default_factory=TimelineHashMap)
    share_state: ShareState | None = None

    def copy(self) -> "ShareGroup":
        """Returns a copy that can be changed; both share the immutable members and targets."""
        return replace(
            self,
            members=self.members.copy(),
            targets=dict(self.targets),
            counts=self.counts.copy(),
        )

    @property
    def tables(self) -> tuple[TimelineHashMap[str, Any], ...]:
        return (self.members, self.counts)

    # Facts ----------------------------------------------------------------------------------------

    @property
    def state(self) -> GroupState:
        return GroupState.EMPTY if self.is_empty else GroupState.STABLE

    @property
    def is_homogeneous(self) -> bool:
        return is_homogeneous((count for _, count in self.counts.items()), len(self.members))

    def is_subscribed(self, topic: str) -> bool:
        return topic in self.counts

    def target_of(self, member_id: str) -> Target:
        return self.targets.get(member_id, NO_TARGET)

    def counts_with(self, old: ShareGroupMember, new: ShareGroupMember | None) -> HashMap[str, int]:
        """Returns the counts of topics as if `new` had replaced `old`; None: `old` leaves."""
        counts = copied_counts(self.counts)
        for name in old.subscribed_topic_names:
            recount(counts, name, None)
        for name in () if new is None else new.subscribed_topic_names:
            recount(counts, None, name)
        return counts

    def misses_initialized_partitions(self) -> bool:
        """Returns whether a subscribed topic has other initialised than targeted partitions."""
        if self.share_state is None or self.is_empty:
            return False
        for topic, (name, partitions) in self.share_state.initialized.items():
            if name not in self.counts:
                continue
            targeted = [one[topic] for one in self.targets.values() if topic in one]
            if not targeted or set().union(*targeted) != set(partitions):
                return True
        return False

    # Changes, one for each kind of record ---------------------------------------------------------

    def member(self, member_id: str) -> ShareGroupMember:
        """Returns the member with this id; a new one joins the group at once."""
        known = self.members.get(member_id)
        if known is None:
            known = ShareGroupMember(member_id)
            self.update(known)
        return known

    def update(self, new: ShareGroupMember) -> None:
        """Adds or replaces a member."""
        old = self.members.get(new.member_id)
        self.members.put(new.member_id, new)
        self._recount(old, -1)
        self._recount(new, 1)

    def remove(self, member_id: str) -> None:
        self._recount(self.members.remove(member_id), -1)

    def _recount(self, member: ShareGroupMember | None, step: int) -> None:
        for name in () if member is None else member.subscribed_topic_names:
            step_count(self.counts, name, step)


def is_homogeneous(counts: Iterable[int], members: int) -> bool:
    """Returns whether all members name the same topics."""
    return all(count == members for count in counts)
