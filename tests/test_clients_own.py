# SPDX-License-Identifier: Apache-2.0
"""The command that runs the clients' own tests takes the arguments that its docstring shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("kio", reason="kio is not installed: pip install -e '.[serve]'")

from tests.clients_own import __main__ as clients_own

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def test_numbers_of_tests_may_follow_the_checkout(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[Sequence[str]] = []

    def run(_source: Path, numbers: Sequence[str], _address: str) -> int:
        asked.append(numbers)
        return 0

    monkeypatch.setattr(clients_own, "run_librdkafka", run)
    monkeypatch.setattr(clients_own, "BUILD", tmp_path / "build")
    command = ["clients_own", "librdkafka", "--source", str(tmp_path), "0041", "0045"]
    monkeypatch.setattr("sys.argv", command)
    assert clients_own.main() == 0
    assert asked == [["0041", "0045"]]
