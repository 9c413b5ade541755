# SPDX-License-Identifier: Apache-2.0
"""Checks the counts of arrays in a request before kio reads it.

kio reserves memory for as many entries as a request announces, and a process that asks for too much
memory ends. An entry has at least one byte, so a count above the number of bytes left is refused.
kio also reads null in place of any array. As in Kafka, null is refused where it is not allowed.
kio's own functions read the fields. Tagged fields are skipped: no request here has arrays in them.
"""

import dataclasses
import typing
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from kio.serial._introspect import classify_field, get_field_tag
from kio.serial._parse import get_field_reader, get_reader
from kio.serial.readers import (
    read_compact_array_length,
    read_legacy_array_length,
    read_unsigned_varint,
)

from kafka_rebalance.errors import WireError

Read = Callable[[bytes, int], tuple[Any, int]]


class _Field(NamedTuple):
    name: str
    is_array: bool
    may_be_null: bool
    nested: Any
    """The dataclass of the field or of its entries; None for a value, which `read` reads."""
    read: Read | None


def check(schema: Any, frame: bytes, start: int) -> int:
    """Returns the size in bytes of the message at `start`. Errors: WireError, and kio's errors."""
    count_of: Read = read_compact_array_length if schema.__flexible__ else read_legacy_array_length
    at = start
    for name, is_array, may_be_null, nested, read in _fields(schema):
        entries = 1
        if is_array:
            count, size = count_of(frame, at)
            if not may_be_null and (count is None or count < 0):
                raise WireError(f"{name}: null")
            entries, at = count or 0, at + size
            if entries > len(frame) - at:
                raise WireError(f"an array of {entries} entries in {len(frame) - at} bytes")
        for _ in range(entries):
            at += check(nested, frame, at) if read is None else read(frame, at)[1]
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
def _fields(schema: Any) -> tuple[_Field, ...]:
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
