# SPDX-License-Identifier: Apache-2.0
"""The group's next epoch, and the targets of all members, by one of the brokers' assignors.

1. A changed subscription, a changed assignor, or changed metadata of the topics makes a new epoch;
   one request makes one at most. The metadata is looked at if the request makes an epoch anyway,
   or if a subscribed topic has changed since the last look.
2. Targets are computed if the group's epoch is larger than theirs, but not within the assignment
   interval after the last targets. Until then, members are reconciled with the old targets.
3. The members are those of the group, in the order of its table, with the updated member in its old
   place; a new member is the last. A static member's new id replaces its old one.
4. A member subscribes to its names and to the topics of its pattern, if that is resolved: the
   larger set first, then the names that only the smaller one has.
5. The present targets are those in memory.
6. A record is written for each member whose target has changed, then one for their epoch.

Source   GroupMetadataManager.updateSubscriptionMetadata, maybeUpdateTargetAssignment,
         TargetAssignmentBuilder, UpdatedMembersAndTargetAssignmentView, UnionSet (Kafka 4.4.0).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kafka_rebalance.assignors.consumer import range as range_assignor
from kafka_rebalance.assignors.consumer import targets, uniform
from kafka_rebalance.errors import AssignorThrows
from kafka_rebalance.group.model import Member
from kafka_rebalance.java.order import java_hash_order
from kafka_rebalance.wire.broker_records import BrokerRecord
from kafka_rebalance.wire.error_codes import ErrorCode

from ..broker_assigned import log
from ..broker_assigned.group import Names
from ..broker_assigned.members import RequestRefused
from ..broker_assigned.target import NO_TARGET, Target, group_view, has_changed, table_of, target_in
from ..machine.cluster import ClusterTopics
from ..machine.state import CoordinatorState
from .group import RECORDS, ConsumerGroup, epoch_record, old_metadata_tombstone
from .member import ConsumerGroupMember, is_homogeneous

_ASSIGNORS: dict[str, Callable[[targets.View], Any]] = {
    "uniform": uniform.targets_of,
    "range": range_assignor.targets_of,
}


@dataclass(frozen=True, slots=True)
class EpochChange:
    """A heartbeat's change of a group: `member` replaces the member of its id or instance id."""

    group: ConsumerGroup
    member: ConsumerGroupMember
    epoch: int
    is_homogeneous: bool


def next_epoch(
    state: CoordinatorState,
    change: EpochChange,
    old: ConsumerGroupMember,
    records: log.Records,
    *,
    is_new: bool,
) -> EpochChange:
    """Returns the change with the group's next epoch, if it gets one; `is_new`: it gets one."""
    # 1.
    group, new = change.group, change.member
    counts = group.counts_with(old, new)
    metadata_hash = state.cluster.hash_of(counts)
    members = len(group.members)
    if new.member_id not in group.members and new.instance_id not in group.static_members:
        members += 1
    epoch = group.epoch
    if is_new or metadata_hash != group.metadata_hash:
        epoch += 1
        records.append(epoch_record(group.group_id, epoch, metadata_hash))
    group.refreshed(state.now_ms, epoch)
    if group.has_old_metadata:
        records.append(old_metadata_tombstone(group.group_id))
    users = [number for _, number in group.patterns_with(old, new).items()]
    return EpochChange(group, new, epoch, is_homogeneous(users, counts, members))


def target_for(
    state: CoordinatorState, change: EpochChange, old: ConsumerGroupMember, records: log.Records
) -> tuple[int, Target]:
    """Returns the epoch and the target with which the member is reconciled.

    Errors: RequestRefused if the assignor throws.
    """
    # 2.
    group, new = change.group, change.member
    interval = state.config.group_consumer_assignment_interval_ms
    if group.assignment_epoch >= change.epoch or group.has_recent_targets(interval, state.now_ms):
        return group.assignment_epoch, group.target_of(new.member_id, new.instance_id)
    default = state.config.group_consumer_assignors[0]
    assignor = group.preferred_assignor_with(old, new) or default
    try:
        written, target = _computed(change, assignor, state.cluster, state.now_ms)
    except AssignorThrows as error:
        raise RequestRefused(ErrorCode.UNKNOWN_SERVER_ERROR) from error
    records += written
    return change.epoch, target


def _computed(
    change: EpochChange, assignor: str, cluster: ClusterTopics, now_ms: int
) -> tuple[list[BrokerRecord], Target]:
    """Returns the records, and the target of the changed member. Errors: AssignorThrows."""
    group, group_id = change.group, change.group.group_id
    # 3.
    members = _members(change)
    present = {member_id: group.targets.get(old_id) for member_id, old_id in _old_ids(change)}
    order = java_hash_order(list(members))
    views = [_view(group, members[one], present[one] or NO_TARGET, cluster) for one in order]
    answer = _ASSIGNORS[assignor](group_view(views, cluster, change.is_homogeneous))
    # 6.
    new = {member_id: target_in(answer, member_id) for member_id in order}
    changed = [one for one in order if has_changed(present[one], new[one])]
    records = [RECORDS.target_record(group_id, one, new[one]) for one in changed]
    records.append(RECORDS.target_epoch_record(group_id, change.epoch, now_ms))
    return records, new[change.member.member_id]


def subscribed_names(group: ConsumerGroup, member: ConsumerGroupMember) -> Names:
    """Returns the names of a member's topics, with those of its resolved pattern, in order."""
    # 4.
    names = member.subscribed_topic_names
    resolved = None if member.pattern is None else group.resolved.get(member.pattern)
    if resolved is None or not resolved.topics:
        return names if names or resolved is None else resolved.topics
    larger, smaller = resolved.topics, names
    if len(larger) < len(smaller):
        larger, smaller = smaller, larger
    return {**larger, **smaller}


def _members(change: EpochChange) -> dict[str, ConsumerGroupMember]:
    group, new = change.group, change.member
    replaced = group.replaced_id(new)
    members = {one: group.members[one] for one in group.members if one != replaced}
    members[new.member_id] = new
    return members


def _old_ids(change: EpochChange) -> list[tuple[str, str]]:
    """Returns pairs of a member id and the id under which the group has the member's target."""
    replaced = change.group.replaced_id(change.member)
    new = change.member.member_id
    pairs = [(one, one) for one in change.group.members if one not in (replaced, new)]
    return [*pairs, (new, new if replaced is None else replaced)]


def _view(
    group: ConsumerGroup, member: ConsumerGroupMember, present: Target, cluster: ClusterTopics
) -> targets.MemberView:
    names = subscribed_names(group, member)
    known = Member(member.member_id, (), group_instance_id=member.instance_id)
    return targets.MemberView(known, len(names), tuple(cluster.ids(names)), table_of(present))
