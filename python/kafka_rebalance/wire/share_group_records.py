# SPDX-License-Identifier: Apache-2.0
"""Reads and writes the records of share groups in `__consumer_offsets` (KIP-932).

    key   type              key fields           value
    10    member            group, member        rack, client, subscription
    11    group             group                epoch, hash of the topics' metadata
    12    target metadata   group                epoch of the target, and its time
    13    target            group, member        partitions by topic id
    14    current           group, member        member epoch, state, partitions
    15    share state       group                partitions whose share state is being initialised,
                                                 is initialised, or is being deleted

The layout of keys and values is that of consumer groups' records.

Errors   WireError, which names the field.
Source   ShareGroup*Key.json and ShareGroup*Value.json of Kafka's group coordinator (4.4.0).
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from kafka_rebalance.java.hash_map import Uuid

from .consumer_group_records import (
    TargetEpochValue,
    TargetTopic,
    TargetValue,
    read_target,
    read_target_epoch,
    write_target,
    write_target_epoch,
)
from .primitives import Reader, Writer
from .record_envelope import key_bytes, read_key, read_value, value_writer


class ShareRecordType(IntEnum):
    """The types of records of share groups, with Kafka's names."""

    SHARE_GROUP_MEMBER_METADATA = 10
    SHARE_GROUP_METADATA = 11
    SHARE_GROUP_TARGET_ASSIGNMENT_METADATA = 12
    SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER = 13
    SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT = 14
    SHARE_GROUP_STATE_PARTITION_METADATA = 15


_T = ShareRecordType
_OF_THE_GROUP = (
    _T.SHARE_GROUP_METADATA,
    _T.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA,
    _T.SHARE_GROUP_STATE_PARTITION_METADATA,
)


class ShareGroupKey(NamedTuple):
    """A key; `member_id` is None in a record of the group."""

    type: ShareRecordType
    group_id: str
    member_id: str | None = None


@dataclass(frozen=True, slots=True)
class ShareEpochValue:
    """The group's epoch."""

    epoch: int
    metadata_hash: int


@dataclass(frozen=True, slots=True)
class ShareMemberValue:
    """A member: its identity and its subscription."""

    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShareCurrentValue:
    """A member's current assignment; its state has the numbers of consumer groups' members."""

    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned: tuple[TargetTopic, ...]


class ShareStateTopic(NamedTuple):
    """Partitions of one topic, with the topic's name."""

    topic_id: Uuid
    topic_name: str
    partitions: tuple[int, ...]


class DeletingTopic(NamedTuple):
    """A topic whose share state is being deleted."""

    topic_id: Uuid
    topic_name: str


@dataclass(frozen=True, slots=True)
class ShareStateValue:
    """What is known about the share state of a group's partitions."""

    initializing: tuple[ShareStateTopic, ...] = ()
    initialized: tuple[ShareStateTopic, ...] = ()
    deleting: tuple[DeletingTopic, ...] = ()


ShareGroupValue = (
    ShareEpochValue
    | ShareMemberValue
    | TargetEpochValue
    | TargetValue
    | ShareCurrentValue
    | ShareStateValue
)


class ShareGroupRecord(NamedTuple):
    """A record; the value None is a tombstone."""

    key: ShareGroupKey
    value: ShareGroupValue | None = None


_KINDS = {kind.value: kind for kind in ShareRecordType}


def decode_share_record(key: bytes, value: bytes | None) -> ShareGroupRecord | None:
    """Reads a record; returns None if its type is no `ShareRecordType`. Errors: WireError."""
    found = read_key(key, _KINDS, _OF_THE_GROUP, "member")
    if found is None:
        return None
    return ShareGroupRecord(ShareGroupKey(*found), read_value(value, _READERS[found[0]]))


def encode_share_record(record: ShareGroupRecord) -> tuple[bytes, bytes | None]:
    """Returns the bytes of a record's key and value."""
    value = None if record.value is None else _value_bytes(record.value)
    return key_bytes(*record.key), value


def _read_member(reader: Reader) -> ShareMemberValue:
    rack_id = reader.nullable_string("rackId")
    client_id, client_host = reader.string("clientId"), reader.string("clientHost")
    names = reader.strings("subscribedTopicNames")
    reader.tagged()
    return ShareMemberValue(rack_id, client_id, client_host, names)


def _read_epoch(reader: Reader) -> ShareEpochValue:
    epoch, metadata_hash = reader.int32("epoch"), reader.int64("metadataHash")
    reader.tagged()
    return ShareEpochValue(epoch, metadata_hash)


def _read_current(reader: Reader) -> ShareCurrentValue:
    epoch, previous = reader.int32("memberEpoch"), reader.int32("previousMemberEpoch")
    state = reader.int8("state")
    assigned = read_target(reader).topics  # the last field has the layout of a whole target
    return ShareCurrentValue(epoch, previous, state, assigned)


def _read_state(reader: Reader) -> ShareStateValue:
    initializing = _read_state_topics(reader, "initializingTopics")
    initialized = _read_state_topics(reader, "initializedTopics")
    deleting = []
    for at in range(reader.count("deletingTopics")):
        path = f"deletingTopics[{at}]"
        deleting.append(
            DeletingTopic(reader.uuid(f"{path}.topicId"), reader.string(f"{path}.topicName"))
        )
        reader.tagged()
    reader.tagged()
    return ShareStateValue(initializing, initialized, tuple(deleting))


def _read_state_topics(reader: Reader, field: str) -> tuple[ShareStateTopic, ...]:
    topics = []
    for at in range(reader.count(field)):
        path = f"{field}[{at}]"
        topic_id, name = reader.uuid(f"{path}.topicId"), reader.string(f"{path}.topicName")
        topics.append(ShareStateTopic(topic_id, name, reader.numbers(f"{path}.partitions")))
        reader.tagged()
    return tuple(topics)


_READERS: dict[ShareRecordType, Callable[[Reader], ShareGroupValue]] = {
    _T.SHARE_GROUP_MEMBER_METADATA: _read_member,
    _T.SHARE_GROUP_METADATA: _read_epoch,
    _T.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA: read_target_epoch,
    _T.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER: read_target,
    _T.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT: _read_current,
    _T.SHARE_GROUP_STATE_PARTITION_METADATA: _read_state,
}


def _value_bytes(value: ShareGroupValue) -> bytes:
    writer = value_writer()
    match value:
        case ShareEpochValue(epoch, metadata_hash):
            writer.int32(epoch)
            writer.int64(metadata_hash)
            writer.tagged(())
        case ShareMemberValue(rack_id, client_id, client_host, names):
            writer.string(rack_id)
            writer.string(client_id)
            writer.string(client_host)
            writer.strings(names)
            writer.tagged(())
        case TargetEpochValue():
            write_target_epoch(writer, value)
        case TargetValue():
            write_target(writer, value)
        case ShareCurrentValue(epoch, previous, state, assigned):
            writer.int32(epoch)
            writer.int32(previous)
            writer.int8(state)
            write_target(writer, TargetValue(assigned))
        case ShareStateValue():
            _write_state(writer, value)
    return writer.written()


def _write_state(writer: Writer, value: ShareStateValue) -> None:
    for topics in (value.initializing, value.initialized):
        writer.count(len(topics))
        for topic_id, name, partitions in topics:
            writer.uuid(topic_id)
            writer.string(name)
            writer.numbers(partitions)
            writer.tagged(())
    writer.count(len(value.deleting))
    for topic_id, name in value.deleting:
        writer.uuid(topic_id)
        writer.string(name)
        writer.tagged(())
    writer.tagged(())
