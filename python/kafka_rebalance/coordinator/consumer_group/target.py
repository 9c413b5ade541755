# SPDX-License-Identifier: Apache-2.0
"""The group's next epoch, and the targets of all members, by one of the brokers' assignors.

1. A changed subscription, a changed assignor, or changed metadata of the topics makes a new epoch;
   one request makes one at most. The metadata is looked at if the request makes an epoch anyway,
   or if a subscribed topic has changed since the last look.
2. The members are those of the group, in the order of its table, with the updated member in its old
   place; a new member is the last. A static member's new id replaces its old one.
3. A member subscribes to its names and to the topics of its pattern, if that is resolved: the
   larger set first, then the names that only the smaller one has.

`broker_assigned/target.py` has when targets are computed and written.

Source   GroupMetadataManager.updateSubscriptionMetadata,
         UpdatedMembersAndTargetAssignmentView, UnionSet (Kafka 4.4.0).
"""

from collections.abc import Callable
from typing import Any

from kafka_rebalance.assignors.consumer import range as range_assignor
from kafka_rebalance.assignors.consumer import targets, uniform
from kafka_rebalance.group.model import Member
from kafka_rebalance.java.order import java_hash_order

from ..broker_assigned import log
from ..broker_assigned.group import Names
from ..broker_assigned.target import NO_TARGET, Answer, EpochChange, Target, group_view, table_of
from ..machine.cluster import ClusterTopics
from ..machine.state import CoordinatorState
from .group import ConsumerGroup, epoch_record, old_metadata_tombstone
from .member import ConsumerGroupMember, is_homogeneous

_ASSIGNORS: dict[str, Callable[[targets.View], Any]] = {
    "uniform": uniform.targets_of,
    "range": range_assignor.targets_of,
}


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


def targets_of(
    state: CoordinatorState, change: EpochChange, old: ConsumerGroupMember
) -> tuple[Answer, dict[str, Target | None]]:
    """Returns the new targets, and the present ones in the same order. Errors: AssignorThrows."""
    group, new = change.group, change.member
    default = state.config.group_consumer_assignors[0]
    assignor = group.preferred_assignor_with(old, new) or default
    # 2.
    members, replaced = group.members_with(new), group.replaced_id(new)
    order = java_hash_order(list(members))
    present = {one: group.targets.get(one) for one in order}
    if replaced is not None:
        present[new.member_id] = group.targets.get(replaced)
    views = [_view(group, members[one], present[one] or NO_TARGET, state.cluster) for one in order]
    return _ASSIGNORS[assignor](group_view(views, state.cluster, change.is_homogeneous)), present


def subscribed_names(group: ConsumerGroup, member: ConsumerGroupMember) -> Names:
    """Returns the names of a member's topics, with those of its resolved pattern, in order."""
    # 3.
    names = member.subscribed_topic_names
    resolved = None if member.pattern is None else group.resolved.get(member.pattern)
    if resolved is None or not resolved.topics:
        return names if names or resolved is None else resolved.topics
    larger, smaller = resolved.topics, names
    if len(larger) < len(smaller):
        larger, smaller = smaller, larger
    return {**larger, **smaller}


def _view(
    group: ConsumerGroup, member: ConsumerGroupMember, present: Target, cluster: ClusterTopics
) -> targets.MemberView:
    names = subscribed_names(group, member)
    known = Member(member.member_id, (), group_instance_id=member.instance_id)
    return targets.MemberView(known, len(names), tuple(cluster.ids(names)), table_of(present))
