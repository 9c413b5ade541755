# SPDX-License-Identifier: Apache-2.0
"""Reads and plays traces: files with the commands of a run and their results.

    # why
    advance 3s
    ----
    3.0s g PreparingRebalance -> CompletingRebalance generation=1

A block contains comments and commands, then `----` and the results of the commands, as lines. Empty
lines separate blocks. `play` writes the results, even into a trace that has none yet.

A command consists of words and `name=value` options, quoted as in a shell. A duration is `250ms`,
`3s`, `5m`, `1h`, `7d`, or a number of ms.
"""

import shlex
from collections.abc import Callable, Sequence
from itertools import groupby

from kafka_rebalance.errors import GroupError
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.declared_types import milliseconds

_RULE = "----"


class Command(Frozen):
    """One line with a command. `line` is the line's number, from 1 on."""

    line: int
    words: tuple[str, ...]
    options: dict[str, str]

    def __str__(self) -> str:
        return f"line {self.line}"

    def error(self, problem: str) -> GroupError:
        return GroupError(f"line {self.line}", problem)

    def option(self, name: str, default: str = "") -> str:
        return self.options.get(name, default)

    def ms(self, name: str, default_ms: int) -> int:
        return duration_ms(self, self.options[name]) if name in self.options else default_ms

    def number(self, name: str, default: int) -> int:
        text = self.options.get(name)
        return default if text is None else whole(self, text)

    def only(self, *names: str) -> None:
        """Raises a GroupError if the command has an option that is not in `names`."""
        for name in self.options:
            if name not in names:
                known = ", ".join(names) or "none"
                raise self.error(f"no option {name!r} here; known: {known}")


class Block(Frozen):
    """Commands with their expected results. `head` holds the lines before `----`, as written."""

    head: tuple[str, ...]
    commands: tuple[Command, ...]
    expected: tuple[str, ...]


def parse(text: str) -> list[Block]:
    """Parses a trace into blocks. Errors: GroupError with the line."""
    blocks = []
    numbered = enumerate(text.splitlines(), 1)
    for has_text, lines in groupby(numbered, lambda one: bool(one[1].strip())):
        block = list(lines) if has_text else []
        texts = [line for _, line in block]
        end = texts.index(_RULE) if _RULE in texts else len(texts)
        commands = [_command(*one) for one in block[:end] if not one[1].startswith("#")]
        expected = [line for line in texts[end:] if line != _RULE]
        if end:
            blocks.append(Block(tuple(texts[:end]), tuple(commands), tuple(expected)))
    return blocks


def play(text: str, step: Callable[[Command], Sequence[str]]) -> str:
    """Plays a trace. Returns it with the results of `step`; a GroupError becomes a result, too."""
    parts = []
    for block in parse(text):
        lines = list(block.head)
        results: list[str] = []
        for command in block.commands:
            try:
                results += step(command)
            except GroupError as error:
                results.append(f"error: {error.problem}")
        if block.commands:
            lines += [_RULE, *results]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _command(number: int, line: str) -> Command:
    try:
        pieces = shlex.split(line)
    except ValueError as error:
        raise GroupError(f"line {number}", str(error)) from error
    words = tuple(piece for piece in pieces if "=" not in piece)
    options = dict(piece.split("=", 1) for piece in pieces if "=" in piece)
    if not words:
        raise GroupError(f"line {number}", f"{line!r} has no command")
    return Command(number, words, options)


def duration_ms(command: Command, text: str) -> int:
    found = milliseconds(text)
    if found is None:
        raise command.error(f"{text!r} is not a duration; 250ms, 3s, 5m, 1h and 7d are")
    return found


def whole(command: Command, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise command.error(f"{text!r} is not a whole number") from None


def partition(command: Command, name: str) -> tuple[str, int]:
    """Returns the topic and the number in a string such as `t-0`. Errors: GroupError."""
    topic, _, number = name.rpartition("-")
    if not topic:
        raise command.error(f"{name!r} is not a partition; t-0 is")
    return topic, whole(command, number)


def at(now_ms: int) -> str:
    """Returns a time as a trace writes it.

    >>> at(3000), at(12_345), at(7)
    ('3.0s', '12.345s', '0.007s')
    """
    text = f"{now_ms / 1000:.3f}".rstrip("0")
    return f"{text}0s" if text.endswith(".") else f"{text}s"
