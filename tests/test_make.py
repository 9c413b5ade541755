# SPDX-License-Identifier: Apache-2.0
"""`make demo` and `make test` check for tools before they install anything."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ("bash", "sh", "find", "grep", "sed", "touch", "test", "rm", "cargo")


@pytest.mark.parametrize("target", ["demo", "test"])
@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ("python3", "Python 3.11 or newer is needed"),
        ("cargo", "Rust's cargo is needed"),
        ("java", "Java 17 or newer is needed"),
    ],
)
def test_a_missing_tool_is_named_before_anything_is_installed(
    target: str, missing: str, said: str, tmp_path: Path
) -> None:
    make = shutil.which("make")
    assert make is not None
    path = tmp_path / "bin"
    path.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        if tool != missing and found is not None:
            (path / tool).symlink_to(found)
    stand_ins = {
        "python3": f'exec {sys.executable} "$@"',
        "java": "echo 'openjdk version \"17.0.1\"' >&2",
    }
    for tool in stand_ins.keys() - {missing}:
        (path / tool).write_text(f"#!/bin/sh\n{stand_ins[tool]}\n")
        (path / tool).chmod(0o755)
    venv = tmp_path / "venv"
    ran = subprocess.run(
        [make, "-C", str(ROOT), target, f"VENV={venv}"],
        env={"PATH": str(path), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert ran.returncode != 0
    assert said in ran.stderr
    assert not venv.exists()


def test_ci_runs_the_tests_of_frames_once() -> None:
    """`make test` leaves them out, because polars and DuckDB are not in its environment."""
    make = shutil.which("make")
    assert make is not None
    steps = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    targets = [word for step in steps if step.startswith("make ") for word in step.split()]
    assert targets.count("frames") == targets.count("test") == 1
    collected = [sys.executable, "-m", "pytest", "--collect-only", "-q", "tests/test_frames.py"]
    left_out = subprocess.run(collected, cwd=ROOT, capture_output=True, text=True)
    assert "no tests collected" in left_out.stdout
    told = subprocess.run([make, "-n", "frames"], cwd=ROOT, capture_output=True, text=True)
    assert "-o addopts=-ra tests/test_frames.py" in told.stdout
