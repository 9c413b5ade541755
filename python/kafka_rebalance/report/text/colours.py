# SPDX-License-Identifier: Apache-2.0
"""Emphasis on terminals; NO_COLOR (no-color.org) and TERM=dumb switch it off."""

import os
import sys
from typing import TextIO


def bold(text: str, stream: TextIO | None = None) -> str:
    """Returns bold text if the stream (default: standard output) is a terminal."""
    return _styled(text, "1", stream)


def red(text: str, stream: TextIO | None = None) -> str:
    """Returns text in the colour of errors."""
    return _styled(text, "31", stream)


def _styled(text: str, code: str, stream: TextIO | None) -> str:
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    if plain or not (stream or sys.stdout).isatty():
        return text
    return f"\x1b[{code}m{text}\x1b[0m"
