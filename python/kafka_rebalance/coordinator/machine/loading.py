# SPDX-License-Identifier: Apache-2.0
"""Loads a coordinator's state from the log, and drops it when another broker takes over.

Source   CoordinatorRuntime (a failed load), GroupCoordinatorRecordSerde,
         OffsetMetadataManager.replay, GroupMetadataManager.replay/onLoaded/onUnloaded (4.4.0);
         docs/behaviour/coordinator.md#93-load, docs/behaviour/coordinator.md#94-unload.
"""

from kafka_rebalance.errors import WireError
from kafka_rebalance.java.timeline_hash_map import TimelineHashMap
from kafka_rebalance.wire import classic_groups as classic
from kafka_rebalance.wire import group_records as wire
from kafka_rebalance.wire.broker_records import decode_record
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import GroupState, common_fields

from ..broker_assigned import log
from ..broker_assigned.group import IllegalRecord
from ..classic_group.group import ClassicGroupMember, Group
from ..offsets.store import Commit, CommittedOffset, Forget, Marker
from .appends import refuse_all
from .events import LogEntry, Unreadable
from .state import AnyGroup, Ownership, Shard, of_kind


def load(state: Shard, entries: tuple[LogEntry, ...]) -> None:
    """Replays the log in order, then arms the groups' deadlines; emits Unreadable if it fails."""
    for entry in entries:
        try:
            _replay(state, entry)
        except (WireError, IllegalRecord) as error:
            state.clear()
            state.ownership = Ownership.GONE
            state.effects.append(Unreadable(entry.position, str(error)))
            return
    state.ownership = Ownership.ACTIVE
    state.cluster.created_version = state.cluster.version
    for group in _in_table_order(state):
        state.kind(group).start_members(state, group)


def _in_table_order(state: Shard) -> list[AnyGroup]:
    """Returns the groups in the order of a new Java hash map, filled in the order of our map.

    Kafka's own map can be in another order if the log contains tombstones of groups, because it
    never shrinks. The order decides which of several equal deadlines runs first.
    """
    table = TimelineHashMap[str, AnyGroup]()
    for group in state.groups.values():
        table.put(group.group_id, group)
    return table.values()


def _replay(state: Shard, entry: LogEntry) -> None:
    if entry.committed is not None:
        marker = Marker(-1 if entry.producer_id is None else entry.producer_id, entry.committed)
        state.offsets.load(marker, entry.position)
        return
    key = wire.decode_key(entry.key)
    value = wire.decode_value(key, entry.value)
    match key, value:
        case wire.GroupMetadataKey(group_id), None:
            state.groups.pop(group_id, None)
        case wire.GroupMetadataKey(group_id), wire.GroupMetadataValue():
            state.groups[group_id] = _group(group_id, value)
        case wire.OffsetCommitKey(group_id, topic, partition), None:
            state.offsets.load(Forget(group_id, (topic, partition)), entry.position)
        case wire.OffsetCommitKey(group_id, topic, partition), wire.OffsetCommitValue():
            # Without a record of its own (so far), a group has only offsets.
            state.groups.setdefault(group_id, Group(group_id, state.now_ms))
            commit = Commit(group_id, (topic, partition), _offset(value), entry.producer_id)
            state.offsets.load(commit, entry.position)
        case wire.OtherKey(), _:
            record = decode_record(entry.key, entry.value)
            if record is not None:
                log.replay_any(state, state.groups, record, state.now_ms)


def _group(group_id: str, value: wire.GroupMetadataValue) -> Group:
    timestamp = value.current_state_timestamp_ms
    group = Group(
        group_id,
        None if timestamp == -1 else timestamp,
        state=GroupState.STABLE if value.members else GroupState.EMPTY,
        generation_id=value.generation_id,
        protocol_type=value.protocol_type or None,
        protocol_name=value.protocol,
    )
    for one in value.members:
        member = ClassicGroupMember(
            **common_fields(one, ClassicGroupMember),
            protocol_type=value.protocol_type,
            protocols=(classic.JoinGroupProtocol(value.protocol or "", one.subscription),),
        )
        if member.rebalance_timeout_ms == -1:
            member.rebalance_timeout_ms = member.session_timeout_ms
        group.members[member.member_id] = member
        group.votes.update(member.names())
        if member.group_instance_id is not None:
            group.static_members[member.group_instance_id] = member.member_id
    group.leader_id = value.leader
    group.find_subscribed_topics()
    return group


def _offset(value: wire.OffsetCommitValue) -> CommittedOffset:
    return CommittedOffset(
        value.offset,
        value.metadata,
        value.commit_timestamp_ms,
        None if value.leader_epoch == -1 else value.leader_epoch,
        None if value.expire_timestamp_ms == -1 else value.expire_timestamp_ms,
        value.topic_id,
    )


def unload(state: Shard) -> None:
    """Answers all waiting requests with NOT_COORDINATOR and drops the state; appends nothing."""
    gone = ErrorCode.NOT_COORDINATOR
    refuse_all(state, gone)
    for group in (of_kind(one, Group) for one in list(state.groups.values())):
        if group is None:
            continue  # only classic groups have parked requests
        before = group.state
        state.move(group, GroupState.DEAD)
        for member in group.members.values():
            if before is GroupState.PREPARING_REBALANCE:
                refusal = classic.JoinGroupResponse(error_code=gone, member_id=member.member_id)
                state.answer_join(group, member, refusal)
            state.answer_sync(member, classic.SyncGroupResponse(error_code=gone))
    state.clear()
    state.ownership = Ownership.GONE
