# SPDX-License-Identifier: Apache-2.0
"""Checks that values which were read from JSON have the types of their fields."""

from collections.abc import Mapping
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints


def check_fields(value: Any) -> None:
    """Checks all fields of a dataclass. Errors: TypeError with the name of a wrong field."""
    for name, hint in _hints(value.__class__).items():
        if not fits(getattr(value, name), hint):
            raise TypeError(f"{name}: {getattr(value, name)!r} is not {_name(hint)}")


def fits(value: Any, hint: Any) -> bool:
    """Returns whether a value has a type: a class, a union, or a tuple or mapping of such."""
    inner = get_args(hint)
    if isinstance(hint, UnionType):
        return any(fits(value, one) for one in inner)
    if get_origin(hint) is tuple:
        if not isinstance(value, tuple):
            return False
        types = inner[:1] * len(value) if inner[-1] is ... else inner
        return len(value) == len(types) and all(map(fits, value, types))
    if get_origin(hint) is Mapping:
        return isinstance(value, Mapping) and all(
            fits(key, inner[0]) and fits(one, inner[1]) for key, one in value.items()
        )
    if not isinstance(value, hint) or (hint is int and isinstance(value, bool)):
        return False
    return all(fits(getattr(value, name), one) for name, one in _hints(hint).items())


@cache
def _hints(kind: type) -> dict[str, Any]:
    """Returns the types of the fields of a dataclass or a NamedTuple; empty for other classes."""
    names = getattr(kind, "__dataclass_fields__", getattr(kind, "_fields", ()))
    return {name: hint for name, hint in get_type_hints(kind).items() if name in names}


def _name(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)
