# SPDX-License-Identifier: Apache-2.0
"""Helpers for tests of contract lines, the JSON input of the commands.

They make a valid line, and copies of it with one value changed, and call both engines.
"""

from __future__ import annotations

import copy
import json
from typing import Any, cast

import pytest

import kafka_rebalance as kr
from kafka_rebalance.bulk.lines import LineAnswer, assign_lines

LIMIT = 1_000
MAX = 2**31 - 1

VALID: dict[str, Any] = {
    "group_id": "g",
    "generation_id": 3,
    "assignor": "cooperative-sticky",
    "leader_library": "java",
    "leader": "m0",
    "topics": [
        {"name": "t", "partitions": 3, "racks": [["a", "b"], None, [None]]},
        {"name": "u", "partitions": 1},
    ],
    "members": [
        {
            "member_id": "m0",
            "group_instance_id": "i0",
            "client_id": "c",
            "client_host": "/h",
            "topics": ["t", "u"],
            "owned_partitions": [{"topic": "t", "partitions": [0, 2]}],
            "generation_id": 3,
            "rack_id": "a",
            "client_library": "java",
        },
        {"member_id": "m1", "group_instance_id": "i1", "topics": ["t"]},
    ],
}
VALID_STREAMS: dict[str, Any] = {
    "group_id": "g",
    "assignor": "streams/sticky",
    "topics": [],
    "members": [
        {
            "member_id": "m0",
            "topics": [],
            "process_id": "p0",
            "active_tasks": [{"subtopology_id": "0", "partitions": [0, 1]}],
            "standby_tasks": [{"subtopology_id": "0", "partitions": [2]}],
            "task_offsets": [{"subtopology_id": "0", "partition": 2, "offset": 7}],
        },
        {"member_id": "m1", "topics": [], "process_id": "p1"},
    ],
    "subtopologies": [
        {"subtopology_id": "0", "tasks": 3, "stateful": True},
        {"subtopology_id": "1", "tasks": 1, "stateful": False},
    ],
    "num_standby_replicas": 1,
}
ABSENT = object()

Path = tuple[str | int, ...]
MEMBER: Path = ("members", 0)
OWNED: Path = (*MEMBER, "owned_partitions")


def rust_answer(line: bytes, limit: int = LIMIT) -> LineAnswer:
    return assign_lines([line], max_partitions=limit, threads=1)[0]


def reference_answer(line: bytes, limit: int = LIMIT) -> LineAnswer:
    return assign_lines([line], max_partitions=limit, engine="reference")[0]


def error_text(answer: LineAnswer) -> str:
    assert answer.is_error, answer
    return cast("str", json.loads(answer.line)["error"])


def as_bytes(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def valid_line_with(path: Path, value: Any) -> dict[str, Any]:
    """Returns `VALID` with another value at `path`; ABSENT leaves the field out."""
    line: Any = copy.deepcopy(VALID)
    at = line
    for step in path[:-1]:
        at = at[step]
    if value is ABSENT:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return cast("dict[str, Any]", line)


def written_path(path: Path) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)[1:]


def error_of_both(line: bytes, limit: int = LIMIT) -> str:
    """Asserts that both engines, and `from_json` with `assign`, report one error; returns it."""
    rust, python = rust_answer(line, limit), reference_answer(line, limit)
    assert rust == python
    with pytest.raises(kr.GroupError) as raised:
        kr.assign(kr.GroupSpec.from_json(line, max_partitions=limit))
    text = error_text(rust)
    assert str(raised.value) == text.replace("line 1: ", "line: ", 1)
    return text


def noted(answer: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """Returns the details of an answer's notes of this kind."""
    return [note["detail"] for note in answer["notes"] if note["kind"] == kind]
