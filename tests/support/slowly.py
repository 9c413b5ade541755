# SPDX-License-Identifier: Apache-2.0
"""Runs a command as on a slow machine, to find tests whose verdict depends on the machine's load.

    python -m tests.support.slowly 0.25 .venv/bin/python -m pytest tests/test_watch.py

The command and all its processes run for a quarter of each 0.6 s, and stop for the rest. Unlike a
real load, this does not disturb other runs on the machine. Linux only: processes come from /proc.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TURN_S = 0.6


def run(share: float, command: Sequence[str]) -> int:
    """Returns the command's exit code; `share` is the part of each turn in which it runs."""
    process = subprocess.Popen(command, start_new_session=True)
    while process.poll() is None:
        stopped = list(_family(process.pid))
        _send(stopped, signal.SIGSTOP)
        time.sleep(TURN_S * (1 - share))
        _send(stopped, signal.SIGCONT)
        time.sleep(TURN_S * share)
    return process.returncode


def _family(first: int) -> Iterator[int]:
    """Yields a process and all processes that it and they have started."""
    children = defaultdict[int, list[int]](list)
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            _, parent, *_ = stat.read_text().rpartition(")")[2].split()
            children[int(parent)].append(int(stat.parent.name))
    waiting = [first]
    while waiting:
        yield (one := waiting.pop())
        waiting += children[one]


def _send(processes: Sequence[int], number: signal.Signals) -> None:
    for one in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, number)


if __name__ == "__main__":
    sys.exit(run(float(sys.argv[1]), sys.argv[2:]))
