"""Progress bars, when a person is looking and rich is installed (extra `report`)."""

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO


@contextmanager
def byte_progress(source: BinaryIO) -> Iterator[Callable[[BinaryIO], None]]:
    """How far a file has been read; gives a function to call now and then with the file."""
    total = _size(source)
    if total is None or not sys.stderr.isatty() or sys.stdout.isatty():
        yield lambda _: None
        return
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError:
        yield lambda _: None
        return
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("groups", total=total)
        yield lambda file: progress.update(task, completed=file.tell())


def _size(source: BinaryIO) -> int | None:
    """Bytes of a regular file; None for a pipe or a terminal."""
    try:
        return os.fstat(source.fileno()).st_size if source.seekable() else None
    except (OSError, io.UnsupportedOperation):
        return None
