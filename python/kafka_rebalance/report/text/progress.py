# SPDX-License-Identifier: Apache-2.0
"""Shows progress bars, if standard error is a terminal."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, TextIO

from kafka_rebalance.errors import shown


@contextmanager
def byte_progress(source: BinaryIO) -> Iterator[Callable[[BinaryIO], None]]:
    """Shows how much of a file has been read; call the yielded function with the file."""
    total = _size(source)
    if total is None or sys.stdout.isatty():  # a pipe has no size; a terminal shows the lines
        yield lambda _: None
        return
    with _bar("groups", total) as update:
        yield lambda file: update(file.tell())


@contextmanager
def time_progress(what: str, until_ms: int) -> Iterator[Callable[[int], None]]:
    """Shows how much virtual time has passed; call the yielded function with the time."""
    with _bar(what, until_ms) as update:
        yield update


@contextmanager
def item_progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Shows how many items are done; call the yielded function with that number and the total."""
    if sys.stdout.isatty():  # a terminal shows the lines
        yield lambda *_: None
        return
    with _bar(what, 100) as update:
        yield lambda done, total: update(100 * done // max(1, total))


@contextmanager
def _bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Shows a bar if standard error is a terminal, and removes it at the end."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    last = -1
    own: TextIO = getattr(sys.stderr, "own", sys.stderr)  # passes control characters

    def update(done: int) -> None:
        nonlocal last
        percent = min(100, 100 * done // max(1, total))
        if percent != last:
            last = percent
            print(f"\r{shown(what)} {'█' * (percent // 4):░<25} {percent:3}%", end="", file=own)

    try:
        yield update
    finally:
        print("\r\x1b[K", end="", file=own, flush=True)


def _size(source: BinaryIO) -> int | None:
    """Returns the bytes of a regular file; None for a pipe or a terminal."""
    try:
        return os.fstat(source.fileno()).st_size if source.seekable() else None
    except OSError:  # or its subclass io.UnsupportedOperation: a stream without a file
        return None
