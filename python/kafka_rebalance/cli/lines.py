# SPDX-License-Identifier: Apache-2.0
"""Opens the input of a command, reports an empty one, and writes an output as a whole."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from kafka_rebalance.report.text.sentences import print_note


def open_input(file: str) -> BinaryIO:
    """Opens a file, or standard input for "-"."""
    return sys.stdin.buffer if file == "-" else Path(file).open("rb")


@contextmanager
def written(path: Path) -> Iterator[Path]:
    """Yields a path beside `path`, whose file takes the place of `path` when the block ends.

    After an error, a file that was at `path` before is unchanged. An OSError names `path`.
    """
    import secrets

    place = path.resolve()  # a link stays, and its target is written
    part = place.with_name(f".{secrets.token_hex(8)}{path.suffix}")
    try:
        yield part
        part.replace(place)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None
    finally:
        part.unlink(missing_ok=True)


def no_groups(file: str, noun: str = "group") -> None:
    """Reports on standard error that the input is empty: nothing else would be printed."""
    source = "standard input" if file == "-" else file
    print_note(f"{source}: no {noun} in it")
