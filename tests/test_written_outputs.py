# SPDX-License-Identifier: Apache-2.0
"""A page or table is written as a whole or not at all: an older file stays until then."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from kafka_rebalance.data import captured_lines
from tests.test_history import VECTORS

if TYPE_CHECKING:
    from pathlib import Path

MOST_BYTES = 2_000
"""The largest file that a command may write, in place of a disk that is full."""

RECORDS = VECTORS / "kafka-2.4.1" / "records.jsonl.gz"
COMMANDS = {
    "plan.html": ("plan", "groups.jsonl", "--group", "orders", "--add-members", "1"),
    "history.html": ("history", str(RECORDS)),
    "simulate.html": ("simulate", "rolling-bounce"),
    "simulate.parquet": ("simulate", "rolling-bounce"),
}


def ran(directory: Path, name: str, most: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kafka_rebalance", *COMMANDS[name], "--output", name],
        cwd=directory,
        capture_output=True,
        text=True,
        # Python would rename a .pyc file that the limit has cut short, and nobody could import it.
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_a_file_that_cannot_be_written_stays_as_it_was(name: str, tmp_path: Path) -> None:
    (tmp_path / "groups.jsonl").write_text("\n".join(captured_lines()))
    (tmp_path / "target").write_text("an older one")
    (tmp_path / name).symlink_to("target")
    there = sorted(tmp_path.iterdir())

    failed = ran(tmp_path, name, MOST_BYTES)
    assert failed.returncode == 1
    assert failed.stderr.splitlines()[-1].startswith(f"kafka-rebalance: {name}: ")
    assert sorted(tmp_path.iterdir()) == there
    assert (tmp_path / name).read_text() == "an older one"

    written = ran(tmp_path, name, resource.RLIM_INFINITY)
    assert written.returncode == 0, written.stderr
    assert sorted(tmp_path.iterdir()) == there
    assert (tmp_path / name).is_symlink()
    assert (tmp_path / "target").stat().st_size > MOST_BYTES


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "groups.jsonl").write_text("\n".join(captured_lines()))
    command = [*COMMANDS["plan.html"], "--output", "no/plan.html"]
    run = subprocess.run(
        [sys.executable, "-m", "kafka_rebalance", *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 2
    assert run.stderr == "kafka-rebalance: no/plan.html: No such file or directory\n"
