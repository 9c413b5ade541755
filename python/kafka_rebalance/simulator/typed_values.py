# SPDX-License-Identifier: Apache-2.0
"""Checks the types in a scenario's TOML file; errors name the path and the expected form."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, TypeVar, get_origin, get_type_hints

from kafka_rebalance.errors import GroupError, did_you_mean
from kafka_rebalance.group.declared_types import milliseconds

T = TypeVar("T")

_MOST = 2**31 - 1  # Kafka's timeouts are int32
BOUNDS = {"count": (1, 100_000), "tasks": (0, 100_000), "parallel": (1, _MOST)}
"""Field -> its smallest and largest integer; for other fields, 0 is the smallest."""
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
    return GroupError(path, f"not known{did_you_mean(name, names)}; known: {', '.join(names)}")


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


def whole(path: str, value: Any, least: int = 0, most: int = _MOST) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise GroupError(path, f"{value!r} is not a whole number")
    if not least <= value <= most:
        raise GroupError(path, f"{value} is not within {least} to {most}")
    return value


def ms(path: str, value: Any) -> int:
    """Returns a duration in ms. Errors: GroupError, also for a number without a unit."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number or (isinstance(value, str) and _NUMBER.fullmatch(value)):
        raise GroupError(
            path, f'{value!r} has no unit; write "{value}ms", "{value}s", "{value}m" …'
        )
    found = milliseconds(value) if isinstance(value, str) else None
    if found is None:
        raise GroupError(path, f"{value!r} is not a duration; 250ms, 3s, 5m and 1h are")
    if found > _MOST:
        raise GroupError(path, f"{value} is longer than {_MOST} ms")
    return found


def read(path: str, entries: Mapping[str, Any], of: type[T]) -> T:
    """Returns an object of the dataclass `of`, with the values in the table."""
    return build(path, of, *settings(path, entries, of))


def settings(
    path: str, entries: Mapping[str, Any], *kinds: type, without: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Returns, for each of several dataclasses, the values of its fields from one table.

    The file omits `_ms` from names of durations. The table must not have the keys in `without`.
    """
    fields_of = {
        one.name.removesuffix("_ms"): (place, one.name, get_type_hints(of)[one.name])
        for place, of in enumerate(kinds)
        for one in fields(of)
        if one.name not in without
    }
    found: list[dict[str, Any]] = [{} for _ in kinds]
    for key, value in entries.items():
        where = f"{path}.{key}" if path else key
        if key not in fields_of:
            raise _unknown(where, sorted(fields_of))
        place, name, hint = fields_of[key]
        found[place][name] = _typed(where, value, name, hint)
    return found


def _typed(path: str, value: Any, name: str, hint: Any) -> Any:
    if name.endswith("_ms"):
        return ms(path, value)
    if hint is bool:
        if not isinstance(value, bool):
            raise GroupError(path, f"{value!r} is neither true nor false")
        return value
    if hint is int:
        return whole(path, value, *BOUNDS.get(name, ()))
    if hint is float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
            raise GroupError(path, f"{value!r} is not a number from 0 on")
        return float(value)
    if name == "racks":
        if not isinstance(value, list) or not value:
            raise GroupError(path, f"{value!r} is not a list of lists of strings")
        return tuple(_texts(f"{path}[{place}]", one) for place, one in enumerate(value))
    return _texts(path, value) if get_origin(hint) is tuple else text(path, value)


def _texts(path: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise GroupError(path, f"{value!r} is not a list of strings")
    return tuple(text(f"{path}[{place}]", one) for place, one in enumerate(value))


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
