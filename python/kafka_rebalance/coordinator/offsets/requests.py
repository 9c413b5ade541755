# SPDX-License-Identifier: Apache-2.0
"""The requests about committed offsets, and their expiry (KIP-211).

Source   OffsetMetadataManager (fetchOffsets, cleanupExpiredOffsets, …), GroupCoordinatorShard
         (deleteGroups), ClassicGroup (validateOffsetCommit, offsetExpirationCondition);
         docs/behaviour/coordinator.md#82-who-may-commit,
         docs/behaviour/coordinator.md#83-commits-and-transactions,
         docs/behaviour/coordinator.md#84-offsetfetch,
         docs/behaviour/coordinator.md#85-deletes, docs/behaviour/coordinator.md#86-expiry;
         KIP-447 (transactions, stable offsets), KIP-496 (OffsetDelete).
"""

from kafka_rebalance.wire import offsets as wire
from kafka_rebalance.wire.classic_groups import DeleteGroups, DeleteGroupsResponse
from kafka_rebalance.wire.error_codes import ErrorCode, of_operation_error
from kafka_rebalance.wire.messages import GroupState

from ..classic_group.group import CONSUMER, Group, offset_record, offset_tombstone
from ..classic_group.kind import refuse_in_state, refuse_member
from ..machine.events import Answer, Continuation, PartitionsDeleted, Received
from ..machine.state import AnyGroup, Shard, Write, of_kind
from .store import Commit, CommittedOffset, Forget, GroupOffsets, Marker, OffsetChange, Partition


def offset_commit(state: Shard, event: Received, request: wire.CommitRequest) -> None:
    """Stages the offsets of a commit; the response is sent when the append is durable."""
    group = state.groups.get(request.group_id)
    classic = of_kind(group, Group)
    if group is None or classic is not None:
        error = _check(event, classic, request)
    else:
        stored = [one for one in request.offsets if not _is_too_large(state, one)]
        error = state.kind(group).refuse_commit(state, event, group, request, stored)
    if error is not ErrorCode.NONE:
        state.respond(event.request_id, request.refused(error))
        return
    # Only a commit outside a transaction renews the member's session.
    renewing = (GroupState.STABLE, GroupState.PREPARING_REBALANCE)
    is_transaction = isinstance(request, wire.TxnOffsetCommit)
    if classic is not None and not is_transaction and classic.is_(*renewing):
        state.renew_session(classic, classic.members[request.member_id])
    _commit(state, event, request)


def _check(event: Received, group: Group | None, request: wire.CommitRequest) -> ErrorCode:
    if request.generation_id < 0 and (group is None or group.is_(GroupState.EMPTY)):
        return ErrorCode.NONE
    if group is None:
        version = event.api_version
        is_new = version is None or version >= request.knows_epochs
        return ErrorCode.GROUP_ID_NOT_FOUND if is_new else ErrorCode.ILLEGAL_GENERATION
    has_ids = request.member_id or request.group_instance_id is not None
    if request.generation_id >= 0 or has_ids:
        return refuse_member(group, request)
    if isinstance(request, wire.TxnOffsetCommit) or group.is_(GroupState.DEAD):
        return refuse_in_state(group, request)
    return ErrorCode.UNKNOWN_MEMBER_ID


def _commit(state: Shard, event: Received, request: wire.CommitRequest) -> None:
    retention_ms = getattr(request, "retention_ms", None)
    producer_id = getattr(request, "producer_id", None)
    expires = None if retention_ms in (None, wire.NO_RETENTION) else state.now_ms + retention_ms
    # Kafka looks up the ids of topics only for commits outside transactions.
    topics = {} if producer_id is not None else state.cluster.topics
    commits, codes = [], []
    for one in request.offsets:
        too_large = _is_too_large(state, one)
        code = ErrorCode.OFFSET_METADATA_TOO_LARGE if too_large else ErrorCode.NONE
        codes.append(wire.PartitionError(one.topic, one.partition, code))
        if not too_large:
            epoch = None if one.leader_epoch == -1 else one.leader_epoch
            text = one.metadata or ""
            topic_id = topics[one.topic].topic_id if one.topic in topics else None
            value = CommittedOffset(one.offset, text, state.now_ms, epoch, expires, topic_id)
            partition = (one.topic, one.partition)
            commits.append(Commit(request.group_id, partition, value, producer_id))
    response = wire.OffsetCommitResponse(partitions=tuple(codes))
    if request.group_id not in state.groups:
        # The new group has only offsets. Kafka creates the group even if no offset is stored.
        state.create(request.group_id)
    then = Answer(event.request_id, response, request)
    records = [state.record(offset_record, one) for one in commits]
    state.append(records, Write(then), commits, producer_id)


def _is_too_large(state: Shard, one: wire.OffsetToCommit) -> bool:
    if not one.metadata:
        return False
    # Kafka compares Java's String.length, in UTF-16 units, with this limit in bytes.
    units = len(one.metadata.encode("utf-16-le")) // 2
    return units > state.config.offset_metadata_max_bytes


def end_transaction(state: Shard, event: Received, request: wire.EndTransaction) -> None:
    then = Answer(event.request_id, wire.EndTransactionResponse(), request)
    marker = Marker(request.producer_id, request.committed)
    state.append([], Write(then), [marker], request.producer_id, request.committed)


def offset_fetch(state: Shard, event: Received, request: wire.OffsetFetch) -> None:
    """Sends durable offsets; with `require_stable`, the latest ones, once they are durable."""
    if request.require_stable:
        offsets = state.offsets.latest(request.group_id)
        response = _fetched(state, state.groups.get(request.group_id), offsets, request)
        state.answer_when_durable(Answer(event.request_id, response, request))
    else:
        offsets = state.offsets.durable(request.group_id)
        group = state.durable_group(request.group_id)
        state.respond(event.request_id, _fetched(state, group, offsets, request))


def _fetched(
    state: Shard, group: AnyGroup | None, offsets: GroupOffsets, request: wire.OffsetFetch
) -> wire.OffsetFetchResponse:
    error = ErrorCode.NONE if group is None else state.kind(group).refuse_fetch(group, request)
    if error is not ErrorCode.NONE:
        return wire.OffsetFetchResponse(error_code=error)
    # Committed offsets of a removed group are ignored, but its open transactions still matter.
    is_absent = group is None or group.state is GroupState.DEAD or not group.has_offsets
    wanted = request.partitions
    if wanted is None:
        there = () if is_absent else offsets.values()
        wanted = tuple(sorted(partition for partition, _ in there))
    found = []
    for partition in wanted:
        value = None if is_absent else offsets.value(partition)
        if request.require_stable and offsets.is_pending(partition):
            unstable = ErrorCode.UNSTABLE_OFFSET_COMMIT
            found.append(wire.FetchedOffset(*partition, error_code=unstable))
        elif value is None:
            found.append(wire.FetchedOffset(*partition))
        else:
            epoch = -1 if value.leader_epoch is None else value.leader_epoch
            found.append(wire.FetchedOffset(*partition, value.offset, epoch, value.metadata))
    return wire.OffsetFetchResponse(offsets=tuple(found))


# Deletes ------------------------------------------------------------------------------------------


def offset_delete(state: Shard, event: Received, request: wire.OffsetDelete) -> None:
    """Deletes offsets, except those of topics that the group is subscribed to."""
    group = state.groups.get(request.group_id)
    error = _refuse(state, group, request)
    if group is None or error is not ErrorCode.NONE:
        state.respond(event.request_id, wire.OffsetDeleteResponse(error_code=error))
        return
    offsets = state.offsets.latest(group.group_id)
    codes, forgotten = [], []
    for partition in request.partitions:
        subscribed = group.is_subscribed(partition[0])
        code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE
        codes.append(wire.PartitionError(*partition, code))
        there = offsets.value(partition) is not None or offsets.is_pending(partition)
        if there and not subscribed:
            forgotten.append(Forget(group.group_id, partition))
    response = wire.OffsetDeleteResponse(partitions=tuple(codes))
    _forget(state, forgotten, Write(Answer(event.request_id, response, request)))


def _refuse(
    state: Shard, group: AnyGroup | None, request: wire.OffsetDelete | DeleteGroups
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
        then = Answer(self.request_id, response, request)
        state.append(records, Write(then, deleted=tuple(deleted)), changes)

    def failed(self, state: Shard, error: ErrorCode) -> None:
        state.respond(self.request_id, self.request.refused(of_operation_error(error)))


def partitions_deleted(state: Shard, event: PartitionsDeleted) -> None:
    """Deletes the offsets of deleted partitions, and the share state of deleted topics.

    A topic's offset remains if it was committed for a topic with the same name and another id.
    """
    forgotten = []
    topic_ids = dict(event.topics)
    for group_id in state.offsets.groups():
        offsets = state.offsets.latest(group_id)
        # All offsets of a deleted topic go, even those of partitions that it never had.
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
            or not classic.is_(GroupState.STABLE)
        ):
            return False
    if group.is_subscribed(partition[0]):
        return False
    if value.expire_timestamp_ms is not None:
        return now_ms >= value.expire_timestamp_ms
    return base is not None and now_ms - base >= retention_ms
