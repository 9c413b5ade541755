# SPDX-License-Identifier: Apache-2.0
"""Reads input lines, and replaces whole output files."""

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import field
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO

from kafka_rebalance.errors import GroupError
from kafka_rebalance.frozen import Mutable
from kafka_rebalance.group import contract
from kafka_rebalance.group.group_fields import FIELDS
from kafka_rebalance.group.line_files import MAX_LINE_BYTES, TOO_LONG, read_lines
from kafka_rebalance.group.model import TopicPartition, quoted
from kafka_rebalance.report.text.sentences import counted, in_words, partitions_text, print_note

from . import of_errors
from .options import topic_count

if TYPE_CHECKING:
    from pathlib import Path

    from kafka_rebalance.bulk.pasted import Pasted


def open_input(file: str) -> BinaryIO:
    """Opens a file for reading in binary; "-" is standard input."""
    # Not `Path.open`: importing pathlib takes longer than computing many of the answers.
    return sys.stdin.buffer if file == "-" else open(file, "rb")  # noqa: PTH123


@contextmanager
def written(path: "Path") -> "Iterator[Path]":
    """Yields a path next to `path`; when the block ends, the file written there replaces `path`.

    After an error, a file that was at `path` before is unchanged. An OSError names `path`.
    """
    import secrets

    place = path.resolve()  # a link is kept, and its target is replaced
    part = place.with_name(f".{secrets.token_hex(8)}{path.suffix}")
    try:
        yield part
        part.replace(place)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None
    finally:
        part.unlink(missing_ok=True)


def draw(path: "Path", page: str) -> None:
    with written(path) as part:
        part.write_text(page, encoding="utf-8")
    print_note(f"drawn to {path}")


def numbered(source: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """Yields (number, line) of the lines that are not blank; the line is None if it is too long."""
    for number, line in enumerate(read_lines(source, MAX_LINE_BYTES), 1):
        if line is None or line.strip():
            yield number, line


def group_lines(
    source: BinaryIO, args: argparse.Namespace | None = None, most: int = MAX_LINE_BYTES
) -> Iterator[tuple[int, bytes | None]]:
    """Yields contract lines as `numbered` does; pasted tables are converted into lines first.

    The input contains tables (docs/paste.md) if its first nonblank line is not JSON, and any line
    is the head of a table. The input is then read whole. `args` holds the options of `add_pasted`.
    """
    lines = enumerate(read_lines(source, most), 1)
    text, size, is_json = list[tuple[int, bytes | None]](), 0, False
    while not is_json and size <= MAX_LINE_BYTES and (one := next(lines, None)) is not None:
        text.append(one)
        line = one[1] or b""
        is_json = size == 0 and line.lstrip()[:1] == b"{"
        size += 0 if line.isspace() else len(line)
    known = [each or b"" for _, each in text]
    if any(b"\0" in each for each in known) and not any(each[:2] == b'{"' for each in known):
        raise GroupError("line", "these are no lines of groups: the input is binary")
    shown = [] if is_json else [(n, (each or b"").decode(errors="replace")) for n, each in text]
    options = {} if args is None else vars(args)
    topics, assume = options.get("topic", ()), options.get("assume", ())
    if shown:
        from kafka_rebalance.bulk.pasted import ASSUMED, has_tables, read_pasted
    if shown and has_tables(line for _, line in shown):
        if size > MAX_LINE_BYTES:
            raise GroupError("line", f"tables of {TOO_LONG}; give those of fewer groups")
        pasted = read_pasted(shown, dict(map(topic_count, topics)), options.get("group"))
        assumed = {*pasted.assumed} - {_assume(one, pasted) for one in assume}
        for path in (one for one in pasted.assumed if one in assumed):
            how = "--topic NAME=N" if path == "topics.partitions" else f"--assume {path}=…"
            print_note(f"assumed: {ASSUMED[path]}; else {how.replace('.', '[NAME].')}")
        if pasted.empty:
            print_note(f"left out: {in_words(pasted.empty)}, without members")
        text = [(number, contract.dumps(each).encode()) for number, each in pasted.lines]
    elif topics or assume:
        raise GroupError("--topic, --assume", "only for tables; a contract line has all fields")
    yield from (one for one in chain(text, lines) if one[1] is None or one[1].strip())


_OPTION = re.compile(r"(?:(topics|members)\[(.*)\]\.)?(\w+)=(.*)", re.DOTALL)
_IDS = ("name", "member_id", "group_instance_id", "client_id")


def _assume(option: str, pasted: "Pasted") -> str:
    """Sets the field that `--assume` names in the lines made from tables; returns the field's path
    if it was set in all of them, else "".
    """
    found = _OPTION.fullmatch(option)
    place, name, key, text = found.groups() if found else (None, None, "", "")
    if key not in FIELDS[place or ""]:
        problem = f"{quoted(option)} is not FIELD=VALUE, such as members[*].rack_id=a"
        raise GroupError("--assume", f"{problem}; docs/contract.md has the fields")
    value: Any = text.split(",") if (place, key) == ("members", "topics") else text
    with suppress(ValueError):
        value = json.loads(text)
    is_set = False
    for _, line in pasted.lines:
        for one in (line,) if place is None else line.get(place, ()):
            if name in (None, "*", *map(one.get, _IDS)):
                one[key], is_set = value, True
    if not is_set:
        raise GroupError("--assume", f"{quoted(option)}: the text has no {quoted(name or 'group')}")
    return "" if name not in (None, "*") else f"{place}.{key}" if place else key


def required(line: bytes | None) -> bytes:
    """Returns the line. Errors: GroupError if it is None, because it was too long to read."""
    if line is None:
        raise GroupError("line", TOO_LONG)
    return line


def no_groups(file: str, noun: str = "group") -> None:
    """Reports on standard error that the input is empty: nothing else would be printed."""
    source = "standard input" if file == "-" else file
    print_note(f"{source}: no {noun} in it")


def finish(file: str, lines: int, bad: int, noun: str = "group") -> int:
    """Reports how many of a file's `lines` were `bad`; returns the exit code."""
    if not lines:
        no_groups(file, noun)
    if bad:
        print_note(f"{bad} of {counted(lines, noun)} had errors")
    return of_errors(bad)


_CHARACTERS_IN_SENTENCE = 60


class Leaderless(Mutable):
    """The partitions without a leader, by group id, as contract lines list them."""

    of_group: dict[str | None, list[TopicPartition]] = field(default_factory=dict)
    applications: dict[str | None, Any] = field(default_factory=dict)
    """The field `application` of the lines of classic Kafka Streams groups, by group id."""

    def note(self, group_id: str | None, line: Any) -> None:
        """Keeps a group's leaderless partitions and application; `line` may be invalid."""
        if isinstance(line, Mapping) and line.get("application") is not None:
            self.applications[group_id] = line["application"]
        topics = line.get("topics") if isinstance(line, Mapping) else None
        found = [
            TopicPartition(topic["name"], number)
            for topic in items_of(dict, topics)
            if isinstance(topic.get("name"), str)
            for number in items_of(int, topic.get("leaderless"))
        ]
        if found:
            self.of_group[group_id] = found

    def show(self) -> None:
        every = sorted({tp for found in self.of_group.values() for tp in found})
        if not every:
            return
        groups, one = len(self.of_group), len(every) == 1
        who = f"{next(iter(self.of_group))} reads" if groups == 1 else f"{groups} groups read"
        names = partitions_text(every, _CHARACTERS_IN_SENTENCE)
        print_note(
            f"{who} {counted(len(every), 'partition')} without a leader: {names}. Kafka assigns "
            f"{'it' if one else 'them'}, but no member can read {'it' if one else 'them'} until a "
            "replica is back"
        )


def items_of(kind: type, value: Any) -> list[Any]:
    """Returns the items of this type in a JSON list; [] for any other value."""
    return [one for one in value if type(one) is kind] if isinstance(value, list) else []
