# SPDX-License-Identifier: Apache-2.0
"""Values of a scenario's file, each checked where it stands.

Errors: GroupError with the field's path, what is wrong with it, and what it should be.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, TypeVar, get_type_hints

from kafka_rebalance.errors import GroupError
from kafka_rebalance.tracing.text import milliseconds

T = TypeVar("T")

_LONGEST_MS = 2**31 - 1  # Kafka's settings are int32
_MOST = 2**31 - 1
_NUMBER = re.compile(r"[0-9.]+")


def known(path: str, said: Mapping[str, Any], names: Sequence[str]) -> None:
    """Nothing but these keys."""
    for key in said:
        if key not in names:
            where = f"{path}.{key}" if path else key
            raise GroupError(where, f"not known; known: {', '.join(names)}")


def table(path: str, said: Any) -> Mapping[str, Any]:
    """A table."""
    if not isinstance(said, dict):
        raise GroupError(path, f"{said!r} is no table")
    return said


def tables(path: str, said: Any) -> list[Mapping[str, Any]]:
    """An array of tables: `[[member]]`."""
    if not isinstance(said, list):
        raise GroupError(path, f"is one table; write [[{path}]], once for each")
    return [table(f"{path}[{place}]", one) for place, one in enumerate(said)]


def text(path: str, said: Any) -> str:
    """A text, not empty."""
    if not isinstance(said, str):
        raise GroupError(path, f"{said!r} is no text; quote it")
    if not said:
        raise GroupError(path, "is empty")
    return said


def flag(path: str, said: Any) -> bool:
    """True or false."""
    if not isinstance(said, bool):
        raise GroupError(path, f"{said!r} is neither true nor false")
    return said


def texts(path: str, said: Any) -> tuple[str, ...]:
    """A list of texts."""
    if not isinstance(said, list):
        raise GroupError(path, f"{said!r} is no list of texts")
    return tuple(text(f"{path}[{place}]", one) for place, one in enumerate(said))


def whole(path: str, said: Any, least: int = 0, most: int = _MOST) -> int:
    """A whole number within bounds."""
    if not isinstance(said, int) or isinstance(said, bool):
        raise GroupError(path, f"{said!r} is no whole number")
    if not least <= said <= most:
        raise GroupError(path, f"{said} is not within {least} to {most}")
    return said


def lists(path: str, said: Any) -> tuple[tuple[str, ...], ...]:
    """A list of lists of texts, not empty."""
    if not isinstance(said, list) or not said:
        raise GroupError(path, f"{said!r} is no list of lists of texts")
    return tuple(texts(f"{path}[{place}]", one) for place, one in enumerate(said))


def ms(path: str, said: Any) -> int:
    """A duration, in ms; a number alone could be of any unit, and is refused."""
    is_number = isinstance(said, int | float) and not isinstance(said, bool)
    if is_number or (isinstance(said, str) and _NUMBER.fullmatch(said)):
        raise GroupError(path, f'{said!r} has no unit; write "{said}ms", "{said}s", "{said}m" …')
    found = milliseconds(said) if isinstance(said, str) else None
    if found is None:
        raise GroupError(path, f"{said!r} is no duration; 250ms, 3s, 5m and 1h are")
    if found > _LONGEST_MS:
        raise GroupError(path, f"{said} is longer than {_LONGEST_MS} ms")
    return found


def settings(path: str, said: Mapping[str, Any], of: type) -> dict[str, Any]:
    """Settings by the names of a dataclass; durations without their `_ms`."""
    types = get_type_hints(of)
    names = [one.name for one in fields(of)]
    found = {}
    for key, value in said.items():
        name = f"{key}_ms" if f"{key}_ms" in names else key
        if name not in names:
            there = ", ".join(sorted(one.removesuffix("_ms") for one in names))
            raise GroupError(f"{path}.{key}", f"not known; known: {there}")
        found[name] = _typed(f"{path}.{key}", value, name, types[name])
    return found


def _typed(path: str, said: Any, name: str, kind: Any) -> Any:
    if name.endswith("_ms"):
        return ms(path, said)
    if kind is bool:
        return flag(path, said)
    if kind is int:
        return whole(path, said)
    if kind is float:
        if isinstance(said, bool) or not isinstance(said, int | float) or not 0 <= said < 1e12:
            raise GroupError(path, f"{said!r} is no number from 0 on")
        return float(said)
    return texts(path, said) if kind == tuple[str, ...] else text(path, said)


def build(path: str, of: type[T], said: Mapping[str, Any]) -> T:
    """An object of these settings; what it refuses is told with its path."""
    for one in fields(of):  # type: ignore[arg-type]
        if one.default is MISSING and one.default_factory is MISSING and one.name not in said:
            raise GroupError(f"{path}.{one.name}", "is missing")
    try:
        return of(**said)
    except GroupError as error:
        where = error.path.removesuffix("_ms")
        raise GroupError(f"{path}.{where}", error.problem) from None
