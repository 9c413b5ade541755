# SPDX-License-Identifier: Apache-2.0
"""Opens the input of a command."""

import sys
from pathlib import Path
from typing import BinaryIO


def open_input(file: str) -> BinaryIO:
    """Opens a file, or standard input for "-"."""
    return sys.stdin.buffer if file == "-" else Path(file).open("rb")
