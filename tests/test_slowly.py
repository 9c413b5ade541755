# SPDX-License-Identifier: Apache-2.0
"""A command and the processes that it starts run for a part of the time."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.slowly import run

BUSY = """
import subprocess, sys, time
if len(sys.argv) > 1:
    subprocess.run([sys.executable, "-c", open(sys.argv[1]).read()], check=True)
else:
    began = before = time.monotonic()
    longest = 0.0
    while before < began + 1.5:  # more than two turns
        longest = max(longest, -before + (before := time.monotonic()))
    sys.exit(longest < 0.2)
sys.exit(7)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="this system has no /proc")
def test_a_child_stops_and_goes_on(tmp_path: Path) -> None:
    """The longest time in which the child did not run is most of a turn; the command's exit code
    is kept.
    """
    (tmp_path / "busy.py").write_text(BUSY)
    assert run(0.5, [sys.executable, str(tmp_path / "busy.py"), str(tmp_path / "busy.py")]) == 7
