# SPDX-License-Identifier: Apache-2.0
"""Reads groups as JSON lines and writes one result line for each, in order. For a group that cannot
be assigned it writes {"group_id": …, "error": "<field>: <problem>"}.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from typing import BinaryIO

from kafka_rebalance.assignors.registry import assignor_names, is_known, misspelt
from kafka_rebalance.bulk.lines import assign_lines, error_line, write_answer
from kafka_rebalance.errors import GroupError, shown
from kafka_rebalance.group.line_files import MAX_LINE_BYTES
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.report.text.sentences import counted, partitions_text, print_note
from kafka_rebalance.report.text.terminal import byte_progress

from .lines import finish, group_lines, open_input
from .options import add_objective, add_pasted, add_table, name_with_objective, whole
from .weights import Weigher, add_weights, only_weighted

_CHUNK_BYTES = 1024 * 1024
_MOST = 60  # the most characters of a note's list of partitions
_Write = Callable[[bytes], object]


def add_options(parser: argparse.ArgumentParser) -> None:
    add_table(parser, "file FILE: contract lines; - for standard input")
    names = ", ".join(assignor_names())
    add_table(parser, f"--assignor NAME: use this one for all groups, not their own: {names}")
    add_objective(parser)
    add_weights(parser)
    add_table(parser, "--engine")
    add_pasted(parser)
    most = {"type": whole(1), "default": MAX_LINE_BYTES}
    options = """
    --max-partitions
    --max-line-bytes N: refuse lines of more than N bytes without reading them (default:
      %(default)s)
    --threads N: threads to use (default: one per core)
    """
    add_table(parser, options, max_line_bytes=most, threads=whole(1))


def run(args: argparse.Namespace) -> int:
    args.assignor = name_with_objective(args)
    only_weighted(args)
    args.bootstrap_server = args.group = None  # no cluster: weights are in the lines, or in a file
    if args.assignor is not None and not is_known(args.assignor):
        raise GroupError("assignor", misspelt(args.assignor))
    groups = bad = 0
    seen, is_cooperative = list[bytes](), False

    def write(piece: bytes) -> None:
        nonlocal is_cooperative
        is_cooperative |= _COOPERATIVE in piece[:_HEAD_BYTES]
        sys.stdout.buffer.write(piece)

    with open_input(args.file) as source, byte_progress(source) as advance:
        for is_error in _answer(source, args, write, seen):
            sys.stdout.buffer.write(b"\n")
            groups += 1
            bad += is_error
            advance(source)
    sys.stdout.buffer.flush()
    if sys.stdout.isatty() and groups > bad:
        print_note(f"assigned {counted(groups - bad, 'group')}; `plan` shows what each one changes")
    if is_cooperative:
        alone = groups == 1 and len(seen[0]) < _CHUNK_BYTES
        if note := _next_round(seen[0], args) if alone else _NEXT_ROUNDS:
            print_note(note)
    return finish(args.file, groups, bad)


_COOPERATIVE, _HEAD_BYTES = b'cooperative-sticky","assignment":', 4096
_NEXT_ROUNDS = (
    "cooperative-sticky: a line is round 1; a partition that goes from one member to another is in "
    "no line, but in round 2 (`plan` shows both rounds)"
)


def _next_round(line: bytes, args: argparse.Namespace) -> str:
    """Returns a sentence on partitions that move only in the second rebalance; "" without any."""
    from kafka_rebalance.plans.rebalance_plan import plan

    group = GroupSpec.from_json(line, max_partitions=args.max_partitions)
    rounds = plan(group, args.assignor, engine=args.engine).rounds
    withheld = rounds[0].withheld if rounds else {}
    later = [tp for owned in withheld.values() for tp in owned]
    if not later:
        return ""
    goes = f"{partitions_text(later, _MOST)} go to other members"
    if len(later) == 1:
        old = next(name for name, owned in rounds[0].held.items() if later[0] in owned)
        new = next(name for name, owned in withheld.items() if owned)
        goes = shown(f"{later[0]} goes from {old} to {new}")
    return f"{shown(group.group_id)}, round 1 of 2: {goes} in the next (`plan` shows both rounds)"


def _answer(
    source: BinaryIO, args: argparse.Namespace, write: _Write, seen: list[bytes]
) -> Iterator[bool]:
    """Writes the result lines in order; yields for each whether it is an error line.

    Adds the first line of the input to `seen`.
    """
    lines: list[bytes] = []
    first, size, weigher = 1, 0, Weigher(args)
    for number, line in group_lines(source, args, args.max_line_bytes):
        line = None if line is None else weigher.line(line)
        seen += [line] if line is not None and not seen else []
        if number != first + len(lines):
            yield from _chunk(lines, first, args, write)
            first, size = number, 0
        # None stands for a line that was too long to read.
        is_long = line is not None and len(line) >= _CHUNK_BYTES
        if line is not None and not is_long:
            lines.append(line)
            size += len(line)
            if size < _CHUNK_BYTES:
                continue
        yield from _chunk(lines, first, args, write)
        first, size = number + 1, 0
        if line is None:
            problem = f"more than {args.max_line_bytes} bytes; raise --max-line-bytes to read it"
            write(error_line(None, GroupError("line", problem), number).line)
            yield True
        elif is_long:
            yield write_answer(
                line,
                write,
                args.assignor,
                number=number,
                engine=args.engine,
                max_partitions=args.max_partitions,
            )
    yield from _chunk(lines, first, args, write)
    weigher.finish()


def _chunk(
    lines: list[bytes], first: int, args: argparse.Namespace, write: _Write
) -> Iterator[bool]:
    answers = assign_lines(
        lines,
        args.assignor,
        first=first,
        engine=args.engine,
        max_partitions=args.max_partitions,
        threads=args.threads,
    )
    lines.clear()
    for answer in answers:
        write(answer.line)
        yield answer.is_error
