# SPDX-License-Identifier: Apache-2.0
"""Reads requests and writes responses of Kafka's protocol; kio has a dataclass for every version.

`filled` makes such a dataclass from a dictionary of fields. It leaves out fields that the version
does not have, and takes times in milliseconds and error codes as numbers.
"""

import dataclasses
import datetime
import importlib
import io
import struct
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from kafka_rebalance.errors import MissingExtra, WireError

from .apis import API_VERSIONS, APIS, NAMES

try:
    from kio.index import load_entity_schema
    from kio.records.readers import read_batch
    from kio.records.schema import NewRecordBatch, Record
    from kio.records.writers import write_new_batch
    from kio.schema.errors import ErrorCode as KafkaError
    from kio.serial import entity_reader, entity_writer
    from kio.serial.errors import SerialError
    from kio.static.constants import EntityType

    from . import array_counts
except ImportError:
    raise MissingExtra("kafka_rebalance.serve", "serve") from None

__all__ = [
    "Asked",
    "KafkaError",
    "NewRecordBatch",
    "Record",
    "SerialError",
    "decoded",
    "encoded",
    "filled",
    "read_batch",
    "subscription",
    "write_new_batch",
]

_START = struct.Struct(">hhi")
"""The first fields of every request: key and version of the API, correlation id."""


class Asked(NamedTuple):
    """One request; `body` is None for ApiVersions in a version that is not known here."""

    api: str
    version: int
    correlation_id: int
    client_id: str
    body: Any


def decoded(frame: bytes) -> Asked:
    """Reads a request. Errors: WireError."""
    try:
        key, version, correlation_id = _START.unpack_from(frame)
        api = NAMES[key]
        _, least, most = APIS[api]
        if not least <= version <= most:
            if api == API_VERSIONS:
                return Asked(api, version, correlation_id, "", None)
            raise WireError(f"{api}: version {version} is not one of {least} to {most}")
        schema: Any = load_entity_schema(api, version, EntityType.request)
        header, size = _reader(schema.__header_schema__)(frame, 0)
        array_counts.check(schema, frame, size)
        body, _ = _reader(schema)(frame, size)
    except WireError:
        raise
    except Exception as error:  # kio raises errors of many kinds for bytes that are no request
        raise WireError(f"no request: {type(error).__name__}: {error}") from error
    return Asked(api, version, correlation_id, header.client_id or "", body)


def encoded(asked: Asked, fields: Mapping[str, Any]) -> bytes:
    """Returns the bytes of the response to a request, with their length in front."""
    version = asked.version if asked.body is not None else 0
    schema: Any = load_entity_schema(asked.api, version, EntityType.response)
    header = filled(schema.__header_schema__, {"correlation_id": asked.correlation_id})
    buffer = io.BytesIO()
    for part in (header, filled(schema, {"throttle_time": 0, **fields})):
        kind: Any = type(part)
        _writer(kind)(buffer, part)
    body = buffer.getvalue()
    return struct.pack(">i", len(body)) + body


def subscription(version: int, fields: Mapping[str, Any]) -> bytes:
    """Returns the bytes of a consumer's subscription; lists keep their order."""
    module = importlib.import_module(f"kio.schema.consumer_protocol_subscription.v{version}.data")
    schema = module.ConsumerProtocolSubscription
    buffer = io.BytesIO()
    _writer(schema)(buffer, filled(schema, fields))
    return struct.pack(">h", version) + buffer.getvalue()


def filled(schema: Any, fields: Mapping[str, Any]) -> Any:
    """Makes one of kio's dataclasses from fields by name."""
    hints = _hints(schema)
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


@cache
def _hints(schema: Any) -> dict[str, Any]:
    names = {field.name for field in dataclasses.fields(schema)}
    return {name: hint for name, hint in typing.get_type_hints(schema).items() if name in names}


@cache
def _writer(schema: Any) -> Any:
    return entity_writer(schema)


@cache
def _reader(schema: Any) -> Any:
    return entity_reader(schema)
