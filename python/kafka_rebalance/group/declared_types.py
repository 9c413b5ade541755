# SPDX-License-Identifier: Apache-2.0
"""Checks that the fields of a dataclass have their declared types, which Python does not check.

It is too slow for objects that are more numerous than members; `group_fields.py` checks groups.
"""

import re
from collections.abc import Mapping
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from kafka_rebalance.errors import GroupError

from .field_paths import an

_UNITS = {"": 1, "ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|)", re.ASCII)


def check_fields(value: Any, *names: str) -> None:
    """Checks these fields of a dataclass, or all of them if no name is given.

    Errors: GroupError with the name of the first wrong field.
    """
    hints = _hints(value.__class__)
    for name in names or hints:
        given, hint = getattr(value, name), hints[name]
        is_plain = given.__class__ is hint and hint in _PLAIN
        if not (is_plain or fits(given, hint)):
            raise GroupError(name, f"{given!r} is not {_named(hint)}")


def check_times(value: Any) -> None:
    """Raises a GroupError if a field in ms is less than 0; it names the first such field."""
    for name in _times(value.__class__):
        if getattr(value, name) < 0:
            raise GroupError(name, f"{getattr(value, name)} is less than 0")


def milliseconds(text: str) -> int | None:
    """Returns the ms of a string such as `3s` or `250` (ms); None if it is not a duration."""
    found = _DURATION.fullmatch(text)
    return None if found is None else round(float(found[1]) * _UNITS[found[2]])


def fits(value: Any, hint: Any) -> bool:
    """Returns whether a value has type `hint`: a class, a union, or a tuple or mapping of these.

    A list is accepted for a tuple, and a whole number for a float.
    """
    inner = get_args(hint)
    if isinstance(hint, UnionType):
        return any(fits(value, one) for one in inner)
    if get_origin(hint) is tuple:
        if not isinstance(value, tuple | list):
            return False
        types = inner[:1] * len(value) if inner[-1] is ... else inner
        return len(value) == len(types) and all(map(fits, value, types))
    if get_origin(hint) is Mapping:
        return isinstance(value, Mapping) and all(
            fits(key, inner[0]) and fits(one, inner[1]) for key, one in value.items()
        )
    if isinstance(value, bool) and hint is not bool:
        return False
    if hint is float:
        return isinstance(value, int | float)
    if not isinstance(value, hint):
        return False
    return all(fits(getattr(value, name), one) for name, one in _hints(hint).items())


@cache
def _hints(kind: type) -> dict[str, Any]:
    names = getattr(kind, "__dataclass_fields__", getattr(kind, "_fields", ()))
    return {name: hint for name, hint in get_type_hints(kind).items() if name in names}


_PLAIN = frozenset((bool, int, str))
"""The types of most fields: their values need no further check."""


@cache
def _times(kind: type) -> list[str]:
    return [name for name in _hints(kind) if name.endswith("_ms")]


def _named(hint: Any) -> str:
    """Returns a type in words.

    >>> _named(int), _named(tuple[str, ...] | None), _named(Mapping[str, int])
    ('an int', 'a tuple of str or None', 'a mapping of str to int')
    """
    if isinstance(hint, UnionType):
        return " or ".join(map(_named, get_args(hint)))
    if get_args(hint):
        inner = [one for one in get_args(hint) if one is not ...]
        names = [_named(one).removeprefix("a ").removeprefix("an ") for one in inner]
        is_map = get_origin(hint) is Mapping
        return f"a mapping of {names[0]} to {names[1]}" if is_map else f"a tuple of {names[0]}"
    return "None" if hint is type(None) else an(hint.__name__)
