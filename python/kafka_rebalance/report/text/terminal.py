# SPDX-License-Identifier: Apache-2.0
"""The command's standard streams: text may be bold or red; control characters in names are escaped.

Names from outside pass two steps, and `shown` escapes them in both:

1. Cells of tables, wrapped sentences, labels and HTML escape a name before it is laid out. There, a
   line break in the name can still be distinguished from a line break of the layout.
2. `ShownStream` escapes what a direct `print` writes. The command prints line by line, so a line
   break inside one write belongs to a name: no name can forge a second line.

NO_COLOR (no-color.org) and TERM=dumb switch bold and colours off.
"""

from __future__ import annotations

import codecs
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper

from kafka_rebalance.errors import shown

TYPE_CHECKING = False  # `typing` is slow to import; type checkers assume True
if TYPE_CHECKING:
    from typing import Any, BinaryIO, TextIO

_STYLED = re.compile("(\x1b\\[(?:1|31)m)(.*?)(\x1b\\[0m)", re.DOTALL)


def columns(stream: TextIO | None = None) -> int:
    """Returns COLUMNS, else the width of the stream's terminal (default: stdout's), else 0."""
    given = os.environ.get("COLUMNS", "")
    try:
        found = int(given) if given.isdecimal() else 0
        return found or os.get_terminal_size((stream or sys.stdout).fileno()).columns
    except OSError:  # the stream is not a terminal, or the terminal is closed
        return 0


def bold(text: str) -> str:
    """Returns the text, in bold if standard output is a terminal."""
    return _styled(text, "1", sys.stdout)


def red(text: str) -> str:
    """Returns the text, in the colour of errors if standard error is a terminal."""
    return _styled(text, "31", sys.stderr)


def _styled(text: str, code: str, stream: TextIO) -> str:
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain or not stream.isatty() else f"\x1b[{code}m{text}\x1b[0m"


class ShownStream:
    """A text stream that escapes control characters, except for a line break at the end of a write.

    On a terminal, a write may begin with text that `bold` or `red` returned. `own` is the stream
    behind this one; progress bars use it.
    """

    def __init__(self, own: TextIO) -> None:
        self.own = own
        self._is_terminal = own.isatty()
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def write(self, text: str) -> int:
        end = "\n" if text.endswith("\n") else ""
        line, start = text.removesuffix("\n"), ""
        if self._is_terminal and (styled := _STYLED.match(line)):
            code, inside, reset = styled.groups()
            line, start = line[styled.end() :], f"{code}{shown(inside)}{reset}"
        self.own.write(f"{start}{shown(line)}{end}")
        return len(text)

    @property
    def buffer(self) -> _ShownBytes:
        return _ShownBytes(self.own.buffer, self._decoder)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.own, name)


class _ShownBytes:
    """The binary stream of a `ShownStream`, for JSON lines: JSON escapes a line break in a name."""

    def __init__(self, own: Any, decoder: codecs.IncrementalDecoder) -> None:
        self._own, self._decoder = own, decoder

    def write(self, data: bytes) -> int:
        if not data.isascii() or b"\x7f" in data:  # a write may end within a character
            lines = self._decoder.decode(data).split("\n")
            self._own.write("\n".join(map(shown, lines)).encode())
        else:
            self._own.write(data)
        return len(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)


@contextmanager
def shown_streams() -> Iterator[None]:
    """Makes stdout and stderr escape their text; the null device replaces a closed stream."""
    before = sys.stdin, sys.stdout, sys.stderr
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        # A closed stream (`>&-`) is None. The null device takes its place, stdin first: an open
        # file takes the lowest free descriptor, so a later file would become the stream.
        stream: Any = getattr(sys, name) or open(os.devnull, mode, encoding="utf-8")  # noqa: PTH123, SIM115
        if mode == "w" and isinstance(stream, TextIOWrapper):
            # Data is UTF-8 in every locale; text that UTF-8 cannot encode is escaped.
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
        setattr(sys, name, ShownStream(stream) if mode == "w" else stream)
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = before


@contextmanager
def byte_progress(source: BinaryIO) -> Iterator[Callable[[BinaryIO], None]]:
    """Shows how much of a file has been read; call the yielded function with the file."""
    try:
        total = os.fstat(source.fileno()).st_size if source.seekable() else None
    except OSError:  # or its subclass io.UnsupportedOperation: a stream without a file
        total = None
    if total is None or sys.stdout.isatty():  # a pipe has no size; printed lines show progress
        yield lambda _: None
        return
    with progress_bar("groups", total) as update:
        yield lambda file: update(file.tell())


@contextmanager
def item_progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Shows how many items are done; call the yielded function with that number and the total."""
    if sys.stdout.isatty():  # the printed lines show the progress
        yield lambda *_: None
        return
    with progress_bar(what, 100) as update:
        yield lambda done, total: update(100 * done // max(1, total))


@contextmanager
def progress_bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Shows a bar if standard error is a terminal; call the yielded function with the number of
    items done.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    last = -1
    own: TextIO = getattr(sys.stderr, "own", sys.stderr)  # it escapes nothing

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
