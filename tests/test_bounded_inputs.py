# SPDX-License-Identifier: Apache-2.0
"""A file that a stranger made ends a command in one line: endless lines, and lists in lists.

tests/test_giant_lines.py and tests/test_wrong_inputs.py test contract lines, which `assign`, `plan`
and `describe` read.
"""

from __future__ import annotations

import gzip
import json
import resource
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from kafka_rebalance.group.line_files import MAX_LINE_BYTES, TOO_LONG
from tests.test_history import VECTORS

if TYPE_CHECKING:
    from pathlib import Path

RECORDS = VECTORS / "kafka-2.4.1" / "records.jsonl.gz"
PATIENCE_S = 120.0
MOST_BYTES = 450 << 20
"""The most memory of a command, which holds a few copies of a line of MAX_LINE_BYTES."""

DEEP = b"[" * 200_000
RECORD = json.dumps({"partition": 0, "offset": 0, "timestamp": 0, "key": "", "value": None})


def ran(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Runs a command with limited memory."""
    return subprocess.run(
        [sys.executable, "-m", "kafka_rebalance", *arguments],
        input=stdin,
        capture_output=True,
        timeout=PATIENCE_S,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES)),
    )


def bomb(path: Path, piece: bytes = b" ") -> str:
    """Writes a small file that unzips to one line of 500 MiB."""
    with gzip.open(path, "wb", compresslevel=1) as source:
        for _ in range(500):
            source.write(piece * (1 << 20))
    assert path.stat().st_size < 8 << 20
    return str(path)


def test_history_refuses_a_line_that_unzips_to_hundreds_of_mebibytes(tmp_path: Path) -> None:
    path = bomb(tmp_path / "bomb.jsonl.gz")
    run = ran("history", path)
    assert run.returncode == 2
    assert run.stderr.startswith(f"kafka-rebalance: {path}:1: {TOO_LONG}".encode())


def test_a_long_line_of_a_brokers_log_is_not_a_coordinators(tmp_path: Path) -> None:
    log = bomb(tmp_path / "server.log.gz", b"[")
    run = ran("history", str(RECORDS), "--broker-log", log)
    assert run.returncode == 0
    assert run.stderr == b"kafka-rebalance: the broker's log has no line about groups\n"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("history",), DEEP),
        (("simulate",), b"a = " + DEEP),
        (("coordinator",), b"a"),
        (("simulate",), b"#"),
        (("history", "--what-if", "records.jsonl", "--topics"), DEEP),
        (("serve", "--port", "0", "--topics-of"), b" "),
    ],
    ids=lambda one: one[0] if isinstance(one, tuple) else "deep" if DEEP in one else "long",
)
def test_the_error_is_one_line(
    arguments: tuple[str, ...], text: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "records.jsonl").write_text(RECORD)
    (tmp_path / "input").write_bytes(text if DEEP in text else text * (MAX_LINE_BYTES + 1))
    run = ran(*arguments, "input")
    assert run.returncode in (2, 3)
    assert run.stdout == b""
    assert run.stderr.count(b"\n") == 1
    assert b"Traceback" not in run.stderr


def test_the_driver_answers_a_line_that_it_cannot_read() -> None:
    lines = (DEEP, b" " * (MAX_LINE_BYTES + 1), b"\xff", b'{"op": "none"}')
    run = ran("coordinator", "--json", stdin=b"\n".join(lines))
    assert run.stderr == b""
    assert run.returncode == 0
    deep, long, no_text, after = map(json.loads, run.stdout.splitlines())
    assert deep["why"].startswith("not JSON: ")
    assert long == {"bad": None, "why": TOO_LONG}
    assert no_text["why"].startswith("not JSON: ")
    assert after == {"bad": "none"}


@pytest.mark.parametrize("command", ["describe", "plan"])
def test_a_picture_is_one_error_and_a_damaged_line_before_groups_is_its_own(command: str) -> None:
    group = {"group_id": "g", "assignor": "range", "topics": [{"name": "t", "partitions": 1}]}
    line = json.dumps({**group, "members": [{"member_id": "a", "topics": ["t"]}]}).encode()
    picture = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\n" * 20
    whole, mixed = ran(command, "-", stdin=picture), ran(command, "-", stdin=picture + line)
    assert whole.returncode == 2
    assert whole.stderr.endswith(b"the input is binary\n")
    assert whole.stderr.count(b"\n") == 1
    assert b"line 1: not UTF-8" in mixed.stderr
    assert b"g" in mixed.stdout
