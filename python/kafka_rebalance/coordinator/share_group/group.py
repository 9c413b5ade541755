# SPDX-License-Identifier: Apache-2.0
"""A share group as the broker keeps it: epochs, members, targets, share state.

    epoch             grows with each change that needs a new target
    assignment_epoch  the epoch of the targets; smaller than `epoch` while a target is missing
    members           in the order of a `TimelineHashMap`
    targets           member id -> partitions that the member will have
    counts            how many members name a topic

A group is Empty without members, else Stable.

Source   ShareGroup.java, ModernGroup.java (Kafka 4.4.0); KIP-932.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from kafka_rebalance.java.hash_map import HashMap
from kafka_rebalance.java.timeline_hash_map import TimelineHashMap
from kafka_rebalance.protocol.group_state import ConsumerGroupState

from ..consumer_group.group import INITIAL_EPOCH, NO_TARGET, NOT_ASSIGNED_MS, Target
from ..consumer_group.subscription_counts import copied_counts, recount, step_count
from .member import ShareGroupMember
from .share_state import ShareState


@dataclass(slots=True)
class ShareGroup:
    """A group; its methods return facts, or change the group as one record does.

    `refresh_at` is the time, and the epoch, from which the topics' metadata is looked at again.
    """

    group_id: str
    epoch: int = INITIAL_EPOCH
    metadata_hash: int = 0
    assignment_epoch: int = INITIAL_EPOCH
    assignment_timestamp_ms: int = NOT_ASSIGNED_MS
    members: TimelineHashMap[str, ShareGroupMember] = field(default_factory=TimelineHashMap)
    targets: dict[str, Target] = field(default_factory=dict)
    counts: TimelineHashMap[str, int] = field(default_factory=TimelineHashMap)
    share_state: ShareState | None = None
    refresh_at: tuple[int, int] = (0, 0)

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
        """The tables whose order depends on what has happened to them."""
        return (self.members, self.counts)

    # Facts ----------------------------------------------------------------------------------------

    @property
    def state(self) -> ConsumerGroupState:
        return ConsumerGroupState.EMPTY if self.is_empty else ConsumerGroupState.STABLE

    @property
    def is_empty(self) -> bool:
        return not len(self.members)

    @property
    def is_homogeneous(self) -> bool:
        return is_homogeneous((count for _, count in self.counts.items()), len(self.members))

    def is_subscribed(self, topic: str) -> bool:
        return topic in self.counts

    def target_of(self, member_id: str) -> Target:
        return self.targets.get(member_id, NO_TARGET)

    def must_refresh(self, now_ms: int) -> bool:
        deadline_ms, epoch = self.refresh_at
        return now_ms >= deadline_ms or self.epoch < epoch

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
