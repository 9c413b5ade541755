# SPDX-License-Identifier: Apache-2.0
"""ConsumerGroupHeartbeat: a member joins or stays, and learns which partitions it may consume.

1. The request's fields.      5. The member's fields, and its pattern (`patterns.py`).
2. The group.                 6. The group's epoch, and the targets (`broker_assigned/target.py`).
3. Room for a new member.     7. This member's reconciliation: one step toward its target.
4. The member and its epoch.

The assignor sees the members in the order of the group's hash map, with the updated member in its
old place; a new member comes last. The response contains an assignment if the member joins or sends
all its fields, or if its partitions have changed. It lists the partitions that the member may
consume now, not those that it waits for.

Source   GroupCoordinatorService.consumerGroupHeartbeat, GroupMetadataManager
         (consumerGroupHeartbeat, updateSubscriptionMetadata),
         UpdatedMembersAndTargetAssignmentView, UnionSet, CurrentAssignmentBuilder (Kafka 4.4.0);
         KIP-848; docs/behaviour/consumer-groups.md#3-heartbeats,
         docs/behaviour/consumer-groups.md#4-reconciliation.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from kafka_rebalance.assignors.consumer import range as range_assignor
from kafka_rebalance.assignors.consumer import targets, uniform
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.java.hash_map import HashMap, HashSet, Uuid, uuid_hash
from kafka_rebalance.java.hash_table import DEFAULT_SLOTS
from kafka_rebalance.java.order import java_hash_order
from kafka_rebalance.wire import broker_groups as wire
from kafka_rebalance.wire.broker_groups import TopicPartitions
from kafka_rebalance.wire.error_codes import ErrorCode

from ..broker_assigned import log
from ..broker_assigned.group import Names, ReconciliationState
from ..broker_assigned.kind import BrokerAssigned
from ..broker_assigned.members import (
    UNCHANGED_MS,
    RequestRefused,
    arm_or_cancel_rebalance,
    is_blank,
    stepped,
    updated,
)
from ..broker_assigned.records import target_topics
from ..broker_assigned.table_order import copied_map_slots, in_copied_set, in_table, topic_table
from ..broker_assigned.target import Answer, EpochChange, Target, group_view, target_for, with_epoch
from ..machine.events import Received
from ..machine.state import Shard
from . import patterns
from .group import (
    NO_PARTITIONS,
    ConsumerGroup,
    ConsumerGroupMember,
    PartitionEpochs,
    is_homogeneous,
)
from .patterns import PatternChange

Owned = tuple[TopicPartitions, ...] | None
_Epochs = Mapping[int, int]
_ASSIGNORS: dict[str, Callable[[targets.View], Any]] = {
    "uniform": uniform.targets_of,
    "range": range_assignor.targets_of,
}
_FIELDS = (
    "instance_id",
    "rack_id",
    "rebalance_timeout_ms",
    "server_assignor",
    "subscribed_topic_names",
    "subscribed_topic_regex",
)


def refuse_fields(
    state: Shard, request: wire.ConsumerGroupHeartbeat, version: int | None
) -> ErrorCode:
    """Returns the error for the request's fields or its assignor's name, else NONE."""
    # 1.
    epoch = request.member_epoch
    texts: list[str | None] = [request.group_id]
    if version is None or version >= 1 or epoch > wire.JOIN_EPOCH or epoch == wire.LEAVE_EPOCH:
        texts.append(request.member_id)
    texts += [request.instance_id, request.rack_id]
    invalid = any(map(is_blank, texts)) or epoch < wire.LEAVE_STATIC_EPOCH
    if epoch == wire.JOIN_EPOCH:
        names = (request.subscribed_topic_names, request.subscribed_topic_regex)
        invalid |= request.rebalance_timeout_ms == UNCHANGED_MS
        invalid |= request.topic_partitions != () or names == (None, None)
    elif epoch == wire.LEAVE_STATIC_EPOCH:
        invalid |= request.instance_id is None
    if invalid:
        return ErrorCode.INVALID_REQUEST
    known = (None, *state.config.group_consumer_assignors)
    return ErrorCode.NONE if request.server_assignor in known else ErrorCode.UNSUPPORTED_ASSIGNOR


def beat(
    kind: BrokerAssigned, state: Shard, event: Received, request: wire.ConsumerGroupHeartbeat
) -> None:
    """Answers the heartbeat of a member that joins or stays. Errors: RequestRefused."""
    records: log.Records = []
    # 2. and 3.
    group, converted = kind.group_for(state, request, records)
    member_id = request.member_id or state.new_member_id()
    kind.check_room(state, group, member_id, request.instance_id)
    # 4.
    asked = replace(request, member_id=member_id)
    old = kind.find_member(group, asked, records)
    # 5. and 6.
    new = updated(old, event, asked, _FIELDS, classic=None)
    is_changed = new.subscribed_topic_names != old.subscribed_topic_names
    if new != old:
        records.append(group.member_record(new))
    change = EpochChange(group, old, new, records, group.epoch, group.is_homogeneous)
    pattern = patterns.update(state, change)
    change = _epoch(state, change, is_changed, pattern.change)
    has_changed = is_changed or pattern.change is not PatternChange.NONE
    try:
        new = reconciled(state, change, has_changed, request.topic_partitions)
        shown = _shown(request, old, new)
        kind.answer(state, event, group, new, records, converted=converted, assignment=shown)
    finally:
        patterns.ask(state, group.group_id, pattern.to_resolve)


def _epoch(
    state: Shard, change: EpochChange, is_changed: bool, pattern: PatternChange
) -> EpochChange:
    group, default = change.group, state.config.group_consumer_assignors[0]
    before = group.preferred_assignor()
    after = group.preferred_assignor_with(change.old, change.member)
    is_new = is_changed or pattern is PatternChange.UPDATED_AND_RESOLVED
    is_new |= (before or default) != (after or default)
    if is_new or group.must_refresh(state.now_ms):
        return next_epoch(state, change, is_new=is_new)
    return change


def reconciled(
    state: Shard, change: EpochChange, has_changed_subscription: bool, owned: Owned
) -> ConsumerGroupMember:
    """Returns the changed member after one step toward its target."""
    # 6. and 7.
    target = target_for(state, change, partial(targets_of, state, change))
    return one_step(state, change, target, has_changed_subscription, owned)


def one_step(
    state: Shard,
    change: EpochChange,
    target: tuple[int, Target],
    has_changed_subscription: bool,
    owned: Owned,
) -> ConsumerGroupMember:
    """Returns the changed member after one step toward `target`, a pair (epoch, target)."""
    group, member = change.group, change.member
    names = subscribed_names(group, member)
    topics = frozenset(state.cluster.ids(names))
    steps = Reconciliation(group, *target, names, topics, has_changed_subscription, owned)
    new = steps.next(member)
    if new != member:
        change.records.append(group.current_record(new))
        if new.classic is None:
            arm_or_cancel_rebalance(state, group.group_id, new)
    return new


def _shown(
    request: wire.ConsumerGroupHeartbeat, old: ConsumerGroupMember, new: ConsumerGroupMember
) -> tuple[TopicPartitions, ...] | None:
    """Returns the assignment in the response; None if the response has none."""
    subscription = (request.subscribed_topic_names, request.subscribed_topic_regex)
    is_full = (
        request.rebalance_timeout_ms != UNCHANGED_MS
        and subscription != (None, None)
        and request.topic_partitions is not None
    )
    shows = request.member_epoch == wire.JOIN_EPOCH or is_full or old.assigned != new.assigned
    return target_topics(new.assigned) if shows else None


# Epochs and targets -------------------------------------------------------------------------------


def next_epoch(state: Shard, change: EpochChange, *, is_new: bool) -> EpochChange:
    """Returns the change, with the next epoch if `is_new` or if the topics' metadata changed."""
    group, old, new = change.group, change.old, change.member
    counts = group.counts_with(old, new)
    change = with_epoch(state, change, counts, is_new=is_new)
    if group.has_old_metadata:
        change.records.append(group.old_metadata_tombstone())
    is_known = new.member_id in group.members or new.instance_id in group.static_members
    members = len(group.members) + (not is_known)
    users = [number for _, number in group.patterns_with(old, new).items()]
    return replace(change, is_homogeneous=is_homogeneous(users, counts, members))


def targets_of(state: Shard, change: EpochChange) -> tuple[Answer, dict[str, Target | None]]:
    """Returns the new targets, and the present ones in Kafka's order. Errors: AssignorThrows."""
    group, old, new = change.group, change.old, change.member
    default = state.config.group_consumer_assignors[0]
    assignor = group.preferred_assignor_with(old, new) or default
    members, replaced = group.members_with(new), group.replaced_id(new)
    present = {one: group.targets.get(one) for one in java_hash_order(list(members))}
    if replaced is not None:
        present[new.member_id] = group.targets.get(replaced)
    view = group_view(state, change, present, members, partial(subscribed_names, group))
    return _ASSIGNORS[assignor](view), present


def subscribed_names(group: ConsumerGroup, member: ConsumerGroupMember) -> Names:
    """Returns the names of a member's topics and of its pattern's topics, in Kafka's order."""
    names = member.subscribed_topic_names
    resolved = None if member.pattern is None else group.resolved.get(member.pattern)
    if resolved is None or not resolved.topics:
        return names if names or resolved is None else resolved.topics
    larger, smaller = resolved.topics, names
    if len(larger) < len(smaller):
        larger, smaller = smaller, larger
    return {**larger, **smaller}


# Reconciliation -----------------------------------------------------------------------------------


class Reconciliation(Frozen):
    """Moves one member toward its target; a partition has one owner at a time.

    1. If a member is STABLE in the target's epoch, or UNREVOKED_PARTITIONS with a pending partition
       that it has not given up, it stays as it is, unless its subscription has changed (3.).
    2. If partitions are revoked that the member has not given up already, it is
       UNREVOKED_PARTITIONS in its old epoch, and gets nothing new. Otherwise it enters the target's
       epoch with the kept and the free partitions: UNRELEASED_PARTITIONS if a partition of the
       target is not free, else STABLE.
    3. Partitions of topics to which the member no longer subscribes become pending at once.

    A topic to which the member does not subscribe counts as a topic with an empty target. `names`
    and `topics` (ids) are the subscribed topics.
    """

    group: ConsumerGroup
    target_epoch: int
    target: Target
    names: Names
    topics: frozenset[Uuid]
    has_changed_subscription: bool
    owned: Owned

    def next(self, member: ConsumerGroupMember) -> ConsumerGroupMember:
        """Returns the changed member. Errors: RequestRefused if UNKNOWN, unless it owns nothing."""
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
        """Returns whether the member owns one of the partitions, or did not report any list."""
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
        """Adds partitions to `assigned`; the topic had `size` assigned partitions before."""
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
    """Returns both maps after moving topics from assigned to pending, as by `HashMap.merge`."""
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
