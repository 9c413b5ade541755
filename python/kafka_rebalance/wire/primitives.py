# SPDX-License-Identifier: Apache-2.0
"""Reads and writes the bytes of messages: big-endian numbers and unsigned varints.

A length greater than the number of bytes left is an error, and no memory is reserved for it.
"""

import struct
from typing import Any

_BYTES = [bytes([value]) for value in range(256)]


class _Wrong(Exception):
    """An error in a field; each enclosing message adds its part in front of `path`."""

    def __init__(self, problem: str) -> None:
        self.path = ""
        self.problem = problem

    def within(self, step: str) -> "_Wrong":
        separator = "." if self.path and not self.path.startswith("[") else ""
        self.path = f"{step}{separator}{self.path}"
        return self


class Source:
    """Bytes to read; those before `at` have been read."""

    __slots__ = ("at", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, length: int) -> bytes:
        start = self.at
        left = len(self.data) - start
        if left < length:
            raise _Wrong(f"needs {length} bytes, {left} are left")
        self.at = start + length
        return self.data[start : self.at]

    def number(self, layout: struct.Struct) -> Any:
        at, end = self.at, self.at + layout.size
        if end > len(self.data):
            self.take(layout.size)
        self.at = end
        return layout.unpack_from(self.data, at)[0]

    def varint(self) -> int:
        at = self.at
        if at < len(self.data) and self.data[at] < 0x80:  # most lengths have one byte
            self.at = at + 1
            return self.data[at]
        value = 0
        for shift in range(0, 35, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise _Wrong("has a length of more than 5 bytes")

    def tagged(self) -> list[tuple[int, bytes]]:
        """Reads tagged fields; returns pairs (number, data)."""
        fields, step = [], "tagged fields"
        try:
            for _ in range(self.varint()):
                tag, length = self.varint(), self.varint()
                step = f"tagged field {tag}"
                fields.append((tag, self.take(length)))
                step = "tagged fields"
        except _Wrong as wrong:
            raise wrong.within(step) from None
        return fields

    def end(self) -> None:
        left = len(self.data) - self.at
        if left:
            raise _Wrong(f"{left} bytes too many").within("end")


def put_varint(parts: list[bytes], value: int) -> None:
    while value >= 0x80:
        parts.append(_BYTES[value & 0x7F | 0x80])
        value >>= 7
    parts.append(_BYTES[value])
