# SPDX-License-Identifier: Apache-2.0
"""Finds the fields of a contract line whose names nearly equal one of the contract's.

The contract allows other fields. But with `ownd` in place of `owned_partitions`, a group would be
planned as if its members owned nothing.
"""

import json
import re
import warnings
from collections.abc import Iterator, Mapping
from functools import lru_cache
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
_END = 2_000  # a name that is wrong in one member is wrong in the others, too


class MisspeltField(UserWarning):
    """A contract line has a field that is ignored, and resembles one of the contract."""


def warn(line: str | bytes | Mapping[str, Any]) -> None:
    """Warns of misspelt fields in a line that is correct otherwise; reads a text's ends only."""
    if isinstance(line, Mapping):
        names = {*line}.union(*(line.get("topics") or ()), *(line.get("members") or ()))
    else:
        ends = (line[:_END], line[-_END:])
        texts = (one if isinstance(one, str) else one.decode(errors="replace") for one in ends)
        names = {name for one in texts for name in _KEY.findall(one)}
    if not names <= _EVERY:
        value = dict(line) if isinstance(line, Mapping) else json.loads(line)
        for text in {each[:2]: each[2] for each in reversed([*misspelt(value)])}.values():
            warnings.warn(text, MisspeltField, stacklevel=3)


def misspelt(value: Any) -> Iterator[tuple[str, str, str]]:
    """Yields the list of a misspelt field, its name, and a sentence with its path."""
    for place, path, fields in _objects(value):
        for name in fields.keys() - FIELDS[place]:
            if meant := _field(name, place):
                problem = f"not a field of the contract, so it is ignored; is it {meant}?"
                yield place, name, f"{path}{name}: {problem}"


@lru_cache(1_000)
def _field(name: str, place: str) -> str | None:
    """Returns the known field that resembles `name`, or whose first word does (`ownd`), or None."""
    known = FIELDS[place]
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
