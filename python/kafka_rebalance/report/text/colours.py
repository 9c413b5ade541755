# SPDX-License-Identifier: Apache-2.0
"""Emphasis where the terminal has it; NO_COLOR (no-color.org) and TERM=dumb switch it off."""

import os
import sys
from typing import TextIO


def bold(text: str, stream: TextIO | None = None) -> str:
    """Returns text that stands out on a terminal (standard output unless given)."""
    return _styled(text, "1", stream)


def red(text: str, stream: TextIO | None = None) -> str:
    """Returns text as that of an error."""
    return _styled(text, "31", stream)


def _styled(text: str, code: str, stream: TextIO | None) -> str:
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    if plain or not (stream or sys.stdout).isatty():
        return text
    return f"\x1b[{code}m{text}\x1b[0m"
