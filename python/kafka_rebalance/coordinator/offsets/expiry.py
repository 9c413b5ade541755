# SPDX-License-Identifier: Apache-2.0
"""Removes expired offsets, and groups that have neither members nor offsets (KIP-211).

    group                                         the retention time of an offset starts with
    no type (offsets only)                        its commit
    Empty                                         the moment when the group became Empty; if that
                                                  is not known, its commit
    Stable consumers, subscriptions known;        its commit; offsets of subscribed topics never
    groups whose broker assigns, of any state     expire
    any other group                               offsets never expire
    share groups                                  they have no offsets, and are never removed

In a group whose offsets can expire, an offset with its own expiry time expires at that time.

Source   OffsetMetadataManager.cleanupExpiredOffsets, ClassicGroup.offsetExpirationCondition;
         docs/behaviour/coordinator.md#86-expiry.
"""

from kafka_rebalance.wire.messages import GroupState

from ..classic_group.group import CONSUMER, Group
from ..classic_group.records import offset_tombstone
from ..machine.state import AnyGroup, CoordinatorState, Write, of_kind
from .order import CommittedOffset, Forget, OffsetChange, Partition


def sweep(state: CoordinatorState) -> None:
    """Removes expired offsets, and Empty groups that have no offsets left.

    A pending value of an open transaction keeps its partition's offset and the group. An open
    transaction without pending values keeps neither.
    """
    retention = state.config.offsets_retention_ms
    records, changes, deleted = [], list[OffsetChange](), []
    for group in list(state.groups.values()):
        if not group.has_offsets:
            continue
        offsets = state.offsets.latest(group.group_id)
        values = offsets.values()
        expired = [
            Forget(group.group_id, partition)
            for partition in state.offsets.partitions(group.group_id)
            if (value := offsets.value(partition)) is not None
            and _has_expired(group, partition, value, state.now_ms, retention)
            and not offsets.is_pending(partition)
        ]
        records += [offset_tombstone(*one) for one in expired]
        changes += expired
        if len(expired) == len(values) and not offsets.pending and group.is_empty:
            records += state.kind(group).tombstones(group)
            deleted.append(group)
            state.forget(group)
    state.append(records, Write(None, deleted=tuple(deleted)), changes)


def _has_expired(
    group: AnyGroup, partition: Partition, value: CommittedOffset, now_ms: int, retention_ms: int
) -> bool:
    base: int | None = value.commit_timestamp_ms
    classic = of_kind(group, Group)
    if classic is not None and classic.protocol_type is not None:
        if classic.is_empty:
            if classic.state_timestamp_ms is not None:
                base = classic.state_timestamp_ms
        elif (
            classic.protocol_type != CONSUMER
            or classic.subscribed_topics is None
            or classic.not_(GroupState.STABLE)
        ):
            return False
    if group.is_subscribed(partition[0]):
        return False
    if value.expire_timestamp_ms is not None:
        return now_ms >= value.expire_timestamp_ms
    return base is not None and now_ms - base >= retention_ms
