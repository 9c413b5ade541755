# SPDX-License-Identifier: Apache-2.0
"""Deletes offsets: for an OffsetDelete request, with deleted groups, and with deleted partitions.

Source   OffsetMetadataManager.java, GroupCoordinatorShard.deleteGroups;
         docs/behaviour/coordinator.md#85-deletes; KIP-496 (OffsetDelete).
"""

from kafka_rebalance.wire.classic_groups import DeleteGroups, DeleteGroupsResponse
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.group_states import GroupState
from kafka_rebalance.wire.offsets import OffsetDelete, OffsetDeleteResponse, PartitionError

from ..classic_group.group import CONSUMER, Group
from ..classic_group.member_checks import refuse_in_state
from ..classic_group.records import offset_tombstone
from ..machine.continuations import SendResponse
from ..machine.events import PartitionsDeleted, Received
from ..machine.state import AnyGroup, CoordinatorState, Write
from ..machine.tombstones import tombstones_of
from ..share_group.group import ShareGroup
from ..share_group.initialization import forget_topics, mark_share_state
from .order import Forget, OffsetChange


def offset_delete(state: CoordinatorState, event: Received, request: OffsetDelete) -> None:
    """Deletes offsets, except those of topics that the group is subscribed to."""
    group = state.groups.get(request.group_id)
    error = _refuse(group, request)
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


def _refuse(group: AnyGroup | None, request: OffsetDelete | DeleteGroups) -> ErrorCode:
    is_deletion = isinstance(request, DeleteGroups)
    if isinstance(group, ShareGroup) and not is_deletion:
        return ErrorCode.GROUP_ID_NOT_FOUND
    if group is not None and not isinstance(group, Group):
        is_refused = is_deletion and not group.is_empty
        return ErrorCode.NON_EMPTY_GROUP if is_refused else ErrorCode.NONE
    error = refuse_in_state(group, request)
    if group is None or is_deletion or error is not ErrorCode.NONE:
        return error
    other = group.not_(GroupState.EMPTY) and group.protocol_type != CONSUMER
    return ErrorCode.NON_EMPTY_GROUP if other else ErrorCode.NONE


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
    if mark_share_state(state, request_id, request, group_ids):
        return
    codes, records, changes, deleted = [], [], list[OffsetChange](), []
    for group_id in dict.fromkeys(request.group_ids):
        group = state.groups.get(group_id)
        error = _refuse(group, request)
        codes.append((group_id, error))
        if group is not None and error is ErrorCode.NONE:
            forgotten = [Forget(group_id, one) for one in state.offsets.partitions(group_id)]
            records += [offset_tombstone(*one) for one in forgotten]
            records += tombstones_of(group)
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
    forget_topics(state, event.topic_ids)


def _forget(state: CoordinatorState, forgotten: list[Forget], write: Write) -> None:
    state.append([offset_tombstone(*one) for one in forgotten], write, forgotten)
