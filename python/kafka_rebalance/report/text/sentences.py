# SPDX-License-Identifier: Apache-2.0
"""Prints sentences on standard error: the command's notes, warnings and errors.

On a terminal, a sentence is wrapped at the terminal's width (or COLUMNS, and at most 100), and its
further lines are indented. Elsewhere it stays one line, because programs look for it in a log.
Sentences on standard output are part of a report, and always wrapped (`print_wrapped`).
"""

import sys
import textwrap
from typing import TextIO

from kafka_rebalance.errors import shown

from .tables import MOST_COLUMNS, width
from .terminal import columns, red

_COMMAND = "kafka-rebalance:"
_HANGING = "  "


def wrapped(text: str, most: int, indent: str = "", more: str = "") -> list[str]:
    """Returns lines of at most `most` columns; `more` indents later lines. Names stay whole."""
    lines = textwrap.wrap(
        shown(text),
        most,
        initial_indent=indent,
        subsequent_indent=indent + more,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return lines or [""]


def print_wrapped(text: str, indent: str = "", more: str = "") -> None:
    """Prints a text wrapped to the tables' width; `more` indents all lines but the first."""
    for line in wrapped(text, width(), indent, more):
        print(line)


GLOSSARY = "docs/glossary.md explains the words."


def print_note(text: str) -> None:
    """Prints a note of the command on standard error, after the command's name."""
    print_sentence(f"{_COMMAND} {text}")


def print_error(text: str) -> None:
    """Prints the error that ends the command; on a terminal, the command's name is red."""
    first, *more = _lines(f"{_COMMAND} {text}", sys.stderr)
    print(f"{red(_COMMAND, sys.stderr)}{first.removeprefix(_COMMAND)}", file=sys.stderr)
    for line in more:
        print(line, file=sys.stderr)


def print_sentence(text: str) -> None:
    """Prints a sentence on standard error without the command's name, but with its indentation."""
    for line in _lines(text, sys.stderr):
        print(line, file=sys.stderr)


def _lines(text: str, stream: TextIO) -> list[str]:
    """Returns the lines of a sentence: wrapped if the stream is a terminal, else one line."""
    if not stream.isatty():
        return [shown(text)]
    indent = " " * (len(text) - len(text.lstrip(" ")))
    most = min(MOST_COLUMNS, columns(stream) or MOST_COLUMNS)
    return wrapped(text.lstrip(" "), most, indent, _HANGING)
