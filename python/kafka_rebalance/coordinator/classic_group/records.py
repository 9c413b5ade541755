# SPDX-License-Identifier: Apache-2.0
"""Builds the records that the coordinator writes to `__consumer_offsets`.

The versions are those that Kafka 4.4.0 writes: 3 for group metadata; 4 for offsets, or 1 if the
offset has its own expiry. Version 4 has the topic's id, in a tagged field.
"""

import struct

from kafka_rebalance.wire import group_records as wire

from ..machine.events import ClusterTopic, LogRecord
from ..offsets.store import Commit, Partition
from .group import Group

_TOPIC_ID_TAG = 0


def group_record(group: Group, assignment: dict[str, bytes]) -> LogRecord:
    """Returns the group's record: the assignment, and metadata of the selected protocol only."""
    timestamp = -1 if group.state_timestamp_ms is None else group.state_timestamp_ms
    members = tuple(
        wire.MemberMetadata(
            member_id=one.member_id,
            group_instance_id=one.group_instance_id,
            client_id=one.client_id,
            client_host=one.client_host,
            rebalance_timeout_ms=one.rebalance_timeout_ms,
            session_timeout_ms=one.session_timeout_ms,
            subscription=one.metadata(group.protocol_name),
            assignment=assignment.get(one.member_id, b""),
        )
        for one in group.members.values()
    )
    value = wire.GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation_id=group.generation_id,
        protocol=group.protocol_name,
        leader=group.leader_id,
        current_state_timestamp_ms=timestamp,
        members=members,
    )
    return LogRecord(
        wire.encode_key(wire.GroupMetadataKey(group.group_id)), wire.encode_value(value)
    )


def new_group_record(group: Group) -> LogRecord:
    """Returns the first record of a group: it contains no members, even if one is joining."""
    return group_record(Group(group.group_id, group.state_timestamp_ms), {})


def group_tombstone(group_id: str) -> LogRecord:
    """Returns the record that removes a group; its offsets need tombstones of their own."""
    return LogRecord(wire.encode_key(wire.GroupMetadataKey(group_id)), None)


def offset_record(commit: Commit, topic: ClusterTopic | None) -> LogRecord:
    """Returns the record of a committed offset: version 1 if it has its own expiry, else 4.

    `topic` is the partition's topic, if the coordinator knows it.
    """
    value = commit.value
    expires = value.expire_timestamp_ms
    written = wire.OffsetCommitValue(
        offset=value.offset,
        metadata=value.metadata,
        commit_timestamp_ms=value.commit_timestamp_ms,
        leader_epoch=-1 if value.leader_epoch is None else value.leader_epoch,
        expire_timestamp_ms=-1 if expires is None else expires,
        version=4 if expires is None else 1,
        tagged=() if topic is None else ((_TOPIC_ID_TAG, struct.pack(">qq", *topic.topic_id)),),
    )
    key = wire.OffsetCommitKey(commit.group_id, *commit.partition)
    return LogRecord(wire.encode_key(key), wire.encode_value(written))


def offset_tombstone(group_id: str, partition: Partition) -> LogRecord:
    return LogRecord(wire.encode_key(wire.OffsetCommitKey(group_id, *partition)), None)
