# SPDX-License-Identifier: Apache-2.0
"""Shows progress bars, if standard error is a terminal and rich is installed (extra `report`)."""

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO


@contextmanager
def byte_progress(source: BinaryIO) -> Iterator[Callable[[BinaryIO], None]]:
    """Shows how much of a file has been read; call the function it yields with the file."""
    total = _size(source)
    if total is None or sys.stdout.isatty():  # a pipe has no size; a terminal shows lines
        yield lambda _: None
        return
    with _bar("groups", total) as update:
        yield lambda file: update(file.tell())


@contextmanager
def time_progress(what: str, until_ms: int) -> Iterator[Callable[[int], None]]:
    """Shows how much virtual time has passed; call the function it yields with the time."""
    with _bar(what, until_ms) as update:
        yield update


@contextmanager
def _bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Shows a bar on standard error, if standard error is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError:
        yield lambda _: None
        return
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.update(task, completed=done)


def _size(source: BinaryIO) -> int | None:
    """Returns the bytes of a regular file; None for a pipe or a terminal."""
    try:
        return os.fstat(source.fileno()).st_size if source.seekable() else None
    except (OSError, io.UnsupportedOperation):
        return None
