# SPDX-License-Identifier: Apache-2.0
"""Reads requests and writes responses with kio, which has a class for each version of a message.

The requests and responses of broker-assigned groups are read and written with the
coordinator's own classes. `filled` makes an object of one of kio's classes from a dictionary of
fields. It leaves out fields that the version does not have, and takes times in milliseconds and
error codes as numbers. Fields that the dictionary lacks have their default, or are empty.
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
from kafka_rebalance.wire.primitives import Source

try:
    from kio.index import load_entity_schema
    from kio.schema.errors import ErrorCode as KafkaError
    from kio.serial import entity_reader, entity_writer
    from kio.serial._introspect import classify_field, get_field_tag
    from kio.serial._parse import get_field_reader, get_reader
    from kio.static.constants import EntityType
except ImportError:
    raise MissingExtra("kafka_rebalance.serve", "serve") from None

__all__ = ["KafkaError"]

_START = struct.Struct(">hhi")
"""The first fields of every request: key and version of the API, correlation id."""


class Api(NamedTuple):
    """A kind of request: its number in the protocol (API key), and its range of versions.

    `older` holds the newest version that each broker in `_OLDER` answers, -1 if it answers none. If
    `is_coordinated`, only the coordinator of a group or of a transaction answers.
    """

    key: int
    least: int
    most: int
    older: tuple[int, ...]
    is_coordinated: bool


API_VERSIONS = "api_versions"
_OLDER = ("2.8", "3.9", "4.0")


def _api(number: str, least: str, most: str, *older: str) -> Api:
    newest = (-1 if one == "-" else int(one) for one in older[: len(_OLDER)])
    is_coordinated = "coordinator" in older
    return Api(int(number), int(least), int(most), tuple(newest), is_coordinated)


# Name, number and versions; the newest version that Kafka 2.8, 3.9 and 4.0 answer; who answers.
_TABLE = """
    produce                       0   3 13   9 11 12
    fetch                         1   4 17  12 17 17
    list_offsets                  2   1 10   6  9 10
    metadata                      3   0 13  11 12 13
    offset_commit                 8   2 10   8  9  9  coordinator
    offset_fetch                  9   1 10   7  9  9  coordinator
    find_coordinator             10   0  6   3  6  6
    join_group                   11   0  9   7  9  9  coordinator
    heartbeat                    12   0  4   4  4  4  coordinator
    leave_group                  13   0  5   4  5  5  coordinator
    sync_group                   14   0  5   5  5  5  coordinator
    describe_groups              15   0  6   5  5  6  coordinator
    list_groups                  16   0  5   4  5  5
    api_versions                 18   0  4   3  4  4
    create_topics                19   2  7   7  7  7
    delete_topics                20   1  6   6  6  6
    delete_records               21   0  2   2  2  2
    init_producer_id             22   0  4   4  4  4  coordinator
    add_partitions_to_txn        24   0  3   3  3  3  coordinator
    add_offsets_to_txn           25   0  3   3  3  3  coordinator
    end_txn                      26   0  3   3  3  3  coordinator
    txn_offset_commit            28   0  3   3  3  3  coordinator
    describe_configs             32   1  4   4  4  4
    alter_configs                33   0  2   2  2  2
    create_partitions            37   0  3   3  3  3
    delete_groups                42   0  2   2  2  2  coordinator
    incremental_alter_configs    44   0  1   1  1  1
    offset_delete                47   0  0   0  0  0  coordinator
    describe_cluster             60   0  2   0  1  2
    describe_transactions        65   0  0   -  0  0  coordinator
    consumer_group_heartbeat     68   0  1   -  0  1  coordinator
    consumer_group_describe      69   0  1   -  0  1  coordinator
    list_config_resources        74   0  1   -  -  0
    share_group_heartbeat        76   1  1   -  -  -  coordinator
    share_group_describe         77   1  1   -  -  -  coordinator
    share_fetch                  78   1  2   -  -  -
    share_acknowledge            79   1  2   -  -  -
    streams_group_heartbeat      88   0  0   -  -  -  coordinator
    streams_group_describe       89   0  0   -  -  -  coordinator
    describe_share_group_offsets 90   0  1   -  -  -  coordinator
    alter_share_group_offsets    91   0  0   -  -  -  coordinator
    delete_share_group_offsets   92   0  0   -  -  -  coordinator
"""
APIS = {name: _api(*row) for name, *row in map(str.split, _TABLE.strip().splitlines())}
"""Name -> number and versions, in the order of the numbers."""


def apis_of(kafka: str | None) -> Mapping[str, Api]:
    """Returns the requests that a broker of this Kafka version answers; for None, all of APIS.

    Errors: GroupError for a version that is not known here.
    """
    if kafka is None:
        return APIS
    if kafka not in _OLDER:
        raise GroupError("kafka", f"{kafka!r} is not known; give one of {', '.join(_OLDER)}")
    at = _OLDER.index(kafka)
    limited = {name: api._replace(most=api.older[at]) for name, api in APIS.items()}
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
    of a kio class.
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
        of = apis[api]
        if not of.least <= version <= of.most:
            if api == API_VERSIONS:
                return Asked(api, version, correlation_id, "", None)
            raise WireError(f"{api}: version {version} is not one of {of.least} to {of.most}")
        schema: Any = _schema(api, version, EntityType.request)
        header, size = _reader(schema.__header_schema__)(frame, 0)
        if api in _OF_BROKER_GROUPS:
            own: Any = _OF_BROKER_GROUPS[api]
            body: Any = layout_of(own, version).read(frame, api, size)
        else:
            source = Source(frame)
            source.take(size)
            _check_counts(schema, source)
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
        _writer(schema)(buffer, filled(schema, fields))
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
    """Returns an instance of `schema`, a dataclass of kio, with values from `fields`, by name.

    A field that `fields` lacks has kio's default, or else null, 0, "" or no entries.
    """
    hints, values = field_hints(schema), _zeros(schema)
    given = {name: _value(hints[name], value) for name, value in fields.items() if name in hints}
    return schema(**values | given)


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


@cache
def _zeros(schema: Any) -> dict[str, Any]:
    """Returns the values of the fields of `schema` that have no default."""
    needed = (one.name for one in dataclasses.fields(schema) if one.default is dataclasses.MISSING)
    hints = field_hints(schema)
    return {name: _zero(hints[name]) for name in needed}


def _zero(hint: Any) -> Any:
    if type(None) in typing.get_args(hint):
        return None
    if typing.get_origin(hint) is tuple:
        return ()
    if dataclasses.is_dataclass(hint):
        return filled(hint, {})
    base = next((one for one in (bool, int, str, bytes) if issubclass(hint, one)), int)
    return _value(hint, base())


_schema: Any = cache(load_entity_schema)
_writer: Any = cache(entity_writer)
_reader: Any = cache(entity_reader)


# The counts of arrays in a request ---------------------------------------------------------------

Read = Callable[[bytes, int], tuple[Any, int]]
_COUNT = struct.Struct(">i")


class _Field(NamedTuple):
    name: str
    is_array: bool
    may_be_null: bool
    nested: Any
    """The dataclass of the field or of its entries; None for a value that `read` reads."""
    read: Read | None


def _check_counts(schema: Any, source: Source) -> None:
    """Checks a message, and passes over it. Errors: WireError, those of kio and of `Source`.

    kio reserves memory for as many entries as a request announces, and a process that asks for too
    much memory is killed. An entry has at least one byte, so a count is refused if fewer bytes are
    left. kio also reads null in place of any array; as in Kafka, null is refused where it is not
    allowed. Tagged fields are skipped: in the requests read here, they contain no arrays.
    """
    for name, is_array, may_be_null, nested, read in _fields_of(schema):
        entries = 1
        if is_array:
            entries = source.varint() - 1 if schema.__flexible__ else source.number(_COUNT)
            if entries < 0 and not may_be_null:
                raise WireError(f"{name}: null")
            left = len(source.data) - source.at
            if entries > left:
                raise WireError(f"an array of {entries} entries in {left} bytes")
        for _ in range(entries):
            if read is None:
                _check_counts(nested, source)
            else:
                source.at += read(source.data, source.at)[1]
    if schema.__flexible__:
        source.tagged()


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
