# SPDX-License-Identifier: Apache-2.0
"""Reads and writes the records of consumer groups in `__consumer_offsets` (KIP-848).

    key   type              key fields           value
    3     group             group                epoch, hash of the topics' metadata
    4     old metadata      group                kept as bytes; Kafka 4.4 writes tombstones only
    5     member            group, member        subscription, and fields of the classic protocol
    6     target metadata   group                epoch of the target, and its time
    7     target            group, member        partitions by topic id
    8     current           group, member        member epoch, state, partitions with their epochs
    16    pattern           group, pattern       resolved topics, version of the metadata, time

A key starts with its type as int16. A value starts with version 0 as int16 and is "flexible"; its
optional fields are tagged. The value None is a tombstone.

Errors   WireError, which names the field.
Source   ConsumerGroup*Key.json and ConsumerGroup*Value.json of Kafka's group coordinator (4.4.0).
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from kafka_rebalance.java.hash_map import Uuid

from .primitives import Reader, Tagged, Writer
from .record_envelope import (
    key_bytes,
    read_epochs,
    read_key,
    read_value,
    value_writer,
    write_epochs,
)

_FIRST_TAG = 0
_ABSENT, _PRESENT = 0, 1


class RecordType(IntEnum):
    """The types of records of consumer groups, with Kafka's names."""

    CONSUMER_GROUP_METADATA = 3
    CONSUMER_GROUP_PARTITION_METADATA = 4
    CONSUMER_GROUP_MEMBER_METADATA = 5
    CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA = 6
    CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER = 7
    CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT = 8
    CONSUMER_GROUP_REGULAR_EXPRESSION = 16


_T = RecordType
_OF_THE_GROUP = (
    _T.CONSUMER_GROUP_METADATA,
    _T.CONSUMER_GROUP_PARTITION_METADATA,
    _T.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA,
)


class ConsumerGroupKey(NamedTuple):
    """A key; `name` is the member id or the pattern, None in a record of the group."""

    type: RecordType
    group_id: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class EpochValue:
    """The group's epoch."""

    epoch: int
    metadata_hash: int = 0


@dataclass(frozen=True, slots=True)
class OldMetadataValue:
    """The topics' metadata as brokers before Kafka 4.1 stored it; `body` follows the version."""

    body: bytes


class ClassicMetadata(NamedTuple):
    """Fields of a member that uses the classic protocol; `protocols`: (name, metadata)."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class MemberValue:
    """A member: its identity and its subscription; `classic` None: the consumer protocol."""

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]
    subscribed_topic_regex: str | None
    rebalance_timeout_ms: int
    server_assignor: str | None
    classic: ClassicMetadata | None = None


@dataclass(frozen=True, slots=True)
class TargetEpochValue:
    """The epoch for which the targets were computed; the time is 0 before the first target."""

    assignment_epoch: int
    assignment_timestamp_ms: int = 0


class TargetTopic(NamedTuple):
    """The partitions of one topic in a member's target."""

    topic_id: Uuid
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TargetValue:
    """A member's target."""

    topics: tuple[TargetTopic, ...]


class CurrentTopic(NamedTuple):
    """The partitions of one topic; `epochs` None was written before Kafka 4.3."""

    topic_id: Uuid
    partitions: tuple[int, ...]
    epochs: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class CurrentValue:
    """A member's current assignment, and the state of its reconciliation."""

    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned: tuple[CurrentTopic, ...]
    pending_revocation: tuple[CurrentTopic, ...]


@dataclass(frozen=True, slots=True)
class PatternValue:
    """The topics to which a pattern was resolved."""

    topics: tuple[str, ...]
    version: int
    timestamp_ms: int


ConsumerGroupValue = (
    EpochValue
    | OldMetadataValue
    | MemberValue
    | TargetEpochValue
    | TargetValue
    | CurrentValue
    | PatternValue
)


_KINDS = {kind.value: kind for kind in RecordType}


class ConsumerGroupRecord(NamedTuple):
    """A record; the value None is a tombstone."""

    key: ConsumerGroupKey
    value: ConsumerGroupValue | None = None


def decode_record(key: bytes, value: bytes | None) -> ConsumerGroupRecord | None:
    """Reads a record; returns None if its type is not one of `RecordType`. Errors: WireError."""
    found = read_key(key, _KINDS, _OF_THE_GROUP, "name")
    if found is None:
        return None
    return ConsumerGroupRecord(ConsumerGroupKey(*found), read_value(value, _READERS[found[0]]))


def encode_record(record: ConsumerGroupRecord) -> tuple[bytes, bytes | None]:
    """Returns the bytes of a record's key and value."""
    value = None if record.value is None else _value_bytes(record.value)
    return key_bytes(*record.key), value


def _read_epoch(reader: Reader) -> EpochValue:
    epoch = reader.int32("epoch")
    return EpochValue(epoch, _tagged_int64(reader.tagged(), "metadataHash"))


def _read_old_metadata(reader: Reader) -> OldMetadataValue:
    return OldMetadataValue(reader.rest())


def _read_member(reader: Reader) -> MemberValue:
    instance_id, rack_id = reader.nullable_string("instanceId"), reader.nullable_string("rackId")
    client_id, client_host = reader.string("clientId"), reader.string("clientHost")
    names = reader.strings("subscribedTopicNames")
    regex = reader.nullable_string("subscribedTopicRegex")
    timeout = reader.int32("rebalanceTimeoutMs")
    assignor = reader.nullable_string("serverAssignor")
    classic = _read_classic(reader.tagged())
    return MemberValue(
        instance_id, rack_id, client_id, client_host, names, regex, timeout, assignor, classic
    )


def _read_classic(fields: Tagged) -> ClassicMetadata | None:
    data = dict(fields).get(_FIRST_TAG)
    if data is None:
        return None
    reader = Reader(data, "value.classicMemberMetadata")
    reader.flexible = True
    if reader.int8("present") != _PRESENT:
        return None
    timeout = reader.int32("sessionTimeoutMs")
    protocols = []
    for at in range(reader.count("supportedProtocols")):
        path = f"supportedProtocols[{at}]"
        protocols.append((reader.string(f"{path}.name"), reader.data(f"{path}.metadata")))
        reader.tagged()
    reader.tagged()
    reader.end()
    return ClassicMetadata(timeout, tuple(protocols))


def read_target_epoch(reader: Reader) -> TargetEpochValue:
    epoch = reader.int32("assignmentEpoch")
    return TargetEpochValue(epoch, _tagged_int64(reader.tagged(), "assignmentTimestamp"))


def read_target(reader: Reader) -> TargetValue:
    topics = []
    for at in range(reader.count("topicPartitions")):
        path = f"topicPartitions[{at}]"
        topics.append(
            TargetTopic(reader.uuid(f"{path}.topicId"), reader.numbers(f"{path}.partitions"))
        )
        reader.tagged()
    reader.tagged()
    return TargetValue(tuple(topics))


def _read_current(reader: Reader) -> CurrentValue:
    epoch, previous = reader.int32("memberEpoch"), reader.int32("previousMemberEpoch")
    state = reader.int8("state")
    assigned = _read_current_topics(reader, "assignedPartitions")
    pending = _read_current_topics(reader, "partitionsPendingRevocation")
    reader.tagged()
    return CurrentValue(epoch, previous, state, assigned, pending)


def _read_current_topics(reader: Reader, field: str) -> tuple[CurrentTopic, ...]:
    topics = []
    for at in range(reader.count(field)):
        path = f"{field}[{at}]"
        topic_id, partitions = (
            reader.uuid(f"{path}.topicId"),
            reader.numbers(f"{path}.partitions"),
        )
        topics.append(CurrentTopic(topic_id, partitions, read_epochs(reader, path)))
    return tuple(topics)


def _read_pattern(reader: Reader) -> PatternValue:
    topics = reader.strings("topics")
    version, timestamp = reader.int64("version"), reader.int64("timestamp")
    reader.tagged()
    return PatternValue(topics, version, timestamp)


_READERS: dict[RecordType, Callable[[Reader], ConsumerGroupValue]] = {
    _T.CONSUMER_GROUP_METADATA: _read_epoch,
    _T.CONSUMER_GROUP_PARTITION_METADATA: _read_old_metadata,
    _T.CONSUMER_GROUP_MEMBER_METADATA: _read_member,
    _T.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: read_target_epoch,
    _T.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: read_target,
    _T.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: _read_current,
    _T.CONSUMER_GROUP_REGULAR_EXPRESSION: _read_pattern,
}


def _tagged_int64(fields: Tagged, field: str) -> int:
    data = dict(fields).get(_FIRST_TAG)
    return 0 if data is None else Reader(data, "value").int64(field)


def _value_bytes(value: ConsumerGroupValue) -> bytes:
    writer = value_writer()
    match value:
        case EpochValue(epoch, metadata_hash):
            writer.int32(epoch)
            writer.tagged(_int64_tag(metadata_hash))
        case OldMetadataValue(body):
            writer.raw(body)
        case MemberValue():
            _write_member(writer, value)
        case TargetEpochValue():
            write_target_epoch(writer, value)
        case TargetValue():
            write_target(writer, value)
        case CurrentValue():
            writer.int32(value.member_epoch)
            writer.int32(value.previous_member_epoch)
            writer.int8(value.state)
            _write_current_topics(writer, value.assigned)
            _write_current_topics(writer, value.pending_revocation)
            writer.tagged(())
        case PatternValue(topics, version, timestamp):
            writer.strings(topics)
            writer.int64(version)
            writer.int64(timestamp)
            writer.tagged(())
    return writer.written()


def write_target_epoch(writer: Writer, value: TargetEpochValue) -> None:
    writer.int32(value.assignment_epoch)
    writer.tagged(_int64_tag(value.assignment_timestamp_ms))


def write_target(writer: Writer, value: TargetValue) -> None:
    writer.count(len(value.topics))
    for topic_id, partitions in value.topics:
        writer.uuid(topic_id)
        writer.numbers(partitions)
        writer.tagged(())
    writer.tagged(())


def _write_member(writer: Writer, value: MemberValue) -> None:
    writer.string(value.instance_id)
    writer.string(value.rack_id)
    writer.string(value.client_id)
    writer.string(value.client_host)
    writer.strings(value.subscribed_topic_names)
    writer.string(value.subscribed_topic_regex)
    writer.int32(value.rebalance_timeout_ms)
    writer.string(value.server_assignor)
    # Kafka writes the field even if it is null.
    writer.tagged(((_FIRST_TAG, _classic_bytes(value.classic)),))


def _classic_bytes(classic: ClassicMetadata | None) -> bytes:
    writer = Writer(flexible=True)
    if classic is None:
        writer.int8(_ABSENT)
        return writer.written()
    writer.int8(_PRESENT)
    writer.int32(classic.session_timeout_ms)
    writer.count(len(classic.protocols))
    for name, metadata in classic.protocols:
        writer.string(name)
        writer.data(metadata)
        writer.tagged(())
    writer.tagged(())
    return writer.written()


def _write_current_topics(writer: Writer, topics: tuple[CurrentTopic, ...]) -> None:
    writer.count(len(topics))
    for topic_id, partitions, epochs in topics:
        writer.uuid(topic_id)
        writer.numbers(partitions)
        write_epochs(writer, epochs)


def _int64_tag(number: int) -> Tagged:
    """Returns the tagged field of a number; Kafka leaves out its default value 0."""
    return ((_FIRST_TAG, struct.pack(">q", number)),) if number else ()
