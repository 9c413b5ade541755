# SPDX-License-Identifier: Apache-2.0
"""Reads and writes Kafka's primitive types: big-endian, each length before its data, -1 for null.

"Flexible" versions (KIP-482) write lengths as unsigned varints of length + 1, and end structs with
tagged fields.

Errors   WireError with the name of the field.
"""

import struct
from collections.abc import Collection

from kafka_rebalance.errors import WireError

Tagged = tuple[tuple[int, bytes], ...]  # (tag, data), in the order written

_INT16, _INT32, _INT64 = (struct.Struct(layout).pack for layout in (">h", ">i", ">q"))
_BYTES = [bytes([value]) for value in range(256)]


class Reader:
    """Reads fields one after another; an error has the name of its field."""

    def __init__(self, data: bytes, what: str) -> None:
        self._data = data
        self._at = 0
        self._what = what
        self.flexible = False

    def raw(self, length: int, field: str) -> bytes:
        return self._take(length, field)

    def rest(self) -> bytes:
        """Reads all bytes that are left."""
        return self._take(len(self._data) - self._at, "rest")

    def int8(self, field: str) -> int:
        return self._number(">b", field)

    def int16(self, field: str) -> int:
        return self._number(">h", field)

    def int32(self, field: str) -> int:
        return self._number(">i", field)

    def int64(self, field: str) -> int:
        return self._number(">q", field)

    def uuid(self, field: str) -> tuple[int, int]:
        """Returns the most and the least significant 64 bits, signed."""
        return self.int64(field), self.int64(field)

    def string(self, field: str) -> str:
        text = self.nullable_string(field)
        if text is None:
            raise self._error(field, "is null")
        return text

    def nullable_string(self, field: str) -> str | None:
        length = self._varint(field) - 1 if self.flexible else self.int16(field)
        if length < 0:
            return None
        try:
            return self._take(length, field).decode()
        except UnicodeDecodeError as error:
            raise self._error(field, "is not UTF-8") from error

    def data(self, field: str) -> bytes:
        data = self.nullable_data(field)
        if data is None:
            raise self._error(field, "is null")
        return data

    def nullable_data(self, field: str) -> bytes | None:
        length = self._varint(field) - 1 if self.flexible else self.int32(field)
        return None if length < 0 else self._take(length, field)

    def count(self, field: str) -> int:
        count = self.nullable_count(field)
        if count is None:
            raise self._error(field, "-1 entries are not in the data")
        return count

    def nullable_count(self, field: str) -> int | None:
        count = self._varint(field) - 1 if self.flexible else self.int32(field)
        # An entry has at least one byte, so there cannot be more entries than bytes.
        if not -1 <= count <= len(self._data) - self._at:
            raise self._error(field, f"{count} entries are not in the data")
        return None if count < 0 else count

    def is_there(self, field: str) -> bool:
        """Reads the byte before a struct that may be null; it is negative for null."""
        return self.int8(field) >= 0

    def strings(self, field: str) -> tuple[str, ...]:
        """Reads an array of strings."""
        return tuple(self.string(f"{field}[{at}]") for at in range(self.count(field)))

    def numbers(self, field: str, layout: str = ">i") -> tuple[int, ...]:
        """Reads an array of numbers, whose layout is that of `struct`."""
        return tuple(self._number(layout, f"{field}[{at}]") for at in range(self.count(field)))

    def tagged(self) -> Tagged:
        if not self.flexible:
            return ()
        fields = []
        for _ in range(self._varint("tagged fields")):
            tag = self._varint("tagged fields")
            fields.append((tag, self._take(self._varint("tagged fields"), f"tagged field {tag}")))
        return tuple(fields)

    def end(self) -> None:
        left = len(self._data) - self._at
        if left:
            raise self._error("end", f"{left} bytes too many")

    def _number(self, layout: str, field: str) -> int:
        return int(struct.unpack(layout, self._take(struct.calcsize(layout), field))[0])

    def _varint(self, field: str) -> int:
        value = 0
        for shift in range(0, 35, 7):
            byte = self._take(1, field)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise self._error(field, "has a length of more than 5 bytes")

    def _take(self, length: int, field: str) -> bytes:
        taken = self._data[self._at : self._at + length]
        if len(taken) < length:
            raise self._error(field, f"needs {length} bytes, {len(taken)} are left")
        self._at += length
        return taken

    def _error(self, field: str, problem: str) -> WireError:
        return WireError(f"{self._what}.{field}: {problem}")


class Writer:
    """Writes fields one after another, as `Reader` reads them."""

    def __init__(self, flexible: bool) -> None:
        self._parts: list[bytes] = []
        self._flexible = flexible

    def written(self) -> bytes:
        return b"".join(self._parts)

    def raw(self, data: bytes) -> None:
        self._parts.append(data)

    def int8(self, value: int) -> None:
        self._parts.append(struct.pack(">b", value))

    def int16(self, value: int) -> None:
        self._parts.append(_INT16(value))

    def int32(self, value: int) -> None:
        self._parts.append(_INT32(value))

    def int64(self, value: int) -> None:
        self._parts.append(_INT64(value))

    def uuid(self, value: tuple[int, int]) -> None:
        self._parts.append(struct.pack(">qq", *value))

    def string(self, text: str | None) -> None:
        data = b"" if text is None else text.encode()
        length = -1 if text is None else len(data)
        if self._flexible:
            self._varint(length + 1)
        else:
            self._parts.append(_INT16(length))
        self._parts.append(data)

    def data(self, data: bytes | None) -> None:
        self.count(-1 if data is None else len(data))
        self._parts.append(data or b"")

    def count(self, count: int) -> None:
        if self._flexible:
            self._varint(count + 1)
        else:
            self.int32(count)

    def strings(self, texts: Collection[str]) -> None:
        self.count(len(texts))
        for text in texts:
            self.string(text)

    def numbers(self, numbers: Collection[int], layout: str = ">i") -> None:
        self.count(len(numbers))
        for number in numbers:
            self._parts.append(struct.pack(layout, number))

    def tagged(self, fields: Tagged) -> None:
        if not self._flexible:
            return
        self._varint(len(fields))
        for tag, data in fields:
            self._varint(tag)
            self._varint(len(data))
            self._parts.append(data)

    def _varint(self, value: int) -> None:
        while value >= 0x80:
            self._parts.append(_BYTES[value & 0x7F | 0x80])
            value >>= 7
        self._parts.append(_BYTES[value])
