# SPDX-License-Identifier: Apache-2.0
"""Reads and writes what the records of all groups whose brokers assign share.

A key is its type as int16, the group id and, in some types, a name. A value starts with version 0
as int16 and is "flexible".

Errors   WireError, which names the field.
"""

from collections.abc import Callable, Collection, Mapping
from enum import IntEnum
from typing import TypeVar

from kafka_rebalance.errors import WireError

from .primitives import Reader, Writer

_VERSION = 0
_EPOCHS = 0  # the tag of assignment epochs
_Type = TypeVar("_Type", bound=IntEnum)
_Value = TypeVar("_Value")


def read_key(
    data: bytes, types: Mapping[int, _Type], without_name: Collection[_Type], name: str
) -> tuple[_Type, str, str | None] | None:
    """Returns a key's type, group id and name; None if its type is not one of `types`.

    The types `without_name` have no name. `name` is what an error calls the name.
    """
    reader = Reader(data, "key")
    kind = types.get(reader.int16("version"))
    if kind is None:
        return None
    group_id = reader.string("group")
    named = None if kind in without_name else reader.string(name)
    reader.end()
    return kind, group_id, named


def key_bytes(kind: IntEnum, group_id: str, name: str | None) -> bytes:
    """Returns the bytes of a key."""
    writer = Writer(flexible=False)
    writer.int16(kind)
    writer.string(group_id)
    if name is not None:
        writer.string(name)
    return writer.written()


def read_value(data: bytes | None, read: Callable[[Reader], _Value]) -> _Value | None:
    """Returns the value whose fields `read` reads; None is a tombstone."""
    if data is None:
        return None
    reader = Reader(data, "value")
    version = reader.int16("version")
    if version != _VERSION:
        raise WireError(f"value.version: {version} is not known ({_VERSION} is)")
    reader.flexible = True
    value = read(reader)
    reader.end()
    return value


def value_writer() -> Writer:
    """Returns a writer that has written the version of a value."""
    writer = Writer(flexible=True)
    writer.int16(_VERSION)
    return writer


def read_epochs(reader: Reader, path: str) -> tuple[int, ...] | None:
    """Reads the tagged fields after partitions: their assignment epochs, or None without them."""
    data = dict(reader.tagged()).get(_EPOCHS)
    if data is None:
        return None
    inner = Reader(data, f"value.{path}")
    inner.flexible = True
    epochs = inner.numbers("assignmentEpochs")
    inner.end()
    return epochs


def write_epochs(writer: Writer, epochs: tuple[int, ...] | None) -> None:
    """Writes the tagged fields after partitions."""
    if epochs is None:
        writer.tagged(())
        return
    inner = Writer(flexible=True)
    inner.numbers(epochs)
    writer.tagged(((_EPOCHS, inner.written()),))
