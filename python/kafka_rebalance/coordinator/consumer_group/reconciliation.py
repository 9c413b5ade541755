# SPDX-License-Identifier: Apache-2.0
"""Moves one member toward its target, at its heartbeat; a partition has one owner at a time.

1. If a member is STABLE in the target's epoch, or UNREVOKED_PARTITIONS with a pending partition
   that it has not given up, it stays as it is, unless its subscription has changed (3.).
2. If partitions are revoked that the member has not given up already, it is UNREVOKED_PARTITIONS in
   its old epoch, and gets nothing new. Otherwise it enters the target's epoch with the kept and the
   free partitions: UNRELEASED_PARTITIONS if a partition of the target is not free, else STABLE.
3. Partitions of topics to which the member no longer subscribes become pending at once.

A topic to which the member does not subscribe counts as a topic with an empty target.

Source   CurrentAssignmentBuilder (Kafka 4.4.0); KIP-848;
         docs/behaviour/consumer-groups.md#4-reconciliation.
"""

from collections.abc import Mapping

from kafka_rebalance.frozen import Frozen
from kafka_rebalance.java.hash_map import HashMap, HashSet, Uuid, uuid_hash
from kafka_rebalance.java.hash_table import DEFAULT_SLOTS
from kafka_rebalance.wire.broker_groups import TopicPartitions
from kafka_rebalance.wire.error_codes import ErrorCode

from ..broker_assigned.group import Names, ReconciliationState
from ..broker_assigned.members import RequestRefused, stepped
from ..broker_assigned.table_order import copied_map_slots, in_copied_set, in_table, topic_table
from ..broker_assigned.target import Target
from .group import NO_PARTITIONS, ConsumerGroup, ConsumerGroupMember, PartitionEpochs

Owned = tuple[TopicPartitions, ...] | None
_Epochs = Mapping[int, int]


class Reconciliation(Frozen):
    """The inputs of a reconciliation. `names` and `topics` (ids) are the subscribed topics."""

    group: ConsumerGroup
    target_epoch: int
    target: Target
    names: Names
    topics: frozenset[Uuid]
    has_changed_subscription: bool
    owned: Owned

    def next(self, member: ConsumerGroupMember) -> ConsumerGroupMember:
        """Returns the member's next state. Errors: RequestRefused for an UNKNOWN state."""
        if not self.has_changed_subscription and member.is_reconciled_to(self.target_epoch):
            return member
        # 1.
        if member.state is ReconciliationState.STABLE:
            waits = member.member_epoch == self.target_epoch
        else:
            pending = member.pending_revocation
            revokes = member.state is ReconciliationState.UNREVOKED_PARTITIONS
            waits = revokes and self._owns_one_of(pending)
        if waits:
            return self._without_dropped(member) if self.has_changed_subscription else member
        if member.state is ReconciliationState.UNKNOWN:
            if self.owned is None or self.owned:
                raise RequestRefused(ErrorCode.FENCED_MEMBER_EPOCH)
            return self._computed(member, self.target_epoch)
        return self._computed(member, member.member_epoch)

    def _owns_one_of(self, partitions: PartitionEpochs) -> bool:
        """Returns whether the member owns one of the partitions, or did not report what it owns."""
        return self.owned is None or any(
            partition in partitions.get(topic, ())
            for topic, numbers in self.owned
            for partition in numbers
        )

    def _computed(self, member: ConsumerGroupMember, epoch: int) -> ConsumerGroupMember:
        # 2.
        every = HashSet.copied(uuid_hash, self.target)
        for topic in member.assigned:
            every.add(topic)
        assigned = HashMap[Uuid, _Epochs](uuid_hash)
        revoked = HashMap[Uuid, _Epochs](uuid_hash)
        added = HashMap[Uuid, list[int]](uuid_hash)
        is_unreleased = False
        for topic in every:
            target = self.target.get(topic, ()) if topic in self.topics else ()
            current = member.assigned.get(topic, {})
            wanted = set(target)
            order = in_table(list(current), copied_map_slots(len(current)))
            kept = {partition: current[partition] for partition in order if partition in wanted}
            lost = {partition: current[partition] for partition in order if partition not in wanted}
            new = [partition for partition in in_copied_set(target) if partition not in kept]
            free = [partition for partition in new if self._is_free(member, topic, partition)]
            is_unreleased = is_unreleased or len(free) < len(new)
            for table, partitions in ((assigned, kept), (revoked, lost)):
                if partitions:
                    table.put(topic, partitions)
            if free:
                added.put(topic, free)
        if len(revoked) and self._owns_one_of(pending := dict(revoked.items())):
            revoking = ReconciliationState.UNREVOKED_PARTITIONS
            return stepped(member, revoking, epoch, dict(assigned.items()), pending)
        for topic, numbers in added.items():
            self._add(assigned, topic, numbers, len(member.assigned.get(topic, ())))
        state = ReconciliationState.STABLE
        if is_unreleased:
            state = ReconciliationState.UNRELEASED_PARTITIONS
        return stepped(member, state, self.target_epoch, dict(assigned.items()), NO_PARTITIONS)

    def _is_free(self, member: ConsumerGroupMember, topic: Uuid, partition: int) -> bool:
        is_own = partition in member.pending_revocation.get(topic, ())
        return is_own or not self.group.is_owned(topic, partition)

    def _add(
        self, assigned: HashMap[Uuid, _Epochs], topic: Uuid, partitions: list[int], size: int
    ) -> None:
        """Adds partitions to those that are kept; `size` partitions of the topic were assigned."""
        kept = assigned.compute_if_absent(topic, dict)
        epochs = {**kept, **dict.fromkeys(partitions, self.target_epoch)}
        slots = copied_map_slots(size) if kept else DEFAULT_SLOTS
        assigned.put(topic, {number: epochs[number] for number in in_table(list(epochs), slots)})

    def _without_dropped(self, member: ConsumerGroupMember) -> ConsumerGroupMember:
        # 3.
        assigned, pending = member.assigned, member.pending_revocation
        if not self.names and not pending:
            assigned, pending = NO_PARTITIONS, member.assigned
        else:
            dropped = [topic for topic in member.assigned if topic not in self.topics]
            if dropped:
                assigned, pending = _moved(assigned, pending, dropped)
        if assigned is member.assigned:
            return member
        if pending and self._owns_one_of(pending):
            revoking = ReconciliationState.UNREVOKED_PARTITIONS
            return stepped(member, revoking, member.member_epoch, assigned, pending)
        before = member.pending_revocation
        return stepped(member, member.state, member.member_epoch, assigned, before)


def _moved(
    assigned: PartitionEpochs, pending: PartitionEpochs, topics: list[Uuid]
) -> tuple[PartitionEpochs, PartitionEpochs]:
    """Moves the topics from the assigned to the pending partitions, by `HashMap.merge`."""
    left, taken = _copied(assigned), _copied(pending)
    for topic in topics:
        left.remove(topic)
        if topic not in taken:
            taken.compute_if_absent(topic, lambda at=topic: assigned[at])  # type: ignore[misc]
            continue
        slots = copied_map_slots(len(taken[topic]))
        epochs = {**taken[topic], **assigned[topic]}
        taken.put(topic, {number: epochs[number] for number in in_table(list(epochs), slots)})
    return dict(left.items()), dict(taken.items())


def _copied(partitions: PartitionEpochs) -> HashMap[Uuid, _Epochs]:
    """Returns `new HashMap(map)`."""
    return topic_table(partitions, copied_map_slots(len(partitions)))
