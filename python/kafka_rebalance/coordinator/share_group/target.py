# SPDX-License-Identifier: Apache-2.0
"""The group's next epoch, and the targets of all members, by the assignor `share/simple`.

1. A changed subscription, initialised partitions that no target contains, or changed metadata of
   the topics makes a new epoch; one request makes one at most. The metadata is looked at as in
   `consumer_group/target.py`.
2. The members have the order of the group's table, in which a new member has its place already.
   Only initialised partitions are assigned anew.

`broker_assigned/target.py` has when targets are computed and written.

Source   GroupMetadataManager.shareGroupHeartbeat, initializedAssignmentPending
         (Kafka 4.4.0).
"""

from kafka_rebalance.assignors.consumer import targets
from kafka_rebalance.assignors.share import simple
from kafka_rebalance.group.model import Member
from kafka_rebalance.java.order import java_hash_order

from ..broker_assigned import log
from ..broker_assigned.target import NO_TARGET, Answer, EpochChange, Target, group_view, table_of
from ..machine.state import CoordinatorState
from .group import ShareGroup, ShareGroupMember, epoch_record, is_homogeneous


def next_epoch(
    state: CoordinatorState,
    group: ShareGroup,
    old: ShareGroupMember,
    new: ShareGroupMember,
    records: log.Records,
) -> EpochChange:
    """Returns the change of the group by the member's new fields."""
    # 1.
    is_new = new.subscribed_topic_names != old.subscribed_topic_names
    if group.assignment_epoch >= group.epoch:
        is_new |= group.misses_initialized_partitions()
    if not is_new and not group.must_refresh(state.now_ms):
        every = group.is_homogeneous
        return EpochChange(group, new, group.epoch, every, group.counts, is_new)
    counts = group.counts_with(old, new)
    metadata_hash = state.cluster.hash_of(counts)
    is_new |= metadata_hash != group.metadata_hash
    epoch = group.epoch
    if is_new:
        epoch += 1
        records.append(epoch_record(group.group_id, epoch, metadata_hash))
    group.refreshed(state.now_ms, epoch)
    every = is_homogeneous((count for _, count in counts.items()), len(group.members))
    return EpochChange(group, new, epoch, every, counts, is_new)


def targets_of(
    state: CoordinatorState, change: EpochChange
) -> tuple[Answer, dict[str, Target | None]]:
    """Returns the new targets, and the present ones in the same order. Errors: AssignorThrows."""
    group, cluster = change.group, state.cluster
    # 2.
    order = java_hash_order(list(group.members))
    views = [_view(state, change, member_id) for member_id in order]
    view = group_view(views, cluster, change.is_homogeneous)
    initialized = {} if group.share_state is None else group.share_state.initialized
    assignable = {
        topic: [p for p in range(one.partitions) if p in initialized[topic].partitions]
        for topic, one in cluster.by_id.items()
        if topic in initialized
    }
    return simple.targets_of(view, assignable), {one: group.targets.get(one) for one in order}


def _view(state: CoordinatorState, change: EpochChange, member_id: str) -> targets.MemberView:
    group, new = change.group, change.member
    member = new if member_id == new.member_id else group.members[member_id]
    names = member.subscribed_topic_names
    ids = tuple(state.cluster.ids(names))
    return targets.MemberView(
        Member(member_id, ()), len(names), ids, table_of(group.targets.get(member_id, NO_TARGET))
    )
