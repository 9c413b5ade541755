# SPDX-License-Identifier: Apache-2.0
"""Checks the types in a scenario's TOML file; errors name the path and the expected form."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, TypeVar, get_type_hints

from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.declared_types import milliseconds

T = TypeVar("T")

_LONGEST_MS = 2**31 - 1  # Kafka's timeouts are int32
_MOST = 2**31 - 1
_NUMBER = re.compile(r"[0-9.]+")


def known(path: str, value: Mapping[str, Any], names: Sequence[str]) -> None:
    """Raises a GroupError if a table has a key that is not in `names`."""
    for key in value:
        if key not in names:
            raise _unknown(f"{path}.{key}" if path else key, names)


def _unknown(path: str, names: Iterable[str]) -> GroupError:
    name = path.rpartition(".")[2]
    written = name.removesuffix("_ms")
    if written != name and written in names:
        return GroupError(path, f'is written {written}, with a unit: {written} = "250ms"')
    return GroupError(path, f"not known; known: {', '.join(names)}")


def table(path: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise GroupError(path, f"{value!r} is not a table")
    return value


def tables(path: str, value: Any) -> list[Mapping[str, Any]]:
    """Returns the tables of an array such as `[[member]]`."""
    if not isinstance(value, list):
        raise GroupError(path, f"is one table; write [[{path}]], once for each")
    return [table(f"{path}[{place}]", one) for place, one in enumerate(value)]


def text(path: str, value: Any) -> str:
    if not isinstance(value, str):
        raise GroupError(path, f"{value!r} is not a string; quote it")
    if not value:
        raise GroupError(path, "is empty")
    return value


def flag(path: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise GroupError(path, f"{value!r} is neither true nor false")
    return value


def texts(path: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise GroupError(path, f"{value!r} is not a list of strings")
    return tuple(text(f"{path}[{place}]", one) for place, one in enumerate(value))


def whole(path: str, value: Any, least: int = 0, most: int = _MOST) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise GroupError(path, f"{value!r} is not a whole number")
    if not least <= value <= most:
        raise GroupError(path, f"{value} is not within {least} to {most}")
    return value


def lists(path: str, value: Any) -> tuple[tuple[str, ...], ...]:
    if not isinstance(value, list) or not value:
        raise GroupError(path, f"{value!r} is not a list of lists of strings")
    return tuple(texts(f"{path}[{place}]", one) for place, one in enumerate(value))


def ms(path: str, value: Any) -> int:
    """Returns a duration in ms; a number without a unit is refused."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number or (isinstance(value, str) and _NUMBER.fullmatch(value)):
        raise GroupError(
            path, f'{value!r} has no unit; write "{value}ms", "{value}s", "{value}m" …'
        )
    found = milliseconds(value) if isinstance(value, str) else None
    if found is None:
        raise GroupError(path, f"{value!r} is not a duration; 250ms, 3s, 5m and 1h are")
    if found > _LONGEST_MS:
        raise GroupError(path, f"{value} is longer than {_LONGEST_MS} ms")
    return found


def settings(
    path: str, entries: Mapping[str, Any], of: type, others: Iterable[str] = ()
) -> dict[str, Any]:
    """Returns values for the fields of a dataclass; the file's names of durations lack `_ms`.

    `others` are keys of the same table that are read elsewhere; errors list them, too.
    """
    types = get_type_hints(of)
    field_of = {one.name.removesuffix("_ms"): one.name for one in fields(of)}
    found = {}
    for key, value in entries.items():
        if key not in field_of:
            raise _unknown(f"{path}.{key}", sorted({*field_of, *others}))
        name = field_of[key]
        found[name] = _typed(f"{path}.{key}", value, name, types[name])
    return found


def _typed(path: str, value: Any, name: str, kind: Any) -> Any:
    if name.endswith("_ms"):
        return ms(path, value)
    if kind is bool:
        return flag(path, value)
    if kind is int:
        return whole(path, value)
    if kind is float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
            raise GroupError(path, f"{value!r} is not a number from 0 on")
        return float(value)
    if name == "racks":
        return lists(path, value)
    return texts(path, value) if kind == tuple[str, ...] else text(path, value)


def build(path: str, of: type[T], value: Mapping[str, Any]) -> T:
    """Makes an object from these settings; the paths of its GroupErrors begin with `path`.

    An empty `path` means the whole file.
    """
    prefix = f"{path}." if path else ""
    for one in fields(of):  # type: ignore[arg-type]
        if one.default is MISSING and one.default_factory is MISSING and one.name not in value:
            raise GroupError(f"{prefix}{one.name}", "is missing")
    try:
        return of(**value)
    except GroupError as error:
        where = error.path.removesuffix("_ms")
        raise GroupError(f"{prefix}{where}", error.problem) from None
