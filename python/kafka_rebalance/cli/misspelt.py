# SPDX-License-Identifier: Apache-2.0
"""Reports fields of contract lines whose names are nearly those of the contract.

The contract allows other fields, so they are no error. But a misspelt one is not read: a group
with `ownd` in place of `owned_partitions` would be planned as if its members owned nothing.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from kafka_rebalance.group.group_fields import GROUP, MEMBER, TOPIC
from kafka_rebalance.report.text.sentences import print_note

_OTHERS = {
    "": "cluster error changes assignment_epoch",
    "topics": "leaderless",
    "members": "assigned_partitions topic_regex is_classic target_active_tasks "
    "target_standby_tasks client_tags",
}
FIELDS = {
    place: [*(one.name for one in record.in_lines()), *_OTHERS[place].split()]
    for place, record in (("", GROUP), ("topics", TOPIC), ("members", MEMBER))
}
"""The fields of docs/contract.md, those for people too, by the list that contains them."""


@dataclass(slots=True)
class Misspelt:
    """Reports each misspelt name once on standard error."""

    seen: set[tuple[str, str]] = field(default_factory=set)

    def note(self, number: int, value: Any) -> None:
        """Examines the value of line `number`, which need not be a valid group."""
        for place, path, fields in _objects(value):
            for name in fields.keys() - FIELDS[place]:
                if (place, name) not in self.seen:
                    self.seen.add((place, name))
                    if meant := nearest(name, FIELDS[place]):
                        problem = f"not a field of the contract, so it is ignored; is it {meant}?"
                        print_note(f"line {number}: {path}{name}: {problem}")


def nearest(name: str, known: list[str]) -> str | None:
    """Returns the known name that is nearly `name`, or whose first word is (`ownd`)."""
    words = {one.partition("_")[0]: one for one in reversed(known)}
    found = get_close_matches(name, [*known, *words], n=1, cutoff=0.75)
    return words.get(found[0], found[0]) if found else None


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
