# SPDX-License-Identifier: Apache-2.0
"""The records that classic groups write to `__consumer_offsets`: keys and values, every version.

    key 0, 1   offset commit     group string, topic string, partition int32
    key 2      group metadata    group string
    other      a key of another kind of group: `OtherKey`, kept as bytes

Every key and value starts with an int16 version, big-endian. `string` is an int16 length
and UTF-8 (-1 is null), `bytes` an int32 length and data, `array` an int32 count. Value version 4 is
"flexible": lengths are unsigned varints of length + 1, and every struct ends with tagged fields,
which are kept as bytes. A record that is read and written again has the same bytes as before.

Errors   WireError with the name of the field; a tombstone is `None` instead of a value.
Source   OffsetCommitKey/Value.json and GroupMetadataKey/Value.json of Kafka's group coordinator.
"""

from dataclasses import dataclass

from kafka_rebalance.errors import WireError

from .primitives import Reader, Tagged, Writer

_OFFSET_KEYS = (0, 1)
_GROUP_KEY = 2
_HIGHEST_VALUE = 4
_FLEXIBLE = 4


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
    """A committed offset; -1 is none in `leader_epoch` (v3 on) and `expire_timestamp_ms` (v1)."""

    offset: int
    metadata: str
    commit_timestamp_ms: int
    leader_epoch: int = -1
    expire_timestamp_ms: int = -1
    version: int = 3
    tagged: Tagged = ()


@dataclass(frozen=True, slots=True)
class MemberMetadata:
    """A member in a group's record; `rebalance_timeout_ms` is -1 in v0, which lacks the field."""

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
    """A group; `current_state_timestamp_ms` exists from v2 on, and -1 means none."""

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
    """Reads a key; one of an unknown version is an `OtherKey`, not an error. Errors: WireError."""
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
    """Writes a key."""
    writer = Writer(flexible=False)
    writer.int16(key.version)
    match key:
        case OffsetCommitKey():
            writer.string(key.group_id)
            writer.string(key.topic)
            writer.int32(key.partition)
        case GroupMetadataKey():
            writer.string(key.group_id)
        case OtherKey():
            writer.raw(key.body)
    return writer.written()


def decode_value(key: Key, data: bytes | None) -> Value | None:
    """Reads the value of a key; a tombstone or an `OtherKey` has None. Errors: WireError."""
    if data is None or isinstance(key, OtherKey):
        return None
    reader = Reader(data, "value")
    version = reader.int16("version")
    if not 0 <= version <= _HIGHEST_VALUE:
        raise WireError(f"value.version: {version} is not known (0 to {_HIGHEST_VALUE} are)")
    reader.flexible = version >= _FLEXIBLE
    value = (
        _read_offset(reader, version)
        if isinstance(key, OffsetCommitKey)
        else _read_group(reader, version)
    )
    reader.end()
    return value


def encode_value(value: Value) -> bytes:
    """Writes a value in its own version; fields that the version does not have are left out."""
    writer = Writer(flexible=value.version >= _FLEXIBLE)
    writer.int16(value.version)
    match value:
        case OffsetCommitValue():
            _write_offset(writer, value)
        case GroupMetadataValue():
            _write_group(writer, value)
    return writer.written()


def _read_offset(reader: Reader, version: int) -> OffsetCommitValue:
    offset = reader.int64("offset")
    leader_epoch = reader.int32("leaderEpoch") if version >= 3 else -1
    metadata = reader.string("metadata")
    committed = reader.int64("commitTimestamp")
    expires = reader.int64("expireTimestamp") if version == 1 else -1
    tagged = reader.tagged()
    return OffsetCommitValue(offset, metadata, committed, leader_epoch, expires, version, tagged)


def _write_offset(writer: Writer, value: OffsetCommitValue) -> None:
    writer.int64(value.offset)
    if value.version >= 3:
        writer.int32(value.leader_epoch)
    writer.string(value.metadata)
    writer.int64(value.commit_timestamp_ms)
    if value.version == 1:
        writer.int64(value.expire_timestamp_ms)
    writer.tagged(value.tagged)


def _read_group(reader: Reader, version: int) -> GroupMetadataValue:
    protocol_type = reader.string("protocolType")
    generation_id = reader.int32("generation")
    protocol = reader.nullable_string("protocol")
    leader = reader.nullable_string("leader")
    timestamp = reader.int64("currentStateTimestamp") if version >= 2 else -1
    count = reader.count("members")
    members = tuple(_read_member(reader, version, at) for at in range(count))
    tagged = reader.tagged()
    return GroupMetadataValue(
        protocol_type, generation_id, protocol, leader, timestamp, members, version, tagged
    )


def _read_member(reader: Reader, version: int, at: int) -> MemberMetadata:
    path = f"members[{at}]."
    member_id = reader.string(path + "memberId")
    instance = reader.nullable_string(path + "groupInstanceId") if version >= 3 else None
    client_id = reader.string(path + "clientId")
    client_host = reader.string(path + "clientHost")
    rebalance_timeout = reader.int32(path + "rebalanceTimeout") if version >= 1 else -1
    session_timeout = reader.int32(path + "sessionTimeout")
    subscription = reader.data(path + "subscription")
    assignment = reader.data(path + "assignment")
    return MemberMetadata(
        member_id,
        instance,
        client_id,
        client_host,
        rebalance_timeout,
        session_timeout,
        subscription,
        assignment,
        reader.tagged(),
    )


def _write_group(writer: Writer, value: GroupMetadataValue) -> None:
    writer.string(value.protocol_type)
    writer.int32(value.generation_id)
    writer.string(value.protocol)
    writer.string(value.leader)
    if value.version >= 2:
        writer.int64(value.current_state_timestamp_ms)
    writer.count(len(value.members))
    for member in value.members:
        writer.string(member.member_id)
        if value.version >= 3:
            writer.string(member.group_instance_id)
        writer.string(member.client_id)
        writer.string(member.client_host)
        if value.version >= 1:
            writer.int32(member.rebalance_timeout_ms)
        writer.int32(member.session_timeout_ms)
        writer.data(member.subscription)
        writer.data(member.assignment)
        writer.tagged(member.tagged)
    writer.tagged(value.tagged)
