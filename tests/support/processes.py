# SPDX-License-Identifier: Apache-2.0
"""Ends programs and members' processes, and tells members what to do."""

from __future__ import annotations

import contextlib
import subprocess
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkServerProcess

END_TIMEOUT_S = 15
CLOSE_TIMEOUT_S = 10.0
"""The time in which a member's process closes its consumer, or ends after it was killed."""


def end_by_closing_stdin(process: subprocess.Popen[str]) -> None:
    """Closes the program's input, at which it ends; a second call does nothing.

    A program that does not end in time still computes an answer that nobody needs: it is killed.
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


def send_if_alive(pipe: Connection, command: tuple[str, tuple[str, ...]]) -> None:
    """Sends a command to a member's process; if the member has ended, does nothing."""
    with contextlib.suppress(OSError):
        pipe.send(command)


def kill_member(process: ForkServerProcess, pipe: Connection) -> None:
    """Kills a member's process, so that it sends no LeaveGroup."""
    process.kill()
    process.join(CLOSE_TIMEOUT_S)
    pipe.close()
