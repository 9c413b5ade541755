# SPDX-License-Identifier: Apache-2.0
"""Makes the functions that read and write a message from the annotations of its class.

A message is a dataclass or a NamedTuple whose fields stand in the order of the bytes:

    Int8, Int16, Uint16, Int32, Int64   a number, big-endian
    bool, an IntEnum                    a number of 8 bits, unless an annotation names another
    Uuid                                two numbers of 64 bits
    str, bytes                          a length and the data; "| None": the length may be -1
    JavaString                          as `DataOutput.writeUTF` writes: 16 bits of length, then
                                        each UTF-16 unit in 1 to 3 bytes
    JavaChars                           32 bits of length, then UTF-16 units of 16 bits
    tuple[T, ...]                       a count and the entries; "| None": the count may be -1
    another message                     its fields; "| None": after a byte, negative for null;
                                        in a tagged field, 0 is null
    Rest                                all bytes that are left

    Annotated[T, Tag(0)]          one of the tagged fields; left out if it has its default
    Annotated[T, Since(3)]        in version 3 and later; `Since(1, last=1)`: in version 1 only
    Annotated[T, Boxed()]         is wrapped in a message of its own
    Annotated[T, Name("group")]   the name in errors, if it is not the attribute's
    Version                       the version of the message; it is not in the bytes
    Tagged                        unknown tagged fields, which are written as they were read

In "flexible" versions (KIP-482) a length is an unsigned varint of length + 1, and tagged fields
end each message. A field that a version lacks has its default.

Errors   WireError with the path of the field, in Kafka's spelling: `value.members[3].rackId`.
"""

import dataclasses
import struct
import types
import typing
from collections.abc import Callable, Iterator
from enum import IntEnum
from functools import cache
from operator import attrgetter, itemgetter
from typing import Annotated, Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar, Union, cast

from kafka_rebalance.errors import WireError
from kafka_rebalance.frozen import Frozen

from .primitives import Source, _Wrong, put_varint

_T = TypeVar("_T")
_Number = struct.Struct


class Tag(NamedTuple):
    """Marks a tagged field; if `always`, even a default value is written, as Kafka does."""

    number: int
    always: bool = False


class Since(NamedTuple):
    """Marks a field that exists only in the versions from `first` to `last`."""

    first: int
    last: int = 2**15
    absent: Any = dataclasses.MISSING
    """The value in other versions, for a field without a default."""


class Boxed(NamedTuple):
    """Marks a field that is wrapped in a message of its own: the field, then tagged fields."""


class Name(NamedTuple):
    """Marks a field whose name in errors differs from the attribute's name."""

    name: str


class _Special(IntEnum):
    REST = 0
    VERSION = 1
    TAGGED = 2
    JAVA_STRING = 3
    JAVA_CHARS = 4


Int8 = Annotated[int, _Number(">b")]
Int16 = Annotated[int, _Number(">h")]
Uint16 = Annotated[int, _Number(">H")]
Int32 = Annotated[int, _Number(">i")]
Int64 = Annotated[int, _Number(">q")]
JavaString = Annotated[str, _Special.JAVA_STRING]
JavaChars = Annotated[str, _Special.JAVA_CHARS]
Rest = Annotated[bytes, _Special.REST]
Version = Annotated[int, _Special.VERSION]
Tagged = Annotated[tuple[tuple[int, bytes], ...], _Special.TAGGED]
"""Pairs (tag, data), in the order of the bytes."""

_INT8, _INT16, _INT32 = _Number(">b"), _Number(">h"), _Number(">i")
_UINT16 = _Number(">H")
_UUID = _Number(">qq")
VERSION_BYTES = 2

Read = Callable[[Source], Any]
Write = Callable[[list[bytes], Any], None]


class Layout(Frozen, Generic[_T]):
    """Reads and writes the messages of a class, in one version."""

    read_from: Callable[[Source], _T]
    write_to: Callable[[list[bytes], _T], None]

    def read(self, data: bytes, what: str, skip: int = 0, *, may_go_on: bool = False) -> _T:
        """Reads the bytes after the first `skip`; `what` begins the path of an error.

        Bytes after the last field are an error, unless the message `may_go_on`.
        """
        source = Source(data)
        try:
            source.take(skip)
            value = self.read_from(source)
            if not may_go_on:
                source.end()
        except _Wrong as wrong:
            raise WireError(f"{what}.{wrong.path}: {wrong.problem}") from None
        return value

    def written(self, value: _T, *before: bytes) -> bytes:
        """Returns the bytes `before`, followed by the message's bytes."""
        parts = [*before]
        self.write_to(parts, value)
        return b"".join(parts)


@cache
def _compiled(kind: Any, version: int = 0, flexible: bool = True) -> Layout[Any]:
    return Layout(*_struct(kind, version, flexible))


class _LayoutOf(Protocol):
    def __call__(self, kind: type[_T], version: int = 0, flexible: bool = True) -> Layout[_T]: ...


layout_of = cast(_LayoutOf, _compiled)
"""Returns the layout of a class's messages in one version.

Layouts are compiled once and kept forever: call this only with versions that Kafka has.
"""


def read_version(
    data: bytes, what: str, known: range | None = None, size: int = VERSION_BYTES
) -> int:
    """Returns the version at a message's beginning; `known` None allows any. Errors: WireError."""
    if len(data) < size:
        raise WireError(f"{what}.version: needs {size} bytes, {len(data)} are left")
    version = int.from_bytes(data[:size], signed=True)
    if known is not None and version not in known:
        names = f"{known[0]} to {known[-1]} are" if len(known) > 1 else f"{known[0]} is"
        raise WireError(f"{what}.version: {version} is not known ({names})")
    return version


# Messages -----------------------------------------------------------------------------------------


class _Field(NamedTuple):
    attribute: str
    name: str
    hint: Any
    marks: tuple[Any, ...]
    default: Any

    def mark(self, kind: type[_T]) -> _T | None:
        return next((one for one in self.marks if isinstance(one, kind)), None)


def _struct(kind: Any, version: int, flexible: bool) -> tuple[Read, Write]:
    """Returns a reader and a writer for a class's fields; tagged fields are at the end."""
    fields = tuple(_fields(kind))
    absent = [_absent(one, version) for one in fields]
    readers, writers, unknown, ends = [], [], None, flexible
    tags: dict[int, _TaggedField] = {}

    def get(at: int) -> Callable[[Any], Any]:
        return itemgetter(at) if issubclass(kind, tuple) else attrgetter(fields[at].attribute)

    for at, one in enumerate(fields):
        special, tag, since = one.mark(_Special), one.mark(Tag), one.mark(Since)
        is_in = since is None or since.first <= version <= since.last
        if special is _Special.TAGGED:
            unknown = at
        elif special is not _Special.VERSION and is_in:
            read_one, write_one = _typed(one.hint, one.marks, version, flexible)
            if tag is not None:
                tags[tag.number] = _TaggedField(
                    at, one.name, get(at), ... if tag.always else one.default, read_one, write_one
                )
                continue
            readers.append((at, one.name, read_one))
            writers.append((get(at), write_one))
            ends = ends and special is not _Special.REST
    make = _maker(kind, fields)

    def read(source: Source) -> Any:
        found, step = absent.copy(), ""
        try:
            for at, step, read_field in readers:  # noqa: B007 - the error needs the step
                found[at] = read_field(source)
        except _Wrong as wrong:
            raise wrong.within(step) from None
        if ends:
            _read_tags(source, tags, unknown, found)
        return make(found)

    def write(parts: list[bytes], value: Any) -> None:
        for field_of, write_field in writers:
            write_field(parts, field_of(value))
        if ends:
            _write_tags(parts, tags, () if unknown is None else get(unknown)(value), value)

    return read, write


class _TaggedField(NamedTuple):
    at: int
    name: str
    of: Callable[[Any], Any]
    left_out: Any
    """The default; a field with this value is not written."""
    read: Read
    write: Write


def _read_tags(
    source: Source, tags: dict[int, _TaggedField], unknown: int | None, found: list[Any]
) -> None:
    others = []
    for number, data in source.tagged():
        if number not in tags:
            others.append((number, data))
            continue
        at, name, _, _, read, _ = tags[number]
        inner = Source(data)
        try:
            found[at] = read(inner)
            inner.end()
        except _Wrong as wrong:
            raise wrong.within(name) from None
    if unknown is not None:
        found[unknown] = tuple(others)


def _write_tags(
    parts: list[bytes],
    tags: dict[int, _TaggedField],
    others: tuple[tuple[int, bytes], ...],
    value: Any,
) -> None:
    if not tags and not others:
        parts.append(b"\0")
        return
    written = dict(others)
    for number, (_, _, of, left_out, _, write) in tags.items():
        content = of(value)
        if content != left_out:
            inner: list[bytes] = []
            write(inner, content)
            written[number] = b"".join(inner)
    put_varint(parts, len(written))
    for number, data in sorted(written.items()):
        put_varint(parts, number)
        put_varint(parts, len(data))
        parts.append(data)


def _fields(kind: Any) -> Iterator[_Field]:
    """Yields a class's fields, each with its plain type and the marks of its `Annotated`."""
    defaults = getattr(kind, "_field_defaults", None)
    if defaults is None:
        defaults = {one.name: one.default for one in dataclasses.fields(kind)}
    for attribute, annotation in typing.get_type_hints(kind, include_extras=True).items():
        if typing.get_origin(annotation) is ClassVar or annotation is ClassVar:
            continue
        hint, *marks = _parts(annotation)
        first, *rest = attribute.split("_")
        name = next((mark.name for mark in marks if isinstance(mark, Name)), None)
        default = defaults.get(attribute, dataclasses.MISSING)
        yield _Field(
            attribute, name or first + "".join(map(str.title, rest)), hint, tuple(marks), default
        )


def _parts(annotation: Any) -> tuple[Any, ...]:
    is_marked = typing.get_origin(annotation) is Annotated
    return typing.get_args(annotation) if is_marked else (annotation,)


def _absent(one: _Field, version: int) -> Any:
    """Returns the value of a field that the bytes lack: the version, or the field's default."""
    if one.mark(_Special) is _Special.VERSION:
        return version
    since = one.mark(Since)
    return one.default if since is None or since.absent is dataclasses.MISSING else since.absent


def _maker(kind: Any, fields: tuple[_Field, ...]) -> Callable[[list[Any]], Any]:
    if dataclasses.is_dataclass(kind) and any(one.kw_only for one in dataclasses.fields(kind)):
        names, make = [one.attribute for one in fields], cast(Any, kind)
        return lambda found: make(**dict(zip(names, found, strict=True)))
    return kind._make if issubclass(kind, tuple) else lambda found: kind(*found)


# Fields -------------------------------------------------------------------------------------------


def _typed(hint: Any, marks: tuple[Any, ...], version: int, flexible: bool) -> tuple[Read, Write]:
    """Returns a reader and a writer for a type whose annotation has these marks."""
    hint, *more = _parts(hint)
    marks = (*marks, *more)
    nullable = typing.get_origin(hint) in (types.UnionType, Union)
    if nullable:
        hint = next(one for one in typing.get_args(hint) if one is not types.NoneType)
    is_tagged = any(isinstance(one, Tag) for one in marks)
    if Boxed() in marks:
        boxed = _boxed(*_typed(hint, (), version, flexible), flexible)
        return _nullable(*boxed, is_tagged) if nullable else boxed
    number = next((one for one in marks if isinstance(one, _Number)), None)
    if _Special.JAVA_STRING in marks:
        return _java_string, _put_java_string
    if _Special.JAVA_CHARS in marks:
        return _java_chars, _put_java_chars
    if _Special.REST in marks:
        return lambda source: source.take(len(source.data) - source.at), list.append
    if number is not None or (isinstance(hint, type) and issubclass(hint, int)):
        return _number(hint, number or _INT8)
    if hint == tuple[int, int]:
        return (
            lambda source: _UUID.unpack(source.take(_UUID.size)),
            lambda parts, value: parts.append(_UUID.pack(*value)),
        )
    if hint in (str, bytes):
        return _string_or_bytes(hint is str, nullable, flexible)
    if typing.get_origin(hint) is tuple:
        return _array(typing.get_args(hint)[0], nullable, version, flexible)
    message = _struct(hint, version, flexible)
    return _nullable(*message, is_tagged) if nullable else message


def _boxed(read_one: Read, write_one: Write, flexible: bool) -> tuple[Read, Write]:
    def read(source: Source) -> Any:
        found = read_one(source)
        if flexible:
            _read_tags(source, {}, None, [])
        return found

    def write(parts: list[bytes], value: Any) -> None:
        write_one(parts, value)
        if flexible:
            _write_tags(parts, {}, (), value)

    return read, write


def _number(kind: type[int], layout: struct.Struct) -> tuple[Read, Write]:
    pack = layout.pack

    def read(source: Source) -> Any:
        return source.number(layout)

    def write(parts: list[bytes], value: int) -> None:
        parts.append(pack(value))

    return (read if kind is int else lambda source: kind(source.number(layout))), write


def _put_length(parts: list[bytes], length: int, flexible: bool, layout: struct.Struct) -> None:
    if flexible:
        put_varint(parts, length + 1)
    else:
        parts.append(layout.pack(length))


def _string_or_bytes(is_string: bool, nullable: bool, flexible: bool) -> tuple[Read, Write]:
    layout = _INT16 if is_string else _INT32

    def read(source: Source) -> str | bytes | None:
        length = source.varint() - 1 if flexible else source.number(layout)
        if length < 0:
            if not nullable:
                raise _Wrong("is null")
            return None
        data = source.take(length)
        if not is_string:
            return data
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise _Wrong("is not UTF-8") from None

    def write(parts: list[bytes], value: Any) -> None:
        if value is None:
            _put_length(parts, -1, flexible, layout)
            return
        data = value.encode() if is_string else value
        _put_length(parts, len(data), flexible, layout)
        parts.append(data)

    return read, write


def _java_string(source: Source) -> str:
    data = source.take(source.number(_UINT16))
    try:
        # Half a surrogate pair has three bytes; a character of four bytes is refused.
        halves = data.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
        if halves and max(halves) > "\uffff":
            raise _Wrong("is not Java's modified UTF-8")
        return halves.encode("utf-16-be", "surrogatepass").decode("utf-16-be")
    except UnicodeDecodeError:
        raise _Wrong("is not Java's modified UTF-8") from None


def _put_java_string(parts: list[bytes], value: str) -> None:
    units = value.encode("utf-16-be")
    halves = "".join(map(chr, struct.unpack(f">{len(units) // 2}H", units)))
    data = halves.encode("utf-8", "surrogatepass").replace(b"\0", b"\xc0\x80")
    parts += [_UINT16.pack(len(data)), data]


def _java_chars(source: Source) -> str:
    length = source.number(_INT32)
    if length < 0:
        raise _Wrong(f"has a length of {length}")
    try:
        return source.take(2 * length).decode("utf-16-be")
    except UnicodeDecodeError:
        raise _Wrong("is not UTF-16") from None


def _put_java_chars(parts: list[bytes], value: str) -> None:
    data = value.encode("utf-16-be")
    parts += [_INT32.pack(len(data) // 2), data]


def _array(hint: Any, nullable: bool, version: int, flexible: bool) -> tuple[Read, Write]:
    read_one, write_one = _typed(hint, (), version, flexible)
    kind, *marks = _parts(hint)
    number = next((one for one in marks if kind is int and isinstance(one, _Number)), None)

    def read(source: Source) -> tuple[Any, ...] | None:
        count = source.varint() - 1 if flexible else source.number(_INT32)
        if count == -1 and nullable:
            return None
        # An entry has at least one byte, so there cannot be more entries than bytes.
        if not 0 <= count <= len(source.data) - source.at:
            raise _Wrong(f"{count} entries are not in the data")
        if number is not None and count * number.size <= len(source.data) - source.at:
            data = source.take(count * number.size)
            return struct.unpack(f">{count}{number.format[1:]}", data)
        found: list[Any] = []
        try:
            for _ in range(count):
                found.append(read_one(source))
        except _Wrong as wrong:
            raise wrong.within(f"[{len(found)}]") from None
        return tuple(found)

    def write(parts: list[bytes], value: tuple[Any, ...] | None) -> None:
        _put_length(parts, -1 if value is None else len(value), flexible, _INT32)
        for one in value or ():
            write_one(parts, one)

    return read, write


def _nullable(read_fields: Read, write_fields: Write, is_tagged: bool) -> tuple[Read, Write]:
    """Returns a reader and a writer for a nullable message: a first byte shows if it is null."""
    lowest, null = (1, b"\0") if is_tagged else (0, b"\xff")

    def read(source: Source) -> Any:
        return read_fields(source) if source.number(_INT8) >= lowest else None

    def write(parts: list[bytes], value: Any) -> None:
        if value is None:
            parts.append(null)
            return
        parts.append(b"\1")
        write_fields(parts, value)

    return read, write
