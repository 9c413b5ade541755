# SPDX-License-Identifier: Apache-2.0
"""Writes records of `__consumer_offsets` as JSON, for the answers of `driver.py`.

An offset and a classic group have short keys of their own. A record of any other type has `type`,
`key_version`, `k` and `value`, with the field names of the classes that decode it; the value null
is a tombstone. All have their bytes: `kb`, `vb`.
"""

import dataclasses
from typing import Any

from kafka_rebalance.coordinator import interface
from kafka_rebalance.wire import group_records as wire
from kafka_rebalance.wire.assigning_group_records import decode_any

from .driver_commands import Json
from .virtual_broker import id_text


def record_event(at: int, record: interface.LogRecord) -> Json:
    """Returns the event of a record that was written at `at` ms."""
    event: Json = {"ev": "record", "t": at}
    assigning = decode_any(*record)
    if assigning is not None:
        kind, fields = assigning.key.type, assigning.key._asdict().items()
        event |= {"type": kind.name, "key_version": kind.value}
        event["k"] = {name: value for name, value in fields if value is not None and name != "type"}
        event["value"] = _json(assigning.value)
    key = wire.decode_key(record.key)
    value = wire.decode_value(key, record.value)
    match key:
        case wire.OffsetCommitKey(group_id, topic, partition):
            event |= {"type": "offset", "key": f"{group_id}/{topic}/{partition}"}
        case wire.GroupMetadataKey(group_id):
            event |= {"type": "group", "key": group_id}
    event["kb"] = record.key.hex()
    event["vb"] = None if record.value is None else record.value.hex()
    match value:
        case wire.OffsetCommitValue():
            event |= _offset(value)
        case wire.GroupMetadataValue():
            event |= _classic_group(value)
    return event


def _offset(value: wire.OffsetCommitValue) -> Json:
    return {
        "ver": value.version,
        "off": value.offset,
        "cts": value.commit_timestamp_ms,
        "ets": value.expire_timestamp_ms,
    }


def _classic_group(value: wire.GroupMetadataValue) -> Json:
    members = [
        {
            "id": one.member_id,
            "inst": one.group_instance_id,
            "rt": one.rebalance_timeout_ms,
            "st": one.session_timeout_ms,
            "sub": text_of(one.subscription),
            "asg": text_of(one.assignment),
        }
        for one in value.members
    ]
    return {
        "ver": value.version,
        "gen": value.generation_id,
        "proto": value.protocol,
        "ptype": value.protocol_type,
        "leader": value.leader,
        "ts": value.current_state_timestamp_ms,
        "members": members,
    }


def text_of(data: bytes) -> str:
    """Returns printable ASCII as it is, other bytes as hex."""
    plain = all(32 <= byte <= 126 for byte in data)
    return data.decode("ascii") if plain else f"hex:{data.hex()}"


def _json(value: object) -> object:
    """Returns a decoded value: fields by name, bytes as `text_of` has them, topic ids in base64."""
    if isinstance(value, bytes):
        return text_of(value)
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return [_json(item) for item in value]
    if isinstance(value, tuple) or dataclasses.is_dataclass(value):
        return {
            name: id_text(field) if name == "topic_id" else _json(field)
            for name, field in _fields(value)
        }
    return value


def _fields(value: Any) -> list[tuple[str, Any]]:
    if dataclasses.is_dataclass(value):
        return [(one.name, getattr(value, one.name)) for one in dataclasses.fields(value)]
    return list(zip(value._fields, value, strict=True))
