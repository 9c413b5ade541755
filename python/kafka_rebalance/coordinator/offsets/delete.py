# SPDX-License-Identifier: Apache-2.0
"""Deletes offsets: on request, with deleted groups and partitions, and when they expire (KIP-211).

Source   OffsetMetadataManager (cleanupExpiredOffsets, …), ClassicGroup.offsetExpirationCondition,
         GroupCoordinatorShard.deleteGroups; docs/behaviour/coordinator.md#85-deletes,
         docs/behaviour/coordinator.md#86-expiry; KIP-496 (OffsetDelete).
"""

from kafka_rebalance.wire.classic_groups import DeleteGroups, DeleteGroupsResponse
from kafka_rebalance.wire.error_codes import ErrorCode, of_operation_error
from kafka_rebalance.wire.messages import GroupState
from kafka_rebalance.wire.offsets import OffsetDelete, OffsetDeleteResponse, PartitionError

from ..classic_group.group import CONSUMER, Group, offset_tombstone
from ..classic_group.member_requests import refuse_in_state
from ..machine.continuations import Continuation, SendResponse
from ..machine.events import PartitionsDeleted, Received
from ..machine.state import AnyGroup, Shard, Write, of_kind
from .store import CommittedOffset, Forget, OffsetChange, Partition


def offset_delete(state: Shard, event: Received, request: OffsetDelete) -> None:
    """Deletes offsets, except those of topics that the group is subscribed to."""
    group = state.groups.get(request.group_id)
    error = _refuse(state, group, request)
    if group is None or error is not ErrorCode.NONE:
        state.respond(event.request_id, OffsetDeleteResponse(error_code=error))
        return
    offsets = state.offsets.latest(group.group_id)
    codes, forgotten = [], []
    for partition in request.partitions:
        subscribed = group.is_subscribed(partition[0])
        code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE
        codes.append(PartitionError(*partition, code))
        there = offsets.value(partition) is not None or offsets.is_pending(partition)
        if there and not subscribed:
            forgotten.append(Forget(group.group_id, partition))
    response = OffsetDeleteResponse(partitions=tuple(codes))
    _forget(state, forgotten, Write(SendResponse(event.request_id, response, request)))


def _refuse(
    state: Shard, group: AnyGroup | None, request: OffsetDelete | DeleteGroups
) -> ErrorCode:
    if group is None:
        return refuse_in_state(None, request)
    return state.kind(group).refuse_deletion(group, request)


def delete_groups(state: Shard, event: Received, request: DeleteGroups) -> None:
    """Deletes empty groups and their offsets; a repeated group id has one result."""
    group_ids = tuple(dict.fromkeys(request.group_ids))
    ContinueDeletion(event.request_id, request, group_ids).done(state)


class ContinueDeletion(Continuation):
    """Continues a deletion: marks the share state of `group_ids`, then deletes all groups."""

    request_id: int
    request: DeleteGroups
    group_ids: tuple[str, ...]

    def done(self, state: Shard) -> None:
        request = self.request
        for kind in state.kinds.values():
            if kind.starts_deletion(state, self.request_id, request, self.group_ids):
                return
        codes, records, changes, deleted = [], [], list[OffsetChange](), []
        for group_id in dict.fromkeys(request.group_ids):
            group = state.groups.get(group_id)
            error = _refuse(state, group, request)
            codes.append((group_id, error))
            if group is not None and error is ErrorCode.NONE:
                forgotten = [Forget(group_id, one) for one in state.offsets.partitions(group_id)]
                records += [offset_tombstone(*one) for one in forgotten]
                records += state.kind(group).tombstones(group)
                changes += forgotten
                deleted.append(group)
                state.forget(group)
        response = DeleteGroupsResponse(groups=tuple(codes))
        then = SendResponse(self.request_id, response, request)
        state.append(records, Write(then, deleted=tuple(deleted)), changes)

    def failed(self, state: Shard, error: ErrorCode) -> None:
        state.respond(self.request_id, self.request.refused(of_operation_error(error)))


def partitions_deleted(state: Shard, event: PartitionsDeleted) -> None:
    """Deletes the offsets of deleted partitions, and the share state of deleted topics.

    An offset remains if it was committed for a topic with the same name and another id.
    """
    forgotten = []
    topic_ids = dict(event.topics)
    for group_id in state.offsets.groups():
        offsets = state.offsets.latest(group_id)
        # All offsets of a deleted topic are deleted, even those of partitions that it never had.
        whole = [one for one in state.offsets.partitions(group_id) if one[0] in topic_ids]
        for partition in (*event.partitions, *whole):
            deleted = (None, topic_ids.get(partition[0]))
            # Kafka writes a tombstone for the committed value and for each pending value.
            tables = (offsets.committed, *offsets.pending.values())
            values = [table[partition].value for table in tables if partition in table]
            count = sum(value is not None and value.topic_id in deleted for value in values)
            forgotten += [Forget(group_id, partition)] * count
    _forget(state, forgotten, Write(None))
    for kind in state.kinds.values():
        kind.topics_deleted(state, tuple(topic_ids.values()))


def _forget(state: Shard, forgotten: list[Forget], write: Write) -> None:
    state.append([offset_tombstone(*one) for one in forgotten], write, forgotten)


# Expiry -------------------------------------------------------------------------------------------


def sweep(state: Shard) -> None:
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
