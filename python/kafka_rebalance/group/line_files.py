# SPDX-License-Identifier: Apache-2.0
"""Reads a file, its lines, or the lines in a range of its bytes, in bounded memory."""

import os
from codecs import BOM_UTF8
from collections.abc import Iterator
from io import BufferedIOBase
from typing import BinaryIO

from kafka_rebalance.errors import GroupError

MAX_LINE_BYTES = 32 * 1024 * 1024
TOO_LONG = f"more than {MAX_LINE_BYTES} bytes"
_PIECE_BYTES = 1024 * 1024

Source = BinaryIO | BufferedIOBase  # BufferedIOBase: gzip's files


def read_lines(source: Source, most: int) -> Iterator[bytes | None]:
    """Yields lines without their line ends; None for a line of more than `most` bytes.

    A byte order mark is not part of a line: editors and shells on Windows write one, and in files
    that were joined it may precede any line.
    """
    while line := source.readline(most + 1):
        if len(line) > most and not line.endswith(b"\n"):
            _skip_line(source)
            yield None
        else:
            # This assignment frees the bytes as they were read, before the caller gets the line.
            line = line.rstrip(b"\r\n").removeprefix(BOM_UTF8)
            yield line


def read_text(source: Source, path: str, name: str) -> str:
    """Returns a whole file of at most MAX_LINE_BYTES in UTF-8, without a byte order mark.

    Lines end with "\\n" alone. Errors: GroupError at `path`, with the file's name.
    """
    data = source.read(MAX_LINE_BYTES + 1)
    if len(data) > MAX_LINE_BYTES:
        raise GroupError(path, f"{name}: {TOO_LONG}")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise GroupError(path, f"{name} is not text in UTF-8") from None


def read_range(source: Source, start: int, end: int, most: int) -> Iterator[bytes | None]:
    """Yields the lines whose first byte is in [start, end), as `read_lines` yields lines."""
    if start > 0:
        source.seek(start - 1, os.SEEK_SET)
        _skip_line(source)  # skips the rest of the previous line, which may be only its line end
    lines = read_lines(source, most)
    while source.tell() < end:
        try:
            yield next(lines)
        except StopIteration:  # the file has become shorter
            return


def _skip_line(source: Source) -> None:
    while rest := source.readline(_PIECE_BYTES):
        if rest.endswith(b"\n"):
            return
