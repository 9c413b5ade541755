# SPDX-License-Identifier: Apache-2.0
"""The measured memory of a command is its own, and not that of the process that started it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from tests.support.peak_memory import measured, read_used

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20
HELD = 200 * MIB


def test_the_memory_of_the_parent_does_not_count(tmp_path: Path) -> None:
    held = bytearray(b"x") * HELD
    command = measured([sys.executable, "-c", ""], tmp_path / "used")
    subprocess.run(command, check=True)
    assert len(held) == HELD
    used = read_used(tmp_path / "used")
    assert MIB < used.peak_bytes < HELD // 2
    assert used.cpu_seconds > 0


def test_the_memory_of_the_command_counts_and_its_exit_code_is_kept(tmp_path: Path) -> None:
    source = f"import sys; held = bytearray(b'x') * {HELD}; sys.exit(3)"
    command = measured([sys.executable, "-c", source], tmp_path / "used")
    assert subprocess.run(command).returncode == 3
    assert HELD < read_used(tmp_path / "used").peak_bytes < 2 * HELD
