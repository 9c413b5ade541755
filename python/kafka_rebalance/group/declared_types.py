# SPDX-License-Identifier: Apache-2.0
"""Checks that the fields of a dataclass have their declared types, which Python does not check.

This check is too slow for objects as numerous as members; `group_fields.py` checks groups.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from kafka_rebalance.errors import GroupError

from .field_paths import an

_UNITS = {"": 1, "ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|)", re.ASCII)


def check_fields(value: Any, *names: str) -> None:
    """Checks the fields `names` of a dataclass, or all its fields if no name is given.

    Errors: GroupError with the name of the first wrong field.
    """
    hints = field_hints(value.__class__)
    for name in names or hints:
        given, hint = getattr(value, name), hints[name]
        is_plain = given.__class__ is hint and hint in _PLAIN
        if not (is_plain or fits(given, hint)):
            raise GroupError(name, f"{given!r} is not {_named(hint)}")


def check_times(value: Any) -> None:
    """Raises a GroupError with the name of the first field in ms that is less than 0."""
    for name in _times(value.__class__):
        if getattr(value, name) < 0:
            raise GroupError(name, f"{getattr(value, name)} is less than 0")


def milliseconds(text: str) -> int | None:
    """Returns the ms of a string such as `3s` or `250` (ms); None if it is not a duration."""
    found = _DURATION.fullmatch(text)
    return None if found is None else round(float(found[1]) * _UNITS[found[2]])


def fits(value: Any, hint: Any) -> bool:
    """Returns whether a value has the type `hint`: a class, a union, a tuple or a mapping.

    A list is accepted for a tuple, and a whole number for a float.
    """
    return _check_of(hint)(value)


@cache
def _check_of(hint: Any) -> Callable[[Any], bool]:
    """Returns the function by which `fits` checks a type; cached, because many objects of a few
    classes are checked.
    """
    inner: list[Any] = [one if one is ... else _check_of(one) for one in get_args(hint)]
    if isinstance(hint, UnionType):
        return lambda value: any(fit(value) for fit in inner)
    if get_origin(hint) is tuple:
        if inner[-1] is ...:
            return lambda value: isinstance(value, tuple | list) and all(map(inner[0], value))
        return lambda value: (
            isinstance(value, tuple | list)
            and len(value) == len(inner)
            and all(fit(one) for fit, one in zip(inner, value, strict=True))
        )
    if get_origin(hint) is Mapping:
        key, item = inner
        return lambda value: (
            isinstance(value, Mapping) and all(key(k) and item(v) for k, v in value.items())
        )
    if hint in _PLAIN or hint is float:
        kinds = (int, float) if hint is float else hint
        return lambda value: (
            isinstance(value, kinds) and (hint is bool or value.__class__ is not bool)
        )
    return lambda value: (
        isinstance(value, hint)
        and all(fits(getattr(value, name), one) for name, one in field_hints(hint).items())
    )


@cache
def field_hints(kind: type) -> dict[str, Any]:
    """Returns the types of the fields of a dataclass or NamedTuple, by name."""
    names = getattr(kind, "__dataclass_fields__", getattr(kind, "_fields", ()))
    return {name: hint for name, hint in get_type_hints(kind).items() if name in names}


_PLAIN = frozenset((bool, int, str))
"""Types whose values need no further check; most fields have one of these."""


@cache
def _times(kind: type) -> list[str]:
    return [name for name in field_hints(kind) if name.endswith("_ms")]


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
