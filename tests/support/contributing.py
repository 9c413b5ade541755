# SPDX-License-Identifier: Apache-2.0
"""Checks the numbered steps of CONTRIBUTING.md; makes a group for tests that follow these steps."""

from __future__ import annotations

import re
from pathlib import Path

import kafka_rebalance as kr

ROOT = Path(__file__).resolve().parents[2]


def two_members(partitions: int, assignor: str) -> kr.GroupSpec:
    """Returns a group of members a and b, which subscribe to topic t and own nothing."""
    members = (kr.Member("a", ("t",)), kr.Member("b", ("t",)))
    return kr.GroupSpec("g", (kr.Topic("t", partitions),), members, assignor)


def check_steps(heading: str, *, steps: int, files: int) -> str:
    """Asserts that the files named under a heading exist; returns the text under the heading.

    The text must have at least `steps` numbered steps, and name at least `files` files.
    """
    under, named = _steps(heading)
    assert len(re.findall(r"^\d+\. ", under, re.MULTILINE)) >= steps
    assert len(named) >= files
    paths = [name.replace("<family>", "classic").replace("X", "range") for name in named]
    assert [path for path in paths if not (ROOT / path).exists()] == []
    return under


def source_files(heading: str) -> int:
    """Returns how many files of the package and the core the steps under a heading name."""
    return len({name for name in _steps(heading)[1] if name.startswith(("python/", "src/"))})


def _steps(heading: str) -> tuple[str, list[str]]:
    """Returns the text under a heading of CONTRIBUTING.md, and the paths in it."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    under = text.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return under, re.findall(r"`([^`\s]+/[^`\s]+|[A-Z]+\.md)`", under)
