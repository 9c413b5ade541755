# SPDX-License-Identifier: Apache-2.0
"""Measures a command: its CPU seconds and the most memory that it used.

On Linux, a process begins with the peak of the process that started it, even after exec. So a small
process starts the command, and reports the command's usage.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

_SMALL = """
import json, resource, subprocess, sys
code = subprocess.run(sys.argv[2:]).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
unit = 1 if sys.platform == "darwin" else 1024
with open(sys.argv[1], "w") as report:
    json.dump([used.ru_utime + used.ru_stime, used.ru_maxrss * unit], report)
sys.exit(code)
"""


class Used(NamedTuple):
    cpu_seconds: float
    peak_bytes: int


def measured(command: list[str], report: Path) -> list[str]:
    """Returns a command that runs `command` and writes its usage to the file `report`."""
    return [sys.executable, "-c", _SMALL, str(report), *command]


def read_used(report: Path) -> Used:
    """Reads the report of a command that has ended."""
    return Used(*json.loads(report.read_text(encoding="utf-8")))
