# SPDX-License-Identifier: Apache-2.0
"""The memory of one long line at the prompt, and JSON whose names and texts occur many times."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from kafka_rebalance.bulk.lines import assign_lines

if TYPE_CHECKING:
    from pathlib import Path


def group(topics: int, copies: int) -> dict[str, Any]:
    """Returns a group in which each member owns single partitions of a hundred topics."""
    names = [f"payments.events.topic-{n:05}" for n in range(topics)]
    held = [(name, p) for p in range(copies) for name in names]
    members = [
        {
            "member_id": f"payments-app-{n:06}-1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed",
            "topics": [name for name, _ in held[first : first + 3]],
            "owned_partitions": [
                {"topic": name, "partitions": [p]} for name, p in held[first : first + 100]
            ],
            "generation_id": 5,
        }
        for n, first in enumerate(range(0, len(held), 100))
    ]
    listed = [{"name": name, "partitions": copies} for name in names]
    return {"group_id": "g", "assignor": "range", "topics": listed, "members": members}


# A process begins with the peak of its parent, so a small one starts the command.
MEASURED = """
import resource, subprocess, sys
command = [sys.executable, "-m", "kafka_rebalance", "assign", sys.argv[1]]
with open(sys.argv[2], "wb") as answers:
    subprocess.run(command, stdout=answers, check=True)
unit = 1 if sys.platform == "darwin" else 1024
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit)
"""


def test_a_line_of_30_mb_needs_less_than_five_times_its_size(tmp_path: Path) -> None:
    line = json.dumps(group(10_000, 50))
    assert 30_000_000 < len(line) < 32 * 1024 * 1024
    source, target = tmp_path / "groups.jsonl", tmp_path / "answers.jsonl"
    source.write_text(line, encoding="utf-8")
    command = [sys.executable, "-c", MEASURED, str(source), str(target)]
    most = int(subprocess.run(command, capture_output=True, check=True).stdout)
    answer = json.loads(target.read_text(encoding="utf-8"))
    assert len(answer["assignment"]) == 5_000
    assert most < 5 * len(line)


@pytest.mark.parametrize(
    "line",
    [
        '{"group_id": "a", "group_id": "b", "assignor": "range", "topics": [], "members": []}',
        '{"group_id": "\\u0067\\n", "assignor": "range", "topics": [], "members": 1.5}',
        '{"group_id": "a", "assignor": "range", "topics": {"topics": "topics"}, "members": []}',
        '{"group_id": "a", "generation_id": 9223372036854775808, "topics": [], "members": []}',
        '{"group_id": "a", "generation_id": true, "topics": [], "members": []}',
        '{"group_id": "a", "generation_id": 1e2, "topics": [], "members": []}',
        '{"error": "line: earlier", "error": "members: later"}',
        "[null]",
        '"text"',
    ],
)
def test_both_engines_read_a_line_alike(line: str) -> None:
    (rust,) = assign_lines([line.encode()])
    (reference,) = assign_lines([line.encode()], engine="reference")
    assert rust == reference
    assert rust.is_error


def test_texts_that_occur_many_times_stay_what_they_are() -> None:
    line = json.dumps({**group(20, 10), "payments.events.topic-00001": "topics"}).encode()
    (rust,) = assign_lines([line])
    (reference,) = assign_lines([line], engine="reference")
    assert rust == reference
    assert not rust.is_error
