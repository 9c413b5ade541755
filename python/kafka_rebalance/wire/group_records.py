# SPDX-License-Identifier: Apache-2.0
"""Reads and writes the records of classic groups in `__consumer_offsets`, in every version.

Every key and value starts with an int16 version: 0 and 1 are keys of offsets, 2 of groups. A record
that is decoded and encoded again has the same bytes. The value `None` is a tombstone.

Errors   WireError, which names the field.
Source   OffsetCommitKey/Value.json and GroupMetadataKey/Value.json of Kafka's group coordinator;
         docs/behaviour/coordinator.md#92-keys-and-values.
"""

import struct
from typing import Annotated, NamedTuple

from kafka_rebalance.frozen import Frozen
from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.java.order import string_hash

from .layout import (
    VERSION_BYTES,
    Int32,
    Int64,
    Name,
    Since,
    Tagged,
    Version,
    layout_of,
    read_version,
)

_OFFSET_KEYS = (0, 1)
_GROUP_KEY = 2
_VALUES = range(5)
_FLEXIBLE = 4
_TOPIC_ID_TAG = 0


class OffsetsRecord(NamedTuple):
    """A record of `__consumer_offsets` as bytes. `value` is None for a tombstone."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes
    value: bytes | None


class OffsetCommitKey(Frozen):
    """The key of a committed offset."""

    group_id: Annotated[str, Name("group")]
    topic: str
    partition: Int32
    version: Version = 1


class GroupMetadataKey(Frozen):
    """The key of a group's record."""

    group_id: Annotated[str, Name("group")]
    version: Version = 2


class OtherKey(Frozen):
    """A key of another kind of group (KIP-848, KIP-932, …), or of a newer version."""

    version: int
    body: bytes


class OffsetCommitValue(Frozen):
    """A committed offset. `leader_epoch` exists in v3 and v4, `expire_timestamp_ms` in v1."""

    offset: Int64
    leader_epoch: Annotated[Int32, Since(3, absent=-1)]
    metadata: str
    commit_timestamp_ms: Annotated[Int64, Name("commitTimestamp")]
    expire_timestamp_ms: Annotated[Int64, Name("expireTimestamp"), Since(1, last=1)] = -1
    version: Version = 3
    tagged: Tagged = ()

    @property
    def topic_id(self) -> Uuid | None:
        """Returns the id of the topic in v4, if the coordinator that wrote the record knew it."""
        found = next((data for tag, data in self.tagged if tag == _TOPIC_ID_TAG), b"")
        return struct.unpack(">qq", found) if len(found) == 16 else None


class MemberMetadata(Frozen):
    """A group's member in its record. `rebalance_timeout_ms` is -1 in v0, which lacks the field."""

    member_id: str
    group_instance_id: Annotated[str | None, Since(3, absent=None)]
    client_id: str
    client_host: str
    rebalance_timeout_ms: Annotated[Int32, Name("rebalanceTimeout"), Since(1, absent=-1)]
    session_timeout_ms: Annotated[Int32, Name("sessionTimeout")]
    subscription: bytes
    assignment: bytes
    tagged: Tagged = ()


class GroupMetadataValue(Frozen):
    """The value of a group's record. `current_state_timestamp_ms` is -1 before v2, or if unset."""

    protocol_type: str
    generation_id: Annotated[Int32, Name("generation")]
    protocol: str | None
    leader: str | None
    current_state_timestamp_ms: Annotated[Int64, Name("currentStateTimestamp"), Since(2)] = -1
    members: tuple[MemberMetadata, ...] = ()
    version: Version = 3
    tagged: Tagged = ()


Key = OffsetCommitKey | GroupMetadataKey | OtherKey
Value = OffsetCommitValue | GroupMetadataValue


def decode_key(data: bytes) -> Key:
    """Reads a key; a key of an unknown version becomes an `OtherKey`. Errors: WireError."""
    version = read_version(data, "key")
    if version in _OFFSET_KEYS:
        return layout_of(OffsetCommitKey, version, False).read(data, "key", VERSION_BYTES)
    if version == _GROUP_KEY:
        return layout_of(GroupMetadataKey, version, False).read(data, "key", VERSION_BYTES)
    return OtherKey(version, data[VERSION_BYTES:])


def encode_key(key: Key) -> bytes:
    version = struct.pack(">h", key.version)
    if isinstance(key, OtherKey):
        return version + key.body
    return layout_of(type(key), key.version, False).written(key, version)


def decode_value(key: Key, data: bytes | None) -> Value | None:
    """Reads a key's value; returns None for a tombstone or an `OtherKey`. Errors: WireError."""
    if data is None or isinstance(key, OtherKey):
        return None
    version = read_version(data, "value", _VALUES)
    of_commit = isinstance(key, OffsetCommitKey)
    kind: type[Value] = OffsetCommitValue if of_commit else GroupMetadataValue
    return layout_of(kind, version, version >= _FLEXIBLE).read(data, "value", VERSION_BYTES)


def encode_value(value: Value) -> bytes:
    """Writes a value in its own version; fields that the version does not have are left out."""
    layout = layout_of(type(value), value.version, value.version >= _FLEXIBLE)
    return layout.written(value, struct.pack(">h", value.version))


def tagged_topic_id(topic_id: Uuid | None) -> Tagged:
    """Returns the tagged fields of a committed offset with this topic id."""
    return () if topic_id is None else ((_TOPIC_ID_TAG, struct.pack(">qq", *topic_id)),)


def partition_for(group_id: str, partitions: int = 50) -> int:
    """Returns the group's partition of `__consumer_offsets`; its leader coordinates the group.

    >>> partition_for("my-group")
    12

    Source   GroupMetadataManager.partitionFor (Utils.abs).
    """
    signed = string_hash(group_id)
    if signed >= 1 << 31:
        signed -= 1 << 32
    # Utils.abs maps Integer.MIN_VALUE, which has no positive counterpart, to 0.
    return 0 if signed == -(1 << 31) else abs(signed) % partitions
