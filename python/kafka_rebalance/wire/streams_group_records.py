# SPDX-License-Identifier: Apache-2.0
"""Reads and writes the records of streams groups in `__consumer_offsets` (KIP-1071).

    key   type              key fields           value
    17    group             group                epochs, hash of the topics' metadata, settings
    19    member            group, member        process, client tags, epoch of the topology
    20    target metadata   group                epoch of the target, and its time
    21    target            group, member        tasks by subtopology
    22    current           group, member        member epoch, state, tasks; active ones with epochs
    23    topology          group                subtopologies: see `streams_topology.py`

A key starts with its type as int16. A value starts with version 0 as int16 and is "flexible"; its
optional fields are tagged. The value None is a tombstone.

Errors   WireError, which names the field.
Source   StreamsGroup*Key.json and StreamsGroup*Value.json of Kafka's group coordinator (4.4.0).
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from .consumer_group_records import TargetEpochValue, read_target_epoch, write_target_epoch
from .primitives import Reader, Tagged, Writer
from .record_envelope import (
    key_bytes,
    read_epochs,
    read_key,
    read_value,
    value_writer,
    write_epochs,
)
from .streams_topology import (
    StreamsTopology,
    read_pair,
    read_topology,
    write_pairs,
    write_topology,
)

_ABSENT, _PRESENT = -1, 1
NO_TOPOLOGY = -1
_VALIDATED, _CONFIGS, _STORED, _FAILED = range(4)  # tags of the group's record


class StreamsRecordType(IntEnum):
    """The types of records of streams groups, with Kafka's names."""

    STREAMS_GROUP_METADATA = 17
    STREAMS_GROUP_MEMBER_METADATA = 19
    STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA = 20
    STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER = 21
    STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT = 22
    STREAMS_GROUP_TOPOLOGY = 23


_T = StreamsRecordType
_OF_THE_GROUP = (
    _T.STREAMS_GROUP_METADATA,
    _T.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA,
    _T.STREAMS_GROUP_TOPOLOGY,
)


class StreamsGroupKey(NamedTuple):
    """A key; `member_id` is None in a record of the group."""

    type: StreamsRecordType
    group_id: str
    member_id: str | None = None


@dataclass(frozen=True, slots=True)
class StreamsEpochValue:
    """The group's epoch; `assignment_configs` are the settings of its last epoch.

    The epochs of topologies are -1 if there is none. Those of descriptions belong to a plug-in.
    """

    epoch: int
    metadata_hash: int
    validated_topology_epoch: int = NO_TOPOLOGY
    assignment_configs: tuple[tuple[str, str], ...] | None = None
    stored_description_epoch: int = NO_TOPOLOGY
    failed_description_epoch: int = NO_TOPOLOGY


@dataclass(frozen=True, slots=True)
class StreamsMemberValue:
    """A member; `user_endpoint` is a host with its port."""

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    topology_epoch: int
    process_id: str
    user_endpoint: tuple[str, int] | None
    client_tags: tuple[tuple[str, str], ...]


class TaskIds(NamedTuple):
    """Tasks of one subtopology; `epochs` has the assignment epochs of active tasks."""

    subtopology_id: str
    partitions: tuple[int, ...]
    epochs: tuple[int, ...] | None = None


Role = tuple[TaskIds, ...]


@dataclass(frozen=True, slots=True)
class StreamsTargetValue:
    """A member's target."""

    active: Role
    standby: Role
    warmup: Role


@dataclass(frozen=True, slots=True)
class StreamsCurrentValue:
    """A member's present tasks, and the state of its reconciliation."""

    member_epoch: int
    previous_member_epoch: int
    state: int
    active: Role
    standby: Role
    warmup: Role
    active_pending: Role
    standby_pending: Role
    warmup_pending: Role


StreamsGroupValue = (
    StreamsEpochValue
    | StreamsMemberValue
    | TargetEpochValue
    | StreamsTargetValue
    | StreamsCurrentValue
    | StreamsTopology
)


class StreamsGroupRecord(NamedTuple):
    """A record; the value None is a tombstone."""

    key: StreamsGroupKey
    value: StreamsGroupValue | None = None


_KINDS = {kind.value: kind for kind in StreamsRecordType}


def decode_streams_record(key: bytes, value: bytes | None) -> StreamsGroupRecord | None:
    """Reads a record; returns None if it is not one of a streams group. Errors: WireError."""
    found = read_key(key, _KINDS, _OF_THE_GROUP, "member")
    if found is None:
        return None
    return StreamsGroupRecord(StreamsGroupKey(*found), read_value(value, _READERS[found[0]]))


def encode_streams_record(record: StreamsGroupRecord) -> tuple[bytes, bytes | None]:
    """Returns the bytes of a record's key and value."""
    value = None if record.value is None else _value_bytes(record.value)
    return key_bytes(*record.key), value


# Reading ------------------------------------------------------------------------------------------


def _read_epoch(reader: Reader) -> StreamsEpochValue:
    epoch, metadata_hash = reader.int32("epoch"), reader.int64("metadataHash")
    fields = dict(reader.tagged())

    def number(tag: int) -> int:
        data = fields.get(tag)
        return NO_TOPOLOGY if data is None else Reader(data, "value").int32(f"tag {tag}")

    configs = None
    if _CONFIGS in fields:
        inner = Reader(fields[_CONFIGS], "value.lastAssignmentConfigs")
        inner.flexible = True
        configs = tuple(read_pair(inner, f"[{at}]") for at in range(inner.count("length")))
        inner.end()
    return StreamsEpochValue(
        epoch, metadata_hash, number(_VALIDATED), configs, number(_STORED), number(_FAILED)
    )


def _read_member(reader: Reader) -> StreamsMemberValue:
    instance_id, rack_id = reader.nullable_string("instanceId"), reader.nullable_string("rackId")
    client_id, client_host = reader.string("clientId"), reader.string("clientHost")
    timeout, topology_epoch = reader.int32("rebalanceTimeoutMs"), reader.int32("topologyEpoch")
    process_id = reader.string("processId")
    endpoint = None
    if reader.is_there("userEndpoint"):
        endpoint = reader.string("userEndpoint.host"), reader.int16("userEndpoint.port") & 0xFFFF
        reader.tagged()
    count = reader.count("clientTags")
    tags = tuple(read_pair(reader, f"clientTags[{at}]") for at in range(count))
    reader.tagged()
    return StreamsMemberValue(
        instance_id,
        rack_id,
        client_id,
        client_host,
        timeout,
        topology_epoch,
        process_id,
        endpoint,
        tags,
    )


def _read_target(reader: Reader) -> StreamsTargetValue:
    roles = [_read_role(reader, f"{name}Tasks") for name in ("active", "standby", "warmup")]
    reader.tagged()
    return StreamsTargetValue(*roles)


def _read_current(reader: Reader) -> StreamsCurrentValue:
    epoch, previous = reader.int32("memberEpoch"), reader.int32("previousMemberEpoch")
    state = reader.int8("state")
    names = [f"{name}Tasks" for name in ("active", "standby", "warmup")]
    names += [f"{name}PendingRevocation" for name in names]
    roles = [_read_role(reader, name) for name in names]
    reader.tagged()
    return StreamsCurrentValue(epoch, previous, state, *roles)


def _read_role(reader: Reader, field: str) -> Role:
    tasks = []
    for at in range(reader.count(field)):
        path = f"{field}[{at}]"
        subtopology_id = reader.string(f"{path}.subtopologyId")
        partitions = reader.numbers(f"{path}.partitions")
        tasks.append(TaskIds(subtopology_id, partitions, read_epochs(reader, path)))
    return tuple(tasks)


_READERS: dict[StreamsRecordType, Callable[[Reader], StreamsGroupValue]] = {
    _T.STREAMS_GROUP_METADATA: _read_epoch,
    _T.STREAMS_GROUP_MEMBER_METADATA: _read_member,
    _T.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA: read_target_epoch,
    _T.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER: _read_target,
    _T.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT: _read_current,
    _T.STREAMS_GROUP_TOPOLOGY: read_topology,
}


# Writing ------------------------------------------------------------------------------------------


def _value_bytes(value: StreamsGroupValue) -> bytes:
    writer = value_writer()
    match value:
        case StreamsEpochValue():
            writer.int32(value.epoch)
            writer.int64(value.metadata_hash)
            writer.tagged(_epoch_tags(value))
        case StreamsMemberValue():
            _write_member(writer, value)
        case TargetEpochValue():
            write_target_epoch(writer, value)
        case StreamsTargetValue(active, standby, warmup):
            _write_roles(writer, active, standby, warmup)
        case StreamsCurrentValue():
            writer.int32(value.member_epoch)
            writer.int32(value.previous_member_epoch)
            writer.int8(value.state)
            pending = (value.active_pending, value.standby_pending, value.warmup_pending)
            _write_roles(writer, value.active, value.standby, value.warmup, *pending)
        case StreamsTopology():
            write_topology(writer, value)
    return writer.written()


def _epoch_tags(value: StreamsEpochValue) -> Tagged:
    tags = []
    if value.assignment_configs is not None:
        writer = Writer(flexible=True)
        write_pairs(writer, value.assignment_configs)
        tags.append((_CONFIGS, writer.written()))
    for tag, epoch in (
        (_VALIDATED, value.validated_topology_epoch),
        (_STORED, value.stored_description_epoch),
        (_FAILED, value.failed_description_epoch),
    ):
        if epoch != NO_TOPOLOGY:
            tags.append((tag, struct.pack(">i", epoch)))
    return tuple(sorted(tags))


def _write_member(writer: Writer, value: StreamsMemberValue) -> None:
    writer.string(value.instance_id)
    writer.string(value.rack_id)
    writer.string(value.client_id)
    writer.string(value.client_host)
    writer.int32(value.rebalance_timeout_ms)
    writer.int32(value.topology_epoch)
    writer.string(value.process_id)
    writer.int8(_ABSENT if value.user_endpoint is None else _PRESENT)
    if value.user_endpoint is not None:
        host, port = value.user_endpoint
        writer.string(host)
        writer.raw(struct.pack(">H", port))
        writer.tagged(())
    write_pairs(writer, value.client_tags)
    writer.tagged(())


def _write_roles(writer: Writer, *roles: Role) -> None:
    for role in roles:
        writer.count(len(role))
        for subtopology_id, partitions, epochs in role:
            writer.string(subtopology_id)
            writer.numbers(partitions)
            write_epochs(writer, epochs)
    writer.tagged(())
