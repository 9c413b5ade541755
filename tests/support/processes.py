# SPDX-License-Identifier: Apache-2.0
"""Ends programs that read commands from their standard input."""

from __future__ import annotations

import contextlib
import subprocess

END_TIMEOUT_S = 15


def end_by_closing_stdin(process: subprocess.Popen[str]) -> None:
    """Closes the program's input, at which it ends; a second call does nothing.

    A program that does not end in time still computes an answer that nobody needs: it is killed.
    """
    assert process.stdin
    assert process.stdout
    with contextlib.suppress(BrokenPipeError):  # the program has ended before, or was killed
        process.stdin.close()
    try:
        process.wait(END_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()
