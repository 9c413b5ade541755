# SPDX-License-Identifier: Apache-2.0
"""`kafka-rebalance assign`: reads contract lines, and writes a result line for each."""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from typing import BinaryIO

from kafka_rebalance.assignors.registry import BUILT_IN, assignor_names, is_known, misspelt
from kafka_rebalance.bulk.lines import assign_lines, error_line, write_answer
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.line_files import MAX_LINE_BYTES
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.report.text.names import counted, partitions_text
from kafka_rebalance.report.text.sentences import print_note
from kafka_rebalance.report.text.terminal import byte_progress

from .lines import finish, group_lines, open_input
from .options import (
    add_engine,
    add_max_partitions,
    add_objective,
    add_pasted,
    add_table,
    name_with_objective,
    whole,
)
from .weights import Weigher, add_weights, only_weighted

_CHUNK_BYTES = 1024 * 1024
_MOST_NOTED = 20
"""The most groups of which withheld partitions are noted."""
_Write = Callable[[bytes], object]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Reads groups as JSON lines and writes one result line for each, in order. For a group "
        'that cannot be assigned it writes {"group_id": …, "error": "<field>: <problem>"}.'
    )
    names = ", ".join(assignor_names())
    add_table(
        parser,
        f"""file FILE: contract lines; - for standard input
--assignor NAME: use this one for all groups, not their own: {names}""",
    )
    add_objective(parser)
    add_weights(parser)
    add_engine(parser)
    add_pasted(parser)
    add_max_partitions(parser)
    most = {"type": whole(1), "default": MAX_LINE_BYTES}
    add_table(parser, _OPTIONS, max_line_bytes=most, threads=whole(1))


_OPTIONS = """
--max-line-bytes N: refuse lines of more than N bytes without reading them (default: %(default)s)
--threads N: threads to use (default: one per core)
"""


def run(args: argparse.Namespace) -> int:
    args.assignor = name_with_objective(args)
    only_weighted(args)
    args.bootstrap_server = args.group = None  # weights are those of the lines, or of a file
    if args.assignor is not None and not is_known(args.assignor):
        raise GroupError("assignor", misspelt(args.assignor))
    groups = bad = 0
    with open_input(args.file) as source, byte_progress(source) as advance:
        for is_error in _answer(source, args, sys.stdout.buffer.write):
            sys.stdout.buffer.write(b"\n")
            groups += 1
            bad += is_error
            advance(source)
    sys.stdout.buffer.flush()
    if sys.stdout.isatty() and groups > bad:
        print_note(f"assigned {counted(groups - bad, 'group')}; `plan` shows what each one changes")
    return finish(args.file, groups, bad)


def _answer(source: BinaryIO, args: argparse.Namespace, write: _Write) -> Iterator[bool]:
    """Writes the result lines in order; yields for each whether it is an error line."""
    lines: list[bytes] = []
    first, size, weigher = 1, 0, Weigher(args)
    for number, line in group_lines(source, args, args.max_line_bytes):
        line = None if line is None else weigher.line(line)
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
    few = list(lines) if len(lines) <= _MOST_NOTED else []
    answers = assign_lines(
        lines,
        args.assignor,
        first=first,
        engine=args.engine,
        max_partitions=args.max_partitions,
        threads=args.threads,
    )
    lines.clear()
    for place, answer in enumerate(answers):
        write(answer.line)
        yield answer.is_error
        if few and not answer.is_error:
            _note_withheld(few[place], answer.line)


def _note_withheld(line: bytes, answer: bytes) -> None:
    """Notes the partitions that a cooperative answer leaves out until their owners revoke them."""
    found = json.loads(answer)
    name = found["assignor"].partition("?")[0]
    if name not in BUILT_IN or not BUILT_IN[name].withholds:
        return
    group = GroupSpec.from_json(line)
    read = {topic for member in group.members for topic in member.topics}
    assigned = {tuple(one) for owned in found["assignment"].values() for one in owned}
    owned = (tp for some in Assignment.owned(group).values() for tp in some)
    withheld = [tp for tp in owned if tp not in assigned and tp.topic in read]
    if not withheld:
        return
    texts = partitions_text(sorted(withheld), 60)
    then = "goes to its new owner in the next rebalance, when its owner has revoked it"
    if len(withheld) > 1:
        then = "go to their new owners in the next rebalance, when their owners have revoked them"
    print_note(f"{group.group_id}: {texts} {then}")
