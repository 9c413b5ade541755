# SPDX-License-Identifier: Apache-2.0
"""Helps a script that captures data of a broker to report its progress, and to end in time."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_STARTED = time.monotonic()


def say(what: str) -> None:
    """Prints a line for people, with the seconds since the script started."""
    print(f"{time.monotonic() - _STARTED:5.1f} s  {what}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Ends the body after so many seconds. Errors: TimeoutError, raised inside the body."""

    def too_late(*_: object) -> None:
        raise TimeoutError(f"not done after {seconds} s")

    signal.signal(signal.SIGALRM, too_late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
