# SPDX-License-Identifier: Apache-2.0
"""Assigns the groups in contract lines (docs/contract.md); a bad line affects no other line.
Mirror of `src/bulk/lines.rs`.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import kafka_rebalance._core as _core
from kafka_rebalance.assignors.assigning import assign_with_figures
from kafka_rebalance.assignors.registry import (
    IN_PLACE_OF_STREAM,
    ONLY_PYTHON,
    OURS,
    STREAM,
    Engine,
    is_known,
    runs_in_core,
    unknown,
)
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group import contract
from kafka_rebalance.group.field_paths import a_type, integer
from kafka_rebalance.group.model import MAX_PARTITIONS
from kafka_rebalance.group.spec import GroupSpec, checked_limit


class LineAnswer(NamedTuple):
    """The answer to one line: a result line or an error line, in UTF-8 and without a newline."""

    line: bytes
    is_error: bool


def assign_lines(
    lines: Sequence[bytes],
    assignor: str | None = None,
    *,
    first: int = 1,
    engine: Engine = "rust",
    max_partitions: int = MAX_PARTITIONS,
    threads: int | None = None,
) -> list[LineAnswer]:
    """Returns the answers to contract lines (bytes), in order; for a bad line, an error line.

    If `assignor` is None, each line's own assignor is used. Messages number the lines from `first`
    on. If `threads` is None, all cores are used (engine "rust" only).

    Errors   GroupError for an unknown `assignor`, and for `max_partitions` or `threads` out of
             range; TypeError for lines that are not bytes.
    """
    _check_name(assignor)
    _check_lines(lines)
    max_partitions, threads = checked_limit(max_partitions), threads_of(threads)
    if engine != "rust" or not runs_in_core(assignor):
        return [
            _assign_line(line, number, assignor, engine, max_partitions)
            for number, line in enumerate(lines, first)
        ]
    answers = _core.assign_lines(lines, first, assignor, max_partitions, threads)
    return [
        _assign_line(lines[i], first + i, assignor, engine, max_partitions)
        if answer.is_error and _needs_python(answer.line)
        else LineAnswer(answer.line, answer.is_error)
        for i, answer in enumerate(answers)
    ]


def write_answer(
    line: bytes,
    write: Callable[[bytes], object],
    assignor: str | None = None,
    *,
    number: int = 1,
    engine: Engine = "rust",
    max_partitions: int = MAX_PARTITIONS,
) -> bool:
    """Assigns one long line's group as `assign_lines` does; returns whether the answer is an error.

    An answer can be many times longer than its line. So engine "rust" passes a result line to
    `write` in pieces of about 1 MiB, and the whole answer is never in memory.

    Errors   GroupError for an unknown `assignor`; those of `write`, which then gets no more pieces.
    """
    _check_name(assignor)
    if engine == "rust" and runs_in_core(assignor):
        error_line = _core.assign_long_line(line, number, assignor, max_partitions, write)
        if error_line is None:
            return False
        if not _needs_python(error_line):
            write(error_line)
            return True
    answer = _assign_line(line, number, assignor, engine, max_partitions)
    write(answer.line)
    return answer.is_error


def _needs_python(error_line: bytes) -> bool:
    return ONLY_PYTHON in error_line or IN_PLACE_OF_STREAM.encode() in error_line


def _check_name(assignor: str | None) -> None:
    if assignor is not None and not is_known(assignor):
        raise GroupError("assignor", unknown(assignor))


def _check_lines(lines: Sequence[bytes]) -> None:
    if isinstance(lines, str | bytes):
        raise TypeError(f"lines: {a_type(lines)}; give a list of bytes, one for each line")
    for i, line in enumerate(lines):
        if not isinstance(line, bytes | bytearray):
            raise TypeError(f"lines[{i}]: {a_type(line)}; give bytes, as a file has them")


def threads_of(threads: int | None) -> int:
    """Returns the number of threads; None means all cores. Errors: GroupError below 1."""
    return os.cpu_count() or 1 if threads is None else integer(threads, "threads", "number", 1)


def _assign_line(
    line: bytes, number: int, assignor: str | None, engine: Engine, max_partitions: int
) -> LineAnswer:
    fields: Any = None
    try:
        fields = contract.parse(line)
        group = GroupSpec.from_dict(fields, max_partitions=max_partitions)
        if assignor is None and is_application(fields):
            from .assigned_applications import assigned_line

            return LineAnswer(assigned_line(group.group_id, fields, engine), is_error=False)
        result, figures = assign_with_figures(group, assignor, engine)
    except GroupError as error:
        return error_line(group_id_of(fields), error, number)
    name = assignor or group.assignor or ""
    bare = name.partition("?")[0]
    answer: dict[str, Any] = {
        "group_id": group.group_id,
        "assignor": bare if bare in OURS else name,
        "assignment": result.to_dict(),
    }
    if result.standby is not None:
        answer["standby"] = result.standby.to_dict()
    if result.anomalies:
        answer["anomalies"] = [anomaly.to_dict() for anomaly in result.anomalies]
    if figures is not None:
        answer["balance"] = figures
    return LineAnswer(contract.dumps(answer).encode(), is_error=False)


def is_application(fields: Mapping[str, Any]) -> bool:
    """Returns whether a line or row describes a classic Kafka Streams application."""
    return fields.get("assignor") == STREAM and fields.get("application") is not None


def error_line(
    group_id: str | None, error: GroupError, number: int, *, key: str = "group_id"
) -> LineAnswer:
    answer = {key: group_id, "error": line_error(error, number)}
    return LineAnswer(contract.dumps(answer).encode(), is_error=True)


def line_error(error: GroupError, number: int) -> str:
    """Returns the text of an error in line `number`; the path "line" becomes `line NUMBER`."""
    path = f"line {number}" if error.path == "line" else error.path
    return f"{path}: {error.problem}"


def group_id_of(fields: Any, key: str = "group_id") -> str | None:
    group_id = fields.get(key) if isinstance(fields, dict) else None
    return group_id if isinstance(group_id, str) else None
