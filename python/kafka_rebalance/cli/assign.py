# SPDX-License-Identifier: Apache-2.0
"""`kafka-rebalance assign`: reads contract lines, and writes a result line for each."""

import argparse
import sys
from collections.abc import Iterator
from typing import BinaryIO

from kafka_rebalance.assignors.registry import assignor_names, is_known, unknown
from kafka_rebalance.bulk.line_files import MAX_LINE_BYTES, read_lines
from kafka_rebalance.bulk.lines import LineAnswer, assign_lines, error_line
from kafka_rebalance.errors import GroupError
from kafka_rebalance.report.text.progress import byte_progress

from .exit_codes import of_errors
from .lines import open_input
from .options import add_engine, add_max_partitions, whole

_CHUNK_BYTES = 1024 * 1024


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Reads groups as JSON lines and writes one result line for each, in order. For a group "
        'that cannot be assigned it writes {"group_id": …, "error": "<field>: <problem>"}.'
    )
    parser.add_argument("file", metavar="FILE", help="contract lines; - for standard input")
    parser.add_argument(
        "--assignor",
        metavar="NAME",
        help=f"use this one for all groups, not their own: {', '.join(assignor_names())}",
    )
    add_engine(parser)
    add_max_partitions(parser)
    parser.add_argument(
        "--max-line-bytes",
        type=whole(1),
        default=MAX_LINE_BYTES,
        metavar="N",
        help="refuse lines of more than N bytes without reading them (default: %(default)s)",
    )
    parser.add_argument(
        "--threads", type=whole(1), metavar="N", help="threads to use (default: one per core)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if args.assignor is not None and not is_known(args.assignor):
        raise GroupError("assignor", unknown(args.assignor))
    groups = bad = 0
    with open_input(args.file) as source, byte_progress(source) as advance:
        for answer in _answers(source, args):
            sys.stdout.buffer.write(answer.line)
            sys.stdout.buffer.write(b"\n")
            groups += 1
            bad += answer.is_error
            advance(source)
    sys.stdout.buffer.flush()
    if bad:
        print(f"kafka-rebalance: {bad} of {groups} groups had errors", file=sys.stderr)
    return of_errors(bad)


def _answers(source: BinaryIO, args: argparse.Namespace) -> Iterator[LineAnswer]:
    lines: list[bytes] = []
    first, size = 1, 0
    for number, line in enumerate(read_lines(source, args.max_line_bytes), 1):
        # Blank lines are skipped. None stands for a line that was too long to read.
        if line is not None and line.strip():
            lines.append(line)
            size += len(line)
            if size < _CHUNK_BYTES:
                continue
        yield from _chunk(lines, first, args)
        first, size = number + 1, 0
        if line is None:
            problem = f"more than {args.max_line_bytes} bytes; raise --max-line-bytes to read it"
            yield error_line(None, GroupError("line", problem), number)
    yield from _chunk(lines, first, args)


def _chunk(lines: list[bytes], first: int, args: argparse.Namespace) -> list[LineAnswer]:
    answers = assign_lines(
        lines,
        args.assignor,
        first=first,
        engine=args.engine,
        max_partitions=args.max_partitions,
        threads=args.threads,
    )
    lines.clear()
    return answers
