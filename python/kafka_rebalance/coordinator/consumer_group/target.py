# SPDX-License-Identifier: Apache-2.0
"""Computes the targets of all members with one of the brokers' assignors.

1. The members are those of the group, in the order of its table, with the updated member in its old
   place; a new member is the last. A static member's new id replaces its old one.
2. A member subscribes to its names and to the topics of its pattern, if that is resolved: the
   larger set first, then the names that only the smaller one has.
3. The present targets are those in memory.
4. A record is written for each member whose target has changed, then one for their epoch.

Source   TargetAssignmentBuilder, UpdatedMembersAndTargetAssignmentView, UnionSet (Kafka 4.4.0).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kafka_rebalance.assignors.consumer import range as range_assignor
from kafka_rebalance.assignors.consumer import targets, uniform
from kafka_rebalance.group.model import Member
from kafka_rebalance.java.order import java_hash_order
from kafka_rebalance.wire.broker_records import BrokerRecord

from ..broker_assigned.group import Names
from ..broker_assigned.target import NO_TARGET, Target, group_view, has_changed, table_of, target_in
from ..machine.cluster import ClusterTopics
from .group import ConsumerGroup
from .member import ConsumerGroupMember
from .records import target_epoch_record, target_record

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


def compute(
    change: EpochChange, assignor: str, cluster: ClusterTopics, now_ms: int
) -> tuple[list[BrokerRecord], Target]:
    """Returns the records, and the target of the changed member. Errors: AssignorThrows."""
    group, group_id = change.group, change.group.group_id
    # 1.
    members = _members(change)
    present = {member_id: group.targets.get(old_id) for member_id, old_id in _old_ids(change)}
    order = java_hash_order(list(members))
    views = [_view(group, members[one], present[one] or NO_TARGET, cluster) for one in order]
    answer = _ASSIGNORS[assignor](group_view(views, cluster, change.is_homogeneous))
    # 4.
    new = {member_id: target_in(answer, member_id) for member_id in order}
    changed = [one for one in order if has_changed(present[one], new[one])]
    records = [target_record(group_id, one, new[one]) for one in changed]
    records.append(target_epoch_record(group_id, change.epoch, now_ms))
    return records, new[change.member.member_id]


def subscribed_names(group: ConsumerGroup, member: ConsumerGroupMember) -> Names:
    """Returns the names of a member's topics, with those of its resolved pattern, in order."""
    # 2.
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
