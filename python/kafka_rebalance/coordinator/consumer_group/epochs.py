# SPDX-License-Identifier: Apache-2.0
"""The group's next epoch, and when the targets of that epoch are computed.

1. A changed subscription, a changed assignor, or changed metadata of the topics makes a new epoch;
   one request makes one at most. The metadata is looked at if the request makes an epoch anyway,
   or if a subscribed topic has changed since the last look.
2. Targets are computed if the group's epoch is larger than theirs, but not within the assignment
   interval after the last targets. Until then, members are reconciled with the old targets.

Source   GroupMetadataManager.updateSubscriptionMetadata, maybeUpdateTargetAssignment (Kafka 4.4.0).
"""

from kafka_rebalance.errors import AssignorThrows
from kafka_rebalance.wire.error_codes import ErrorCode

from ..broker_assigned import log
from ..broker_assigned.members import RequestRefused
from ..broker_assigned.target import Target
from ..machine.state import CoordinatorState
from .member import ConsumerGroupMember
from .records import epoch_record, old_metadata_tombstone
from .subscription_counts import is_homogeneous
from .target import EpochChange, compute


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
        written, target = compute(change, assignor, state.cluster, state.now_ms)
    except AssignorThrows as error:
        raise RequestRefused(ErrorCode.UNKNOWN_SERVER_ERROR) from error
    records += written
    return change.epoch, target
