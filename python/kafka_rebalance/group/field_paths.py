# SPDX-License-Identifier: Apache-2.0
"""Reads fields of parsed JSON, and checks their types; errors name the field's path."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from kafka_rebalance.errors import GroupError

MAX_INT32 = 2**31 - 1

_T = TypeVar("_T")


def path(at: str, name: str) -> str:
    """Returns the path of a field; `at` is the path of its object, "" for the whole line."""
    return f"{at}.{name}" if at else name


def required(fields: Mapping[str, Any], name: str, at: str) -> Any:
    """Returns the value of a required field; null counts as missing."""
    value = fields.get(name)
    if value is None:
        raise GroupError(path(at, name), "missing")
    return value


def string(fields: Mapping[str, Any], name: str, at: str) -> str:
    return text(required(fields, name, at), path(at, name))


def flag(fields: Mapping[str, Any], name: str, at: str) -> bool:
    """Returns the value of a field that is true or false; an absent field is false."""
    value = fields.get(name)
    if value is not None and not isinstance(value, bool):
        raise GroupError(path(at, name), f"{kind(value)} is not true or false")
    return bool(value)


def each(
    fields: Mapping[str, Any], name: str, at: str, item: Callable[[Any, str], _T]
) -> tuple[_T, ...]:
    """Returns the entries of the required list `name`, each as `item(value, path)` returns it."""
    place = path(at, name)
    values = array(required(fields, name, at), place)
    return tuple(item(value, f"{place}[{i}]") for i, value in enumerate(values))


def object_(value: Any, at: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise GroupError(at, f"{kind(value)} is not an object")
    return dict(value)


def array(value: Any, at: str) -> list[Any] | tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise GroupError(at, f"{kind(value)} is not a list")
    return value


def objects(values: Any, at: str, expected: type, example: str) -> Sequence[Any]:
    """Returns `values`. Errors: GroupError, with `example`, for an entry of another type."""
    for i, value in enumerate(list_or_tuple(values, at)):
        if not isinstance(value, expected):
            raise wrong(value, f"{at}[{i}]", expected.__name__, example)
    return values  # type: ignore[no-any-return]


def list_or_tuple(values: Any, at: str) -> Sequence[Any]:
    """Returns `values` if they are a list or a tuple. Errors: GroupError."""
    if not isinstance(values, list | tuple):
        what = f"{values!r} is a string" if isinstance(values, str) else of_python(values)
        raise GroupError(at, f"{what}, not a tuple; give a tuple")
    return values


def wrong(value: Any, at: str, noun: str, example: str) -> GroupError:
    """Returns the error for a wrong value from Python code; `example` is code for a right one."""
    return GroupError(at, f"{of_python(value)} is not a {noun}; give {example}")


def of_python(value: Any) -> str:
    """Returns a value's type in Python's words, such as "a tuple"; `kind` returns JSON's words."""
    if isinstance(value, tuple):
        return "a tuple"
    return "None" if value is None else kind(value)


def text(value: Any, at: str) -> str:
    if not isinstance(value, str):
        raise GroupError(at, f"{kind(value)} is not a string")
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise GroupError(at, "half of a surrogate pair is not text") from None
    return value


def integer(value: Any, at: str, noun: str, least: int = 0, most: int = MAX_INT32) -> int:
    """Returns the value if it is a whole number from `least` to `most`. Errors: GroupError."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise GroupError(at, f"{kind(value)} is not a {noun}")
    if not least <= value <= most:
        raise GroupError(at, f"{value} is not a {noun} from {least} to {most}")
    return value


def kind(value: Any) -> str:
    """Returns the JSON type of a value, in words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, int):
        return "a number"
    if isinstance(value, float):
        return "a number that is not whole"
    if isinstance(value, Mapping):
        return "an object"
    return "a list" if isinstance(value, list | tuple) else a_type(value)


def a_type(value: object) -> str:
    """Returns the name of a value's type with its article; for None, returns "None".

    >>> a_type(5), a_type(b""), a_type(None)
    ('an int', 'a bytes', 'None')
    """
    if value is None:
        return "None"
    return an(type(value).__name__)


def an(name: str) -> str:
    """Returns a name with its article.

    >>> an("int"), an("str")
    ('an int', 'a str')
    """
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


def each_of(values: Any, at: str, expected: type[_T], how: str) -> Iterator[_T]:
    """Yields the values after checking each; `how`, the end of an error's text, shows how to make a
    right value.

    Errors: TypeError if `values` is not iterable, or at the first value that is not an `expected`.
    """
    if not isinstance(values, Iterable):
        raise TypeError(f"{at}: {a_type(values)} is not a list")
    for i, value in enumerate(values):
        if not isinstance(value, expected):
            wrong = f"{a_type(value)} is not {an(expected.__name__)}"
            raise TypeError(f"{at}[{i}]: {wrong}; {how}")
        yield value
