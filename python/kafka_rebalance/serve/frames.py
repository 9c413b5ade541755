# SPDX-License-Identifier: Apache-2.0
"""Reads requests and writes responses with kio, which has a class for each version of a message.

The requests and responses of broker-assigned groups are read and written with the
coordinator's own classes. `filled` makes an object of one of kio's classes from a dictionary of
fields. It leaves out fields that the version does not have, and takes times in milliseconds and
error codes as numbers.
"""

import dataclasses
import datetime
import importlib
import io
import struct
import typing
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

from kafka_rebalance.errors import GroupError, MissingExtra, WireError
from kafka_rebalance.frozen import Message
from kafka_rebalance.group.declared_types import field_hints
from kafka_rebalance.wire import broker_groups, streams_groups
from kafka_rebalance.wire.layout import layout_of
from kafka_rebalance.wire.messages import Response

try:
    from kio.index import load_entity_schema
    from kio.schema.errors import ErrorCode as KafkaError
    from kio.serial import entity_reader, entity_writer
    from kio.serial._introspect import classify_field, get_field_tag
    from kio.serial._parse import get_field_reader, get_reader
    from kio.serial.readers import (
        read_compact_array_length,
        read_legacy_array_length,
        read_unsigned_varint,
    )
    from kio.static.constants import EntityType
except ImportError:
    raise MissingExtra("kafka_rebalance.serve", "serve") from None

__all__ = ["KafkaError"]

_START = struct.Struct(">hhi")
"""The first fields of every request: key and version of the API, correlation id."""


class Api(NamedTuple):
    """A kind of request: its number in the protocol (API key), and its range of versions."""

    key: int
    least: int
    most: int


API_VERSIONS = "api_versions"

APIS: dict[str, Api] = {
    "produce": Api(0, 3, 13),
    "fetch": Api(1, 4, 17),
    "list_offsets": Api(2, 1, 10),
    "metadata": Api(3, 0, 13),
    "offset_commit": Api(8, 2, 10),
    "offset_fetch": Api(9, 1, 10),
    "find_coordinator": Api(10, 0, 6),
    "join_group": Api(11, 0, 9),
    "heartbeat": Api(12, 0, 4),
    "leave_group": Api(13, 0, 5),
    "sync_group": Api(14, 0, 5),
    "describe_groups": Api(15, 0, 6),
    "list_groups": Api(16, 0, 5),
    API_VERSIONS: Api(18, 0, 4),
    "create_topics": Api(19, 2, 7),
    "delete_topics": Api(20, 1, 6),
    "delete_records": Api(21, 0, 2),
    "init_producer_id": Api(22, 0, 4),
    "add_partitions_to_txn": Api(24, 0, 3),
    "add_offsets_to_txn": Api(25, 0, 3),
    "end_txn": Api(26, 0, 3),
    "txn_offset_commit": Api(28, 0, 3),
    "describe_configs": Api(32, 1, 4),
    "alter_configs": Api(33, 0, 2),
    "create_partitions": Api(37, 0, 3),
    "delete_groups": Api(42, 0, 2),
    "incremental_alter_configs": Api(44, 0, 1),
    "offset_delete": Api(47, 0, 0),
    "describe_cluster": Api(60, 0, 2),
    "describe_transactions": Api(65, 0, 0),
    "consumer_group_heartbeat": Api(68, 0, 1),
    "consumer_group_describe": Api(69, 0, 1),
    "list_config_resources": Api(74, 0, 1),
    "share_group_heartbeat": Api(76, 1, 1),
    "share_group_describe": Api(77, 1, 1),
    "share_fetch": Api(78, 1, 2),
    "share_acknowledge": Api(79, 1, 2),
    "streams_group_heartbeat": Api(88, 0, 0),
    "streams_group_describe": Api(89, 0, 0),
    "describe_share_group_offsets": Api(90, 0, 1),
    "alter_share_group_offsets": Api(91, 0, 0),
    "delete_share_group_offsets": Api(92, 0, 0),
}
"""Name -> number and versions, in the order of the numbers."""

_NONE = -1
_SHARE_AND_STREAMS = dict.fromkeys(
    (name for name, api in APIS.items() if api.key >= APIS["share_group_heartbeat"].key), _NONE
)
# The newest versions of requests that an older broker answers, where they differ from APIS.
_OLDER = {
    "2.8": {
        "produce": 9,
        "fetch": 12,
        "list_offsets": 6,
        "metadata": 11,
        "offset_commit": 8,
        "offset_fetch": 7,
        "find_coordinator": 3,
        "join_group": 7,
        "leave_group": 4,
        "describe_groups": 5,
        "list_groups": 4,
        API_VERSIONS: 3,
        "describe_cluster": 0,
        "list_config_resources": _NONE,
        "describe_transactions": _NONE,
        "consumer_group_heartbeat": _NONE,
        "consumer_group_describe": _NONE,
        **_SHARE_AND_STREAMS,
    },
    "3.9": {
        "produce": 11,
        "list_offsets": 9,
        "metadata": 12,
        "offset_commit": 9,
        "offset_fetch": 9,
        "describe_groups": 5,
        "describe_cluster": 1,
        "list_config_resources": _NONE,
        "consumer_group_heartbeat": 0,
        "consumer_group_describe": 0,
        **_SHARE_AND_STREAMS,
    },
    "4.0": {
        "produce": 12,
        "offset_commit": 9,
        "offset_fetch": 9,
        "list_config_resources": 0,
        **_SHARE_AND_STREAMS,
    },
}


def apis_of(kafka: str | None) -> Mapping[str, Api]:
    """Returns the requests that a broker of this Kafka version answers; for None, all of APIS.

    Errors: GroupError for a version that is not known here.
    """
    if kafka is not None and kafka not in _OLDER:
        raise GroupError("kafka", f"{kafka!r} is not known; give one of {', '.join(_OLDER)}")
    most = {} if kafka is None else _OLDER[kafka]
    limited = {n: api._replace(most=most.get(n, api.most)) for n, api in APIS.items()}
    return {name: api for name, api in limited.items() if api.most >= api.least}


_OF_BROKER_GROUPS: dict[str, type[Message]] = {
    "consumer_group_heartbeat": broker_groups.ConsumerGroupHeartbeat,
    "consumer_group_describe": broker_groups.ConsumerGroupDescribe,
    "share_group_heartbeat": broker_groups.ShareGroupHeartbeat,
    "share_group_describe": broker_groups.ShareGroupDescribe,
    "streams_group_heartbeat": streams_groups.SentStreamsHeartbeat,
    "streams_group_describe": streams_groups.StreamsGroupDescribe,
}

NAMES = {api.key: name for name, api in APIS.items()}


class Asked(NamedTuple):
    """A request as read. `body` is None for ApiVersions in a version that is unknown here.

    The body of a request about a broker-assigned group is a `Message`; any other body is an object
    of kio's.
    """

    api: str
    version: int
    correlation_id: int
    client_id: str
    body: Any
    port: int = 0
    """The port of the server to which the client is connected."""
    connection: int = 0
    """The number of the client's connection."""
    error: KafkaError = KafkaError.none
    """The error to answer in place of the result; the request is not carried out."""


def decoded(frame: bytes, apis: Mapping[str, Api] = APIS) -> Asked:
    """Reads a request. Errors: WireError."""
    try:
        key, version, correlation_id = _START.unpack_from(frame)
        api = NAMES[key]
        _, least, most = apis[api]
        if not least <= version <= most:
            if api == API_VERSIONS:
                return Asked(api, version, correlation_id, "", None)
            raise WireError(f"{api}: version {version} is not one of {least} to {most}")
        schema: Any = _schema(api, version, EntityType.request)
        header, size = _reader(schema.__header_schema__)(frame, 0)
        if api in _OF_BROKER_GROUPS:
            own: Any = _OF_BROKER_GROUPS[api]
            body: Any = layout_of(own, version).read(frame, api, size)
        else:
            _check_counts(schema, frame, size)
            body, _ = _reader(schema)(frame, size)
    except WireError:
        raise
    except Exception as error:  # for bytes that are not a request, kio raises errors of many kinds
        raise WireError(f"no request: {type(error).__name__}: {error}") from error
    return Asked(api, version, correlation_id, header.client_id or "", body)


def encoded(asked: Asked, fields: Mapping[str, Any] | Response) -> bytes:
    """Returns the bytes of the response to a request, with their length in front."""
    version = asked.version if asked.body is not None else 0
    schema: Any = _schema(asked.api, version, EntityType.response)
    header = schema.__header_schema__(correlation_id=asked.correlation_id)
    buffer = io.BytesIO()
    _writer(schema.__header_schema__)(buffer, header)
    if isinstance(fields, Response):
        buffer.write(layout_of(type(fields), version).written(fields))
    else:
        _writer(schema)(buffer, filled(schema, {"throttle_time": 0, **fields}))
    body = buffer.getvalue()
    return struct.pack(">i", len(body)) + body


def subscription(version: int, fields: Mapping[str, Any]) -> bytes:
    """Returns the bytes of a consumer's subscription; topics and partitions keep their order."""
    module = importlib.import_module(f"kio.schema.consumer_protocol_subscription.v{version}.data")
    schema = module.ConsumerProtocolSubscription
    buffer = io.BytesIO()
    _writer(schema)(buffer, filled(schema, fields))
    return struct.pack(">h", version) + buffer.getvalue()


def filled(schema: Any, fields: Mapping[str, Any]) -> Any:
    """Returns an instance of `schema`, a dataclass of kio, with values from `fields`, by name."""
    hints = field_hints(schema)
    return schema(
        **{name: _value(hints[name], value) for name, value in fields.items() if name in hints}
    )


def _value(hint: Any, value: Any) -> Any:
    if value is None:
        return None
    for kind in typing.get_args(hint) or (hint,):
        if kind is KafkaError:
            return KafkaError(int(value))
        if kind is datetime.timedelta or getattr(kind, "__name__", "").endswith("Timedelta"):
            return datetime.timedelta(milliseconds=value)
        if isinstance(value, (list, tuple)):
            # `hint` is tuple[X, ...] or tuple[X, ...] | None: `kind` is X or tuple[X, ...]
            inner = next(iter(typing.get_args(kind)), kind)
            return tuple(_value(inner, one) for one in value)
        if dataclasses.is_dataclass(kind) and isinstance(value, dict):
            return filled(kind, value)
    return value


_schema = cache(load_entity_schema)


@cache
def _writer(schema: Any) -> Any:
    return entity_writer(schema)


@cache
def _reader(schema: Any) -> Any:
    return entity_reader(schema)


# The counts of arrays in a request ---------------------------------------------------------------

Read = Callable[[bytes, int], tuple[Any, int]]


class _Field(NamedTuple):
    name: str
    is_array: bool
    may_be_null: bool
    nested: Any
    """The dataclass of the field or of its entries; None for a value that `read` reads."""
    read: Read | None


def _check_counts(schema: Any, frame: bytes, start: int) -> int:
    """Checks the message at `start`; returns its size in bytes. Errors: WireError, kio's errors.

    kio reserves memory for as many entries as a request announces, and a process that asks for too
    much memory is killed. An entry has at least one byte, so a count is refused if fewer bytes are
    left. kio also reads null in place of any array; as in Kafka, null is refused where it is not
    allowed. Tagged fields are skipped: in the requests read here, they contain no arrays.
    """
    count_of: Read = read_compact_array_length if schema.__flexible__ else read_legacy_array_length
    at = start
    for name, is_array, may_be_null, nested, read in _fields_of(schema):
        entries = 1
        if is_array:
            count, size = count_of(frame, at)
            if not may_be_null and (count is None or count < 0):
                raise WireError(f"{name}: null")
            entries, at = count or 0, at + size
            if entries > len(frame) - at:
                raise WireError(f"an array of {entries} entries in {len(frame) - at} bytes")
        for _ in range(entries):
            at += _check_counts(nested, frame, at) if read is None else read(frame, at)[1]
    if schema.__flexible__:
        at += _tagged(frame, at)
    return at - start


def _tagged(frame: bytes, start: int) -> int:
    count, at = read_unsigned_varint(frame, start)
    at += start
    for _ in range(count):
        _, size = read_unsigned_varint(frame, at)
        at += size
        length, size = read_unsigned_varint(frame, at)
        at += size + length
    return at - start


@cache
def _fields_of(schema: Any) -> tuple[_Field, ...]:
    found = []
    hints = typing.get_type_hints(schema)
    for field in dataclasses.fields(schema):
        if get_field_tag(field) is not None:
            continue
        kind = classify_field(field)
        may_be_null = type(None) in typing.get_args(hints[field.name])
        start = (field.name, kind.is_array, may_be_null)
        if dataclasses.is_dataclass(kind.type_):
            found.append(_Field(*start, kind.type_, None))
        elif kind.is_array:
            read = get_reader(str(field.metadata["kafka_type"]), schema.__flexible__, False)
            found.append(_Field(*start, None, read))
        else:
            found.append(_Field(*start, None, get_field_reader(schema, field, False, False)))
    return tuple(found)
