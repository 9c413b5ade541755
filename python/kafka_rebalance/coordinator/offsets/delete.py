# SPDX-License-Identifier: Apache-2.0
"""Deletes offsets: for an OffsetDelete request, with deleted groups, and with deleted partitions.

Source   OffsetMetadataManager.java, GroupCoordinatorShard.deleteGroups;
         docs/behaviour/coordinator.md#85-deletes; KIP-496 (OffsetDelete).
"""

from kafka_rebalance.wire.classic_groups import DeleteGroups, DeleteGroupsResponse
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.offsets import OffsetDelete, OffsetDeleteResponse, PartitionError

from ..classic_group.member_checks import refuse_in_state
from ..classic_group.records import offset_tombstone
from ..machine.continuations import SendResponse
from ..machine.events import PartitionsDeleted, Received
from ..machine.state import AnyGroup, CoordinatorState, Write
from .order import Forget, OffsetChange


def offset_delete(state: CoordinatorState, event: Received, request: OffsetDelete) -> None:
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
    state: CoordinatorState, group: AnyGroup | None, request: OffsetDelete | DeleteGroups
) -> ErrorCode:
    if group is None:
        return refuse_in_state(None, request)
    return state.kind(group).refuse_deletion(group, request)


def delete_groups(state: CoordinatorState, event: Received, request: DeleteGroups) -> None:
    """Deletes empty groups and their offsets; a repeated group id has one result."""
    continue_deletion(state, event.request_id, request, tuple(dict.fromkeys(request.group_ids)))


def continue_deletion(
    state: CoordinatorState,
    request_id: int,
    request: DeleteGroups,
    group_ids: tuple[str, ...],
) -> None:
    """Marks the share state of these groups one by one, then deletes all groups of the request."""
    for kind in state.kinds.values():
        if kind.starts_deletion(state, request_id, request, group_ids):
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
    then = SendResponse(request_id, response, request)
    state.append(records, Write(then, deleted=tuple(deleted)), changes)


def partitions_deleted(state: CoordinatorState, event: PartitionsDeleted) -> None:
    """Deletes the offsets of deleted partitions, and the share state of deleted topics."""
    forgotten = []
    for group_id in state.offsets.groups():
        offsets = state.offsets.latest(group_id)
        # An offset can be that of a partition that its topic never had.
        whole = [one for one in state.offsets.partitions(group_id) if one[0] in event.topics]
        for partition in (*event.partitions, *whole):
            # Kafka writes a tombstone for the committed value and for each pending value.
            holders = [values for values in offsets.pending.values() if partition in values]
            count = len(holders) + (offsets.value(partition) is not None)
            forgotten += [Forget(group_id, partition)] * count
    _forget(state, forgotten, Write(None))
    for kind in state.kinds.values():
        kind.topics_deleted(state, event.topic_ids)


def _forget(state: CoordinatorState, forgotten: list[Forget], write: Write) -> None:
    state.append([offset_tombstone(*one) for one in forgotten], write, forgotten)
