# SPDX-License-Identifier: Apache-2.0
"""Names and lists in sentences, and sentences for people.

A note, a warning or an error of the command goes to standard error. On a terminal, it is wrapped at
the terminal's width (or COLUMNS, and at most 100), and its further lines are indented. Elsewhere it
stays one line, because programs look for it in a log. Sentences on standard output are part of a
report, and always wrapped (`print_wrapped`).
"""

import re
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from kafka_rebalance.errors import shown

from .tables import MOST_COLUMNS, width
from .terminal import columns, red

if TYPE_CHECKING:
    from kafka_rebalance.group.model import TopicPartition

_COMMAND = "kafka-rebalance:"
_HANGING = "  "
_UUID = re.compile(r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")


def wrapped(text: str, most: int, indent: str = "", more: str = "") -> list[str]:
    """Returns lines of at most `most` columns; `more` indents later lines. Names stay whole."""
    lines = textwrap.wrap(
        shown(text),
        most,
        initial_indent=indent,
        subsequent_indent=indent + more,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return lines or [""]


def print_wrapped(text: str, indent: str = "", more: str = "") -> None:
    """Prints a text wrapped to the tables' width; `more` indents all lines but the first."""
    for line in wrapped(text, width(), indent, more):
        print(line)


GLOSSARY = "docs/glossary.md explains the words."


def print_note(text: str) -> None:
    """Prints a note of the command on standard error, after the command's name."""
    print_sentence(f"{_COMMAND} {text}")


def print_error(text: str) -> None:
    """Prints the error that ends the command; on a terminal, the command's name is red."""
    first, *more = _lines(f"{_COMMAND} {text}")
    print(f"{red(_COMMAND)}{first.removeprefix(_COMMAND)}", file=sys.stderr)
    for line in more:
        print(line, file=sys.stderr)


def print_sentence(text: str) -> None:
    """Prints a sentence on standard error with its indentation, but without the command's name."""
    for line in _lines(text):
        print(line, file=sys.stderr)


def _lines(text: str) -> list[str]:
    """Returns the lines of a sentence: wrapped if standard error is a terminal, else one line."""
    if not sys.stderr.isatty():
        return [shown(text)]
    indent = " " * (len(text) - len(text.lstrip(" ")))
    most = min(MOST_COLUMNS, columns(sys.stderr) or MOST_COLUMNS)
    return wrapped(text.lstrip(" "), most, indent, _HANGING)


# Names --------------------------------------------------------------------------------------------


def short_names(member_ids: Iterable[str], made_up: Iterable[str] = ()) -> dict[str, str]:
    """Returns member id -> short name. Each UUID is cut as far as the names stay different.

    consumer-payments-1-0b5c2d1e-… becomes consumer-payments-1-0b5c. An id without a UUID is its own
    short name. `*` marks made-up ids.
    """
    member_ids = list(member_ids)
    invented = set(made_up)
    for digits in (4, 8, 36):
        ends = (_UUID.search(one) for one in member_ids)
        names = [
            one if end is None else one[: end.start() + 1 + digits]
            for one, end in zip(member_ids, ends, strict=True)
        ]
        if len(set(names)) == len(member_ids):
            break
    return {
        member_id: name + "*" * (member_id in invented)
        for member_id, name in zip(member_ids, names, strict=True)
    }


def member_names(
    client_ids: Mapping[str, str | None], made_up: Iterable[str] = ()
) -> dict[str, str]:
    """Returns member id -> short name, from member id -> client id; commands accept these names.

    A member of a group that the broker assigns chooses a bare UUID as its id. Its short name begins
    with its client id, unless two names would then be equal.
    """
    from kafka_rebalance.plans.changes.short_names import own_short_name

    made_up = set(made_up)
    names = short_names(client_ids, made_up)
    own = {id_: own_short_name(client_id, id_) for id_, client_id in client_ids.items()}
    counts = Counter(own.values())
    for member_id, name in own.items():
        if name is not None and counts[name] == 1:
            names[member_id] = name + "*" * (member_id in made_up)
    return names


def in_words(names: Sequence[str]) -> str:
    """Returns names as a list in a sentence: "a, b and c"."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def shortened(text: str, names: Mapping[str, str]) -> str:
    for member_id, name in names.items():
        text = text.replace(member_id, name)
    return text


def cut(text: str, width: int) -> str:
    """Returns the escaped text in at most `width` characters; a longer one loses its middle."""
    text = shown(text)
    if len(text) <= width:
        return text
    head = (width - 1) // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"


def partitions_text(partitions: "Sequence[TopicPartition]", most: int | None = None) -> str:
    """Returns text such as `orders[0-3, 7] refunds-1`, cut to at most `most` characters.

    A single partition, and a single task (`0_1`), is written as Kafka writes it.
    """
    parts = []
    for topic, run in groupby(sorted(partitions), key=lambda tp: tp.topic):
        first, *more = (tp.partition for tp in run)
        one = f"{topic}{'_' if topic.isdigit() else '-'}{first}"
        parts.append(f"{topic}[{runs([first, *more])}]" if more else one)
    text = shown(" ".join(parts))
    if most is None or len(text) <= most:
        return text
    note = f" … {len(partitions)} in all"
    return text[: max(0, most - len(note))].rstrip(" ,-[") + note


def runs(numbers: Iterable[int]) -> str:
    """Returns `0-2, 5` for 0, 1, 2, 5."""
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in found)


def counted(number: int, noun: str) -> str:
    """Returns `1 member` or `2 members`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
