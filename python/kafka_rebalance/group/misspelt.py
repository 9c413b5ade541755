# SPDX-License-Identifier: Apache-2.0
"""Finds the fields of a contract line whose names nearly equal one of the contract's.

The contract allows other fields. But with `ownd` in place of `owned_partitions`, a group would be
planned as if its members owned nothing.
"""

import re
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from kafka_rebalance.errors import nearest

from .group_fields import GROUP, MEMBER, TOPIC

_OTHERS = {
    "": "cluster error changes assignment_epoch application",
    "topics": "leaderless",
    "members": "assigned_partitions topic_regex is_classic target_active_tasks "
    "target_standby_tasks client_tags",
}
FIELDS = {
    place: [*(one.name for one in record.in_lines()), *_OTHERS[place].split()]
    for place, record in (("", GROUP), ("topics", TOPIC), ("members", MEMBER))
}
"""The fields in docs/contract.md, including those for people only, by the list that holds them."""

_EVERY = frozenset().union(*FIELDS.values(), ("topic", "partition", "partitions"))
_KEY = re.compile(r'"(\w+)"\s*:')
_END = 2_000


def has_unknown(line: str | bytes) -> bool:
    """Returns whether either end of a correct line has a field that is not known."""
    text = line if isinstance(line, str) else line.decode()
    return not _EVERY.issuperset(_KEY.findall(text[:_END]) + _KEY.findall(text[-_END:]))


def warn(line: Mapping[str, Any]) -> None:
    """Warns of misspelt fields in a parsed line that is correct otherwise."""
    if not _EVERY.issuperset({*line}.union(*line["topics"], *line["members"])):
        for problem in misspelt(line, set()):
            warnings.warn(problem, stacklevel=3)


def misspelt(value: Any, seen: set[tuple[str, str]]) -> Iterator[str]:
    """Yields a sentence for each misspelt field that is not in `seen`, and adds it there."""
    for place, path, fields in _objects(value):
        for name in fields.keys() - FIELDS[place]:
            if (place, name) not in seen:
                seen.add((place, name))
                if meant := _field(name, FIELDS[place]):
                    problem = f"not a field of the contract, so it is ignored; is it {meant}?"
                    yield f"{path}{name}: {problem}"


def _field(name: str, known: list[str]) -> str | None:
    """Returns the known field that resembles `name`, or whose first word does (`ownd`), or None."""
    words = {one.partition("_")[0]: one for one in reversed(known)}
    found = nearest(name, [*known, *words])
    return None if found is None else words.get(found, found)


def _objects(value: Any) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yields the group, its topics and its members, each with its key in FIELDS and its path."""
    if not isinstance(value, dict):
        return
    yield "", "", value
    for place in ("topics", "members"):
        each = value.get(place)
        for number, one in enumerate(each if isinstance(each, list) else ()):
            if isinstance(one, dict):
                yield place, f"{place}[{number}].", one
