# SPDX-License-Identifier: Apache-2.0
"""Reads lines of input in bounded memory."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

MAX_LINE_BYTES = 32 * 1024 * 1024
_PIECE_BYTES = 1024 * 1024


def open_input(file: str) -> BinaryIO:
    """Opens a file, or standard input for "-"."""
    return sys.stdin.buffer if file == "-" else Path(file).open("rb")


def read_lines(source: BinaryIO, most: int) -> Iterator[bytes | None]:
    """Yields lines without their line ends; None for a line of more than `most` bytes."""
    while line := source.readline(most + 1):
        if len(line) > most and not line.endswith(b"\n"):
            while rest := source.readline(_PIECE_BYTES):
                if rest.endswith(b"\n"):
                    break
            yield None
        else:
            yield line.rstrip(b"\r\n")
