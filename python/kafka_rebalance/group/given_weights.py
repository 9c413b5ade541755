# SPDX-License-Identifier: Apache-2.0
"""Weights and capacities that come from a file or a measurement, not from a group's line.

Each line of a file holds one weight or one capacity, as JSON or as words separated by spaces, tabs
or commas:

    orders 3 1200                                          orders,3,1200
    {"topic": "orders", "partition": 3, "weight": 1200}    the weight of one partition
    {"topic": "orders", "weight": 900}                     the weight of partitions without a line
    {"client_id": "big-*", "capacity": 2}                  or `member_id`; in words: big-* 2

Blank lines, a line of column names, and lines that begin with # are ignored. The more specific line
wins: a partition's line over its topic's, an id over a pattern (as a shell's patterns of file
names), a longer pattern over a shorter one. A number in the file replaces the one in the group; the
group's other numbers stay.
"""

from collections.abc import Iterable
from dataclasses import field, replace
from fnmatch import fnmatchcase
from typing import Any, Literal

from kafka_rebalance.errors import GroupError, did_you_mean
from kafka_rebalance.frozen import Mutable

from .contract import parse
from .field_paths import integer
from .group_fields import CAPACITY, WEIGHT
from .model import MAX_PARTITIONS, Member, Topic, quoted
from .spec import GroupSpec

Kind = Literal["weight", "capacity"]
_FORMS = {
    "weight": 'TOPIC PARTITION WEIGHT, or {"topic": "orders", "partition": 3, "weight": 1200}',
    "capacity": 'CLIENT CAPACITY, or {"client_id": "big-*", "capacity": 2}',
}
_HEADS = ("topic", "partition", "weight"), ("client_id", "capacity"), ("member_id", "capacity")
_MEMBER_KEYS = ("member_id", "client_id")
_Key = tuple[str, int | None] | tuple[str, str]


class GivenWeights(Mutable):
    """Weights by (topic, partition), and capacities of members by (field, pattern). Partition None
    means each other partition of the topic; the field "" means that the pattern may match any id of
    a member.
    """

    weights: dict[tuple[str, int | None], float] = field(default_factory=dict)
    capacities: dict[tuple[str, str], float] = field(default_factory=dict)

    def topics(self) -> list[str]:
        return list(dict.fromkeys(topic for topic, _ in self.weights))

    def put_in(self, group: GroupSpec) -> GroupSpec:
        """Returns the group with these weights and capacities."""
        topics = tuple(map(self._topic, group.topics))
        members = tuple(
            replace(one, capacity=self._capacity(one)) if self.capacities else one
            for one in group.members
        )
        return group.edited(topics=topics, members=members)

    def _topic(self, topic: Topic) -> Topic:
        own = topic.weights or (None,) * topic.partitions
        every = self.weights.get((topic.name, None))
        weights = tuple(
            self.weights.get((topic.name, p), weight if every is None else every)
            for p, weight in enumerate(own)
        )
        return topic if weights == own else replace(topic, weights=weights)

    def _capacity(self, member: Member) -> float | None:
        ids = {key: getattr(member, key) for key in (*_MEMBER_KEYS, "group_instance_id")}
        fits = [
            (pattern in ids.values(), len(pattern), capacity)
            for (key, pattern), capacity in self.capacities.items()
            if any(
                one is not None and fnmatchcase(one, pattern)
                for name, one in ids.items()
                if key in ("", name)
            )
        ]
        return max(fits)[2] if fits else member.capacity


def read_weights(lines: Iterable[str], kind: Kind, name: str) -> GivenWeights:
    """Reads the lines of the file `name`, all with numbers of one kind.

    Errors   GroupError at `NAME line N` for a line that cannot be read, or repeats another line.
    """
    found, first = GivenWeights(), dict[_Key, int]()
    into: dict[Any, float] = found.weights if kind == "weight" else found.capacities
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#") or tuple(text.replace(",", " ").split()) in _HEADS:
            continue
        at = f"{name} line {number}"
        key, value = _json(text, kind, at) if text[0] == "{" else _words(text, kind, at)
        if key in first:
            raise GroupError(at, f"says again what line {first[key]} says; leave one of them out")
        first[key] = number
        into[key] = (WEIGHT if kind == "weight" else CAPACITY).read(value, f"{at}.{kind}")
    return found


def _json(text: str, kind: Kind, at: str) -> tuple[_Key, Any]:
    try:
        row = parse(text)
    except GroupError as error:
        raise GroupError(at, error.problem) from None
    keys = ("topic", "partition", "weight") if kind == "weight" else (*_MEMBER_KEYS, "capacity")
    for key in row:
        if key not in keys:
            raise GroupError(f"{at}.{key}", f"not a field here{did_you_mean(key, keys)}")
    names = [key for key in keys[: 1 if kind == "weight" else 2] if key in row]
    if kind not in row or len(names) != 1 or not isinstance(row[names[0]], str):
        raise GroupError(at, f"give {_FORMS[kind]}")
    if kind == "capacity":
        return (names[0], row[names[0]]), row[kind]
    partition = row.get("partition")
    if partition is not None:
        integer(partition, f"{at}.partition", "partition", 0, MAX_PARTITIONS)
    return (row["topic"], partition), row[kind]


def _words(text: str, kind: Kind, at: str) -> tuple[_Key, Any]:
    words = [one.strip() for one in text.split(",")] if "," in text else text.split()
    try:
        number = float(words[-1])
        if kind == "capacity" and len(words) == 2:
            return ("", words[0]), number
        if kind == "weight" and len(words) == 2:
            return (words[0], None), number
        if kind == "weight" and len(words) == 3 and words[1].isascii() and words[1].isdigit():
            return (words[0], int(words[1])), number
    except ValueError:
        pass
    raise GroupError(at, f"{quoted(text)} is not {_FORMS[kind]}")
