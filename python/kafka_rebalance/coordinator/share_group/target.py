# SPDX-License-Identifier: Apache-2.0
"""The group's next epoch, and the targets of all members, by the assignor `share/simple`.

1. A changed subscription, initialised partitions that no target contains, or changed metadata of
   the topics makes a new epoch; one request makes one at most. The metadata is looked at as in
   `consumer_group/target.py`.
2. Targets are computed if the group's epoch is larger than theirs, but not within the assignment
   interval after the last targets.
3. The members have the order of the group's table, in which a new member has its place already.
   Only initialised partitions are assigned anew.
4. A record is written for each member whose target has changed, then one for their epoch.

Source   GroupMetadataManager.shareGroupHeartbeat, initializedAssignmentPending,
         maybeUpdateTargetAssignment, TargetAssignmentBuilder (Kafka 4.4.0).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from kafka_rebalance.assignors.consumer import targets
from kafka_rebalance.assignors.share import simple
from kafka_rebalance.errors import AssignorThrows
from kafka_rebalance.group.model import Member
from kafka_rebalance.java.order import java_hash_order
from kafka_rebalance.wire.error_codes import ErrorCode

from ..broker_assigned import log
from ..broker_assigned.members import RequestRefused
from ..broker_assigned.target import Target, group_view, has_changed, table_of, target_in
from ..machine.state import CoordinatorState
from .group import RECORDS, ShareGroup, ShareGroupMember, epoch_record, is_homogeneous


@dataclass(frozen=True, slots=True)
class ShareEpochChange:
    """A heartbeat's change of a group, which has the member already; `topics`: their names."""

    group: ShareGroup
    member: ShareGroupMember
    epoch: int
    is_homogeneous: bool
    topics: Iterable[str]
    is_new: bool


def next_share_epoch(
    state: CoordinatorState,
    group: ShareGroup,
    old: ShareGroupMember,
    new: ShareGroupMember,
    records: log.Records,
) -> ShareEpochChange:
    """Returns the change of the group by the member's new fields."""
    # 1.
    is_new = new.subscribed_topic_names != old.subscribed_topic_names
    if group.assignment_epoch >= group.epoch:
        is_new |= group.misses_initialized_partitions()
    if not is_new and not group.must_refresh(state.now_ms):
        every = group.is_homogeneous
        return ShareEpochChange(group, new, group.epoch, every, group.counts, is_new)
    counts = group.counts_with(old, new)
    metadata_hash = state.cluster.hash_of(counts)
    is_new |= metadata_hash != group.metadata_hash
    epoch = group.epoch
    if is_new:
        epoch += 1
        records.append(epoch_record(group.group_id, epoch, metadata_hash))
    group.refreshed(state.now_ms, epoch)
    every = is_homogeneous((count for _, count in counts.items()), len(group.members))
    return ShareEpochChange(group, new, epoch, every, counts, is_new)


def share_target_for(
    state: CoordinatorState, change: ShareEpochChange, records: log.Records
) -> tuple[int, Target]:
    """Returns the epoch and the target with which the member is reconciled.

    Errors: RequestRefused if the assignor throws.
    """
    # 2.
    group = change.group
    interval = state.config.group_share_assignment_interval_ms
    if group.assignment_epoch >= change.epoch or group.has_recent_targets(interval, state.now_ms):
        return group.assignment_epoch, group.target_of(change.member.member_id)
    try:
        return change.epoch, _computed(state, change, records)
    except AssignorThrows as error:
        raise RequestRefused(ErrorCode.UNKNOWN_SERVER_ERROR) from error


def _computed(state: CoordinatorState, change: ShareEpochChange, records: log.Records) -> Target:
    group, cluster = change.group, state.cluster
    # 3.
    order = java_hash_order(list(group.members))
    views = [_view(state, change, member_id) for member_id in order]
    view = group_view(views, cluster, change.is_homogeneous)
    initialized = {} if group.share_state is None else group.share_state.initialized
    assignable = {
        topic: [p for p in range(one.partitions) if p in initialized[topic].partitions]
        for topic, one in cluster.by_id.items()
        if topic in initialized
    }
    answer = simple.targets_of(view, assignable)
    # 4.
    new = {member_id: target_in(answer, member_id) for member_id in order}
    changed = [one for one in order if has_changed(group.targets.get(one), new[one])]
    records += [RECORDS.target_record(group.group_id, one, new[one]) for one in changed]
    records.append(RECORDS.target_epoch_record(group.group_id, change.epoch, state.now_ms))
    return new[change.member.member_id]


def _view(state: CoordinatorState, change: ShareEpochChange, member_id: str) -> targets.MemberView:
    group, new = change.group, change.member
    member = new if member_id == new.member_id else group.members[member_id]
    names = member.subscribed_topic_names
    ids = tuple(state.cluster.ids(names))
    return targets.MemberView(
        Member(member_id, ()), len(names), ids, table_of(group.target_of(member_id))
    )
