# SPDX-License-Identifier: Apache-2.0
"""Ends programs."""

from __future__ import annotations

import contextlib
import subprocess
from typing import Any

END_TIMEOUT_S = 15


def end_by_closing_stdin(process: subprocess.Popen[str]) -> None:
    """Closes the program's input, so that it ends; a second call does nothing.

    A program that does not end in time is killed: it still computes an answer that nobody needs.
    """
    assert process.stdin
    assert process.stdout
    with contextlib.suppress(BrokenPipeError):  # the program has ended before, or was killed
        process.stdin.close()
    wait_or_kill(process, END_TIMEOUT_S)
    process.stdout.close()


def wait_or_kill(process: subprocess.Popen[Any], timeout_s: float) -> None:
    """Waits for the end of a process that was told to end; kills it if it does not end in time."""
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
