# SPDX-License-Identifier: Apache-2.0
"""The base class of all changes, and `apply`, which edits a group without any rebalance.

A change has one or more events: the bounce of a dynamic member can have two, leaving and coming
back. After each event, a live group rebalances until it has settled (`plans/rounds.py`). A change
that does not fit the group raises a GroupError at `change`: NotAffected if the group lacks its
topic, member, client or rack, or already has its assignor. Mirror: `src/plans/changes/change.rs`.
"""

import re
from abc import ABC, abstractmethod
from dataclasses import fields
from typing import Any, ClassVar, NamedTuple, Self

from kafka_rebalance.group.declared_types import fits
from kafka_rebalance.group.field_paths import a_type
from kafka_rebalance.group.model import quoted
from kafka_rebalance.group.spec import GroupSpec, require_group

from .edits import GroupEvent, error
from .made_up import MadeUp

_COUNT = re.compile(r"[0-9]{1,9}", re.ASCII)


class Verb(NamedTuple):
    """The first word of a change's text, and its option; `default` replaces a missing value."""

    name: str
    metavar: str
    help: str
    default: str | None = None


class Change(ABC):
    """A change to a group. `str(change)` is its text for the command line.

    This text parses to an equal change, unless a name in it contains a comma or is `*`.
    """

    __slots__ = ()

    VERBS: ClassVar[tuple[Verb, ...]]

    def __post_init__(self) -> None:
        check_fields(self)

    @classmethod
    @abstractmethod
    def parse(cls, verb: str, value: str) -> Self:
        """Parses the value of one of the VERBS. Errors: GroupError at `change`."""

    @abstractmethod
    def events(self, group: GroupSpec) -> list[GroupEvent]:
        """Returns the events of this change. Errors: GroupError at `change`, NotAffected."""

    def in_words(self) -> str:
        """Returns the change as the subject of a sentence, such as `adding 2 members`."""
        return str(self)

    def renamed(self, ids: MadeUp) -> Self:
        """Returns this change for a draw (a play of the plan with other made-up names), with the
        names that this draw made up.

        A plan calls this before it plays the change. The default returns the change itself.
        """
        del ids
        return self


def check_fields(change: Any) -> None:
    """Raises a GroupError at `change` for the first field with a value of a wrong type, if any."""
    for one in fields(change):
        value = getattr(change, one.name)
        if one.type in _TYPES and not fits(value, one.type):
            name = f"{type(change).__name__}.{one.name}"
            raise error(f"{name}: {value!r} is not {_TYPES[one.type]}")


def check_least(number: int, least: int, noun: str) -> None:
    """Raises a GroupError at `change` if `number` is less than `least`."""
    if number < least:
        raise error(f"{number} is not a number of {noun} from {least} on")


_TYPES: dict[Any, str] = {
    int: "an int",
    int | None: "an int",
    str: "a str",
    str | None: "a str",
    bool | None: "a bool",
    tuple[str, ...]: "a tuple of str",
    tuple[tuple[str, int], ...]: "a tuple of pairs (topic, partitions)",
}


def apply(change: Change, group: GroupSpec) -> GroupSpec:
    """Returns the group after a change, before any rebalance: members keep their partitions."""
    require_group(group)
    if not isinstance(change, Change):
        raise TypeError(f"change: {a_type(change)} is not a change; change_from_text reads one")
    ids = MadeUp(group.group_id)
    for event in change.events(group):
        group = event.edit(group, ids).group
    return group


# Values of verbs ----------------------------------------------------------------------------------


def some(value: str) -> str:
    """Returns the value of a change's text. Errors: GroupError at `change` if it is empty."""
    if not value:
        raise error("a value is missing, as in add-members=2")
    return value


def count(value: str, noun: str) -> int:
    if not _COUNT.fullmatch(value):
        raise error(f"{quoted(value)} is not a number of {noun}")
    return int(value)


def topic_count(value: str) -> tuple[str, int]:
    """Parses TOPIC=N."""
    topic, separator, number = value.rpartition("=")
    if not separator or not topic:
        raise error(f"{quoted(value)} is not TOPIC=N")
    return topic, count(number, "partitions")


def topic_names(value: str) -> tuple[str, ...]:
    """Parses TOPIC,TOPIC,…"""
    topics = tuple(value.split(","))
    if not all(topics):
        raise error(f"{quoted(value)} is not TOPIC,TOPIC,…")
    return topics
