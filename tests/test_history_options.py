# SPDX-License-Identifier: Apache-2.0
"""The options of `history` that exclude each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kafka_rebalance.cli import main
from tests.test_history import VECTORS

if TYPE_CHECKING:
    from pathlib import Path

RECORDS = str(VECTORS / "kafka-2.4.1" / "records.jsonl.gz")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("--replay --what-if", "argument --what-if: not allowed with argument --replay"),
        ("--patterns --replay", "argument --replay: not allowed with argument --patterns"),
        ("--what-if --patterns", "argument --patterns: not allowed with argument --what-if"),
        ("--replay --output x.html", "--output: not with --replay or --what-if, which draw no"),
        ("--what-if --output x.html", "--output: not with --replay or --what-if, which draw no"),
        ("--topics t.jsonl", "--topics: only --replay and --what-if read it; add one of them"),
        ("--patterns --topics t.jsonl", "--topics: only --replay and --what-if read it"),
    ],
)
def test_no_option_is_ignored_silently(
    options: str,
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as raised:
        main(["history", RECORDS, *options.split()])
    assert raised.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert problem in printed.err
    assert list(tmp_path.iterdir()) == []
