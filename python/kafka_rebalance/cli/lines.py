# SPDX-License-Identifier: Apache-2.0
"""Opens the input of a command, and reports an empty one."""

import sys
from pathlib import Path
from typing import BinaryIO

from kafka_rebalance.report.text.sentences import print_note


def open_input(file: str) -> BinaryIO:
    """Opens a file, or standard input for "-"."""
    return sys.stdin.buffer if file == "-" else Path(file).open("rb")


def no_groups(file: str, noun: str = "group") -> None:
    """Reports on standard error that the input is empty: nothing else would be printed."""
    source = "standard input" if file == "-" else file
    print_note(f"{source}: no {noun} in it")
