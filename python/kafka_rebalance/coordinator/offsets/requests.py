# SPDX-License-Identifier: Apache-2.0
"""OffsetCommit, TxnOffsetCommit, the end of a transaction, and OffsetFetch.

Source   OffsetMetadataManager (fetchOffsets, …), ClassicGroup.validateOffsetCommit;
         docs/behaviour/coordinator.md#82-who-may-commit,
         docs/behaviour/coordinator.md#83-commits-and-transactions,
         docs/behaviour/coordinator.md#84-offsetfetch; KIP-447 (transactions, stable offsets).
"""

from kafka_rebalance.wire import offsets as wire
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import GroupState

from ..classic_group.group import Group, offset_record
from ..classic_group.member_requests import refuse_in_state, refuse_member
from ..machine.continuations import SendResponse
from ..machine.events import Received
from ..machine.state import AnyGroup, Shard, Write, of_kind
from .store import Commit, CommittedOffset, GroupOffsets, Marker

# For each request, the first version whose error for an absent group is GROUP_ID_NOT_FOUND.
_ABSENT_IS_NOT_FOUND: dict[type[wire.CommitRequest], int] = {
    wire.OffsetCommit: 9,
    wire.TxnOffsetCommit: 6,
}


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
        is_new = version is None or version >= _ABSENT_IS_NOT_FOUND[type(request)]
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
    then = SendResponse(event.request_id, response, request)
    records = [state.record(offset_record, one) for one in commits]
    state.append(records, Write(then), commits, producer_id)


def _is_too_large(state: Shard, one: wire.OffsetToCommit) -> bool:
    if not one.metadata:
        return False
    # Kafka compares Java's String.length, in UTF-16 units, with this limit in bytes.
    units = len(one.metadata.encode("utf-16-le")) // 2
    return units > state.config.offset_metadata_max_bytes


def end_transaction(state: Shard, event: Received, request: wire.EndTransaction) -> None:
    """Appends the marker that ends the producer's transaction."""
    then = SendResponse(event.request_id, wire.EndTransactionResponse(), request)
    marker = Marker(request.producer_id, request.committed)
    state.append([], Write(then), [marker], request.producer_id, request.committed)


def offset_fetch(state: Shard, event: Received, request: wire.OffsetFetch) -> None:
    """Sends durable offsets; with `require_stable`, the latest ones, once they are durable."""
    if request.require_stable:
        offsets = state.offsets.latest(request.group_id)
        response = _fetched(state, state.groups.get(request.group_id), offsets, request)
        state.respond_when_durable(event.request_id, request, response)
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
