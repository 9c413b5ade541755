# SPDX-License-Identifier: Apache-2.0
"""One long line at the prompt: its memory, its answer, and strings that occur many times in it."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafka_rebalance.bulk.lines import assign_lines, write_answer
from kafka_rebalance.cli import SOME_ERRORS, main
from kafka_rebalance.errors import GroupError
from tests.support.peak_memory import measured, read_used

if TYPE_CHECKING:
    from kafka_rebalance.assignors.registry import Engine


VECTORS = Path(__file__).parent / "vectors"
FILES = sorted(path.name for path in VECTORS.glob("*.gz") if "connect" not in path.name)


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


def most_memory(line: str, folder: Path) -> tuple[int, Path]:
    """Answers a line with the command; returns the command's most bytes, and its answer's file."""
    source, target = folder / "groups.jsonl", folder / "answers.jsonl"
    source.write_text(line, encoding="utf-8")
    command = [sys.executable, "-m", "kafka_rebalance", "assign", str(source)]
    # By default, the allocator returns freed pages after 10 ms: a peak would depend on speed.
    at_once = {**os.environ, "MIMALLOC_PURGE_DELAY": "0"}
    with target.open("wb") as answers:
        subprocess.run(measured(command, folder / "used"), stdout=answers, check=True, env=at_once)
    return read_used(folder / "used").peak_bytes, target


def test_a_line_of_30_mb_needs_less_than_five_times_its_size(tmp_path: Path) -> None:
    line = json.dumps(group(10_000, 50))
    assert 30_000_000 < len(line) < 32 * 1024 * 1024
    most, target = most_memory(line, tmp_path)
    answer = json.loads(target.read_text(encoding="utf-8"))
    assert len(answer["assignment"]) == 5_000
    assert most < 5 * len(line)


def test_a_giant_answer_is_never_whole_in_memory(tmp_path: Path) -> None:
    line = json.dumps(with_partitions(group(10_000, 50), 5_000_000))
    most, target = most_memory(line, tmp_path)
    assert target.stat().st_size > 5 * len(line)
    assert most < 5 * len(line)


def with_partitions(fields: dict[str, Any], partitions: int) -> dict[str, Any]:
    """Returns the group with about this many partitions, spread over the subscribed topics."""
    wanted = {topic for member in fields["members"] for topic in member["topics"]}
    each = partitions // len(wanted)
    listed = [
        {**topic, "partitions": each if topic["name"] in wanted else 50}
        for topic in fields["topics"]
    ]
    return {**fields, "topics": listed}


@pytest.mark.parametrize("engine", ["rust", "reference"])
@pytest.mark.parametrize("assignor", ["range", "kafka-python/range"])
def test_the_pieces_of_an_answer_are_its_line(engine: Engine, assignor: str) -> None:
    fields = with_partitions(group(300, 30), 40_000)
    line, pieces = json.dumps({**fields, "assignor": assignor}).encode(), list[bytes]()
    (whole,) = assign_lines([line], engine=engine)
    assert write_answer(line, pieces.append, engine=engine) == whole.is_error
    assert b"".join(pieces) == whole.line
    if engine == "rust" and assignor == "range":
        assert len(pieces) > 1
        assert max(map(len, pieces)) <= 1 << 20


@pytest.mark.parametrize("file", FILES)
def test_every_group_has_one_answer_as_a_long_line_and_as_a_short_one(file: str) -> None:
    with gzip.open(VECTORS / file, "rt", encoding="utf-8") as cases:
        lines = [json.dumps(json.loads(case)["case"]).encode() for case in islice(cases, 200)]
    assert lines
    for number, answer in enumerate(assign_lines(lines), 1):
        pieces: list[bytes] = []
        assert write_answer(lines[number - 1], pieces.append, number=number) == answer.is_error
        assert b"".join(pieces) == answer.line


BAD_LINES = (
    b"{",
    b'{"group_id": "g", "assignor": "range", "members": []}',
    json.dumps({**with_partitions(group(2, 2), 4), "assignor": "unheard-of"}).encode(),
)


@pytest.mark.parametrize("line", BAD_LINES)
def test_the_error_of_a_long_line_is_whole(line: bytes) -> None:
    pieces: list[bytes] = []
    (whole,) = assign_lines([line], first=7)
    assert write_answer(line, pieces.append, number=7)
    assert pieces == [whole.line]


def test_nothing_is_written_after_a_failed_write() -> None:
    line = json.dumps(with_partitions(group(300, 30), 40_000)).encode()
    pieces: list[bytes] = []

    def fail(piece: bytes) -> None:
        pieces.append(piece)
        raise BrokenPipeError("gone")

    with pytest.raises(BrokenPipeError, match="gone"):
        write_answer(line, fail)
    assert len(pieces) == 1


def test_an_unknown_assignor_is_refused_before_a_long_line_is_read() -> None:
    with pytest.raises(GroupError, match="assignor: "):
        write_answer(b"{", print, "unheard-of")


def test_long_lines_and_short_ones_are_answered_in_order(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    def named(name: str, size: int) -> str:
        return json.dumps({**group(2, 2), "group_id": name, "comment": "x" * size})

    long = 1 << 20
    lines = [named("a", 1), named("b", long), "", " " * long, named("c", 1), "{" * long, "[]"]
    source = tmp_path / "groups.jsonl"
    source.write_text("\n".join(lines), encoding="utf-8")
    assert main(["assign", str(source)]) == SOME_ERRORS
    texts = [one for one in lines if one.strip()]
    answers = capfdbinary.readouterr().out.splitlines()
    numbers = [number for number, one in enumerate(lines, 1) if one.strip()]
    expected = [
        assign_lines([text.encode()], first=number)[0].line
        for number, text in zip(numbers, texts, strict=True)
    ]
    assert answers == expected


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
