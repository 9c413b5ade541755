# SPDX-License-Identifier: Apache-2.0
"""Reads and writes the records of classic groups in `__consumer_offsets`, in every version.

    key 0, 1   offset commit     group string, topic string, partition int32
    key 2      group metadata    group string
    other      a key of another kind of group: `OtherKey`, kept as bytes

Every key and value starts with an int16 version, big-endian. `string` is an int16 length and UTF-8
(-1 is null), `bytes` an int32 length and data, `array` an int32 count. Value version 4 is
"flexible": lengths are unsigned varints of length + 1, and every struct ends with tagged fields,
which are kept as bytes. A record that is decoded and encoded again has its old bytes. The value
`None` is a tombstone.

Errors   WireError, which names the field.
Source   OffsetCommitKey/Value.json and GroupMetadataKey/Value.json of Kafka's group coordinator.
"""

import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from kafka_rebalance.errors import WireError

from .primitives import Reader, Tagged, Writer

_OFFSET_KEYS = (0, 1)
_GROUP_KEY = 2
_HIGHEST_VALUE = 4
_FLEXIBLE = 4


class OffsetsRecord(NamedTuple):
    """A record of `__consumer_offsets`, undecoded; `value` is None for a tombstone."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes
    value: bytes | None


@dataclass(frozen=True, slots=True)
class OffsetCommitKey:
    """The key of a committed offset."""

    group_id: str
    topic: str
    partition: int
    version: int = 1


@dataclass(frozen=True, slots=True)
class GroupMetadataKey:
    """The key of a group's record."""

    group_id: str
    version: int = 2


@dataclass(frozen=True, slots=True)
class OtherKey:
    """A key of another kind of group (KIP-848, KIP-932, …), or of a newer version."""

    version: int
    body: bytes


@dataclass(frozen=True, slots=True)
class OffsetCommitValue:
    """A committed offset; `leader_epoch` exists in v3 and v4, `expire_timestamp_ms` in v1."""

    offset: int
    metadata: str
    commit_timestamp_ms: int
    leader_epoch: int = -1
    expire_timestamp_ms: int = -1
    version: int = 3
    tagged: Tagged = ()


@dataclass(frozen=True, slots=True)
class MemberMetadata:
    """A member of a group; `rebalance_timeout_ms` is -1 in v0, which lacks the field."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes
    tagged: Tagged = ()


@dataclass(frozen=True, slots=True)
class GroupMetadataValue:
    """A group; `current_state_timestamp_ms` is -1 before v2, or if it is unset."""

    protocol_type: str
    generation_id: int
    protocol: str | None
    leader: str | None
    current_state_timestamp_ms: int = -1
    members: tuple[MemberMetadata, ...] = ()
    version: int = 3
    tagged: Tagged = ()


Key = OffsetCommitKey | GroupMetadataKey | OtherKey
Value = OffsetCommitValue | GroupMetadataValue


def decode_key(data: bytes) -> Key:
    """Reads a key; a key of an unknown version becomes an `OtherKey`. Errors: WireError."""
    reader = Reader(data, "key")
    version = reader.int16("version")
    key: Key
    if version in _OFFSET_KEYS:
        group_id, topic = reader.string("group"), reader.string("topic")
        key = OffsetCommitKey(group_id, topic, reader.int32("partition"), version)
    elif version == _GROUP_KEY:
        key = GroupMetadataKey(reader.string("group"), version)
    else:
        return OtherKey(version, data[2:])
    reader.end()
    return key


def encode_key(key: Key) -> bytes:
    if isinstance(key, OffsetCommitKey):  # most keys are of this kind
        group, topic = key.group_id.encode(), key.topic.encode()
        layout = f">hh{len(group)}sh{len(topic)}si"
        return struct.pack(layout, key.version, len(group), group, len(topic), topic, key.partition)
    writer = Writer(flexible=False)
    writer.int16(key.version)
    if isinstance(key, GroupMetadataKey):
        writer.string(key.group_id)
    else:
        writer.raw(key.body)
    return writer.written()


def decode_value(key: Key, data: bytes | None) -> Value | None:
    """Reads the value of a key; None for a tombstone and for an `OtherKey`. Errors: WireError."""
    if data is None or isinstance(key, OtherKey):
        return None
    reader = Reader(data, "value")
    version = reader.int16("version")
    if not 0 <= version <= _HIGHEST_VALUE:
        raise WireError(f"value.version: {version} is not known (0 to {_HIGHEST_VALUE} are)")
    reader.flexible = version >= _FLEXIBLE
    value: Value
    if isinstance(key, OffsetCommitKey):
        fields = _read_fields(reader, _OFFSET, version)
        value = OffsetCommitValue(**fields, version=version, tagged=reader.tagged())
    else:
        fields = _read_fields(reader, _GROUP, version)
        members = tuple(_read_members(reader, version))
        value = GroupMetadataValue(
            **fields, members=members, version=version, tagged=reader.tagged()
        )
    reader.end()
    return value


def encode_value(value: Value) -> bytes:
    """Writes a value in its own version; fields that the version does not have are left out."""
    writer = Writer(flexible=value.version >= _FLEXIBLE)
    writer.int16(value.version)
    if isinstance(value, OffsetCommitValue):
        _write_fields(writer, _OFFSET, value.version, value)
    else:
        _write_fields(writer, _GROUP, value.version, value)
        writer.count(len(value.members))
        for member in value.members:
            _write_fields(writer, _MEMBER, value.version, member)
            writer.tagged(member.tagged)
    writer.tagged(value.tagged)
    return writer.written()


class _Field(NamedTuple):
    """A field of a value; in versions outside `versions`, the field reads as `absent`."""

    attribute: str
    name: str  # the name in errors
    kind: str  # a method of Reader; Writer's method has no prefix "nullable_"
    versions: range = range(_HIGHEST_VALUE + 1)
    absent: int | None = -1


_SINCE_1, _SINCE_2, _SINCE_3 = (range(first, _HIGHEST_VALUE + 1) for first in (1, 2, 3))

_OFFSET = (
    _Field("offset", "offset", "int64"),
    _Field("leader_epoch", "leaderEpoch", "int32", _SINCE_3),
    _Field("metadata", "metadata", "string"),
    _Field("commit_timestamp_ms", "commitTimestamp", "int64"),
    _Field("expire_timestamp_ms", "expireTimestamp", "int64", range(1, 2)),
)
_GROUP = (
    _Field("protocol_type", "protocolType", "string"),
    _Field("generation_id", "generation", "int32"),
    _Field("protocol", "protocol", "nullable_string"),
    _Field("leader", "leader", "nullable_string"),
    _Field("current_state_timestamp_ms", "currentStateTimestamp", "int64", _SINCE_2),
)
_MEMBER = (
    _Field("member_id", "memberId", "string"),
    _Field("group_instance_id", "groupInstanceId", "nullable_string", _SINCE_3, None),
    _Field("client_id", "clientId", "string"),
    _Field("client_host", "clientHost", "string"),
    _Field("rebalance_timeout_ms", "rebalanceTimeout", "int32", _SINCE_1),
    _Field("session_timeout_ms", "sessionTimeout", "int32"),
    _Field("subscription", "subscription", "data"),
    _Field("assignment", "assignment", "data"),
)


def _read_fields(
    reader: Reader, fields: Iterable[_Field], version: int, path: str = ""
) -> dict[str, Any]:
    return {
        one.attribute: (
            getattr(reader, one.kind)(path + one.name) if version in one.versions else one.absent
        )
        for one in fields
    }


def _write_fields(writer: Writer, fields: tuple[_Field, ...], version: int, value: object) -> None:
    for attribute, method in _methods(fields, version):
        method(writer, getattr(value, attribute))


@cache
def _methods(
    fields: tuple[_Field, ...], version: int
) -> tuple[tuple[str, Callable[[Writer, Any], None]], ...]:
    """Returns the attributes that a version has, each with the method that writes it."""
    return tuple(
        (one.attribute, getattr(Writer, one.kind.removeprefix("nullable_")))
        for one in fields
        if version in one.versions
    )


def _read_members(reader: Reader, version: int) -> Iterator[MemberMetadata]:
    for at in range(reader.count("members")):
        fields = _read_fields(reader, _MEMBER, version, f"members[{at}].")
        yield MemberMetadata(**fields, tagged=reader.tagged())
