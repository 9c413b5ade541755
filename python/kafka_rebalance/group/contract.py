# SPDX-License-Identifier: Apache-2.0
"""Reads and writes contract lines: JSON lines with one group each (docs/contract.md).

Unknown fields are ignored. `src/group/contract.rs` reads the lines of bulk calls, with equal
checks, order and errors; only the JSON parser's errors differ.
"""

import json
import math
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from kafka_rebalance.errors import GroupError

from .field_paths import a_type, object_
from .group_fields import GROUP, TOPIC
from .model import Topic, quoted, uuid_of

MIN_INT64, MAX_UINT64 = -(2**63), 2**64 - 1

_PAIR = "u[dD][89abAB]..\\\\u[dD][c-fC-F].."
_ESCAPE = re.compile(rf"\\(?:{_PAIR}|(u[dD][89a-fA-F]..)|.)")


def parse(line: str | bytes) -> Any:
    """Returns the line's JSON value. Errors: GroupError at `line` if it is not JSON in UTF-8."""
    try:
        text = line.decode("utf-8") if isinstance(line, bytes) else line
        if not isinstance(text, str):
            raise GroupError("line", f"{a_type(line)} is not text")
        text.encode("utf-8")
        value = json.loads(
            text, parse_int=_whole, parse_float=_fraction, parse_constant=_no_constant
        )
        if "\\u" in text:
            _no_half_pairs(text)
    except UnicodeError as error:
        raise GroupError("line", f"not UTF-8: {error}") from None
    except (ValueError, RecursionError) as error:  # RecursionError: lists are nested too deeply
        raise GroupError("line", f"not JSON: {error}") from None
    return value


# With the next four functions, Python's parser reads numbers and strings as the core's parser does.


def _whole(text: str) -> int | float:
    """Returns an integer, or a float for -0 and for a number that does not fit in 64 bits."""
    if len(text) < 19:
        return int(text) if text != "-0" else -0.0
    if len(text) > 20 or not MIN_INT64 <= int(text) <= MAX_UINT64:
        return _fraction(text)
    return int(text)


def _fraction(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text[:20]}… is too large a number")
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _no_half_pairs(text: str) -> None:
    """Raises a ValueError if an escape in `text` (valid JSON) is half of a surrogate pair."""
    for escape in _ESCAPE.finditer(text):
        if escape[1]:
            raise ValueError(f"{escape[0]} is half of a surrogate pair")


def read(value: Any) -> dict[str, Any]:
    """Returns the fields of a `GroupSpec`, from a contract line that is already parsed."""
    fields = object_(value, "line")
    _refuse_error_line(fields)
    group = GROUP.values(fields, "")
    group["topics"] += _deleted_topics(fields["members"], group["topics"])
    return group


def _refuse_error_line(fields: dict[str, Any]) -> None:
    """Raises GroupError with the error in the line, if an earlier step of a pipeline wrote one."""
    error = fields.get("error")
    if isinstance(error, str) and "topics" not in fields:
        place, separator, problem = error.partition(": ")
        raise GroupError(place, problem) if separator else GroupError("error", error)


def topic(value: Any, at: str) -> Topic:
    """Returns a topic from its JSON object. Errors: GroupError with the field's path."""
    read: Topic = TOPIC.read(value, at)
    return read


def _deleted_topics(members: list[dict[str, Any]], topics: tuple[Topic, ...]) -> tuple[Topic, ...]:
    """Returns the deleted topics, which occur only in owned partitions, with the id given there. A
    topic without an id is left out. Errors: GroupError for a second id of a topic.
    """
    # If two topics have one name, the first one counts, as in the core.
    ids = {topic.name: topic.topic_id for topic in reversed(topics)}
    for i, member in enumerate(members):
        for e, owned in enumerate(member.get("owned_partitions") or ()):
            topic, topic_id = owned["topic"], owned.get("topic_id")
            if topic_id is None:
                continue
            at = f"members[{i}].owned_partitions[{e}].topic_id"
            if topic not in ids:
                check_topic_id(topic_id, at)
                ids[topic] = topic_id
            if ids[topic] != topic_id:
                raise GroupError(
                    at,
                    f"{quoted(topic_id)} is not the id that {quoted(topic)} has elsewhere; "
                    "give a deleted topic another name",
                )
    found = list(ids.items())[len(topics) :]
    return tuple(Topic(name, 0, topic_id=topic_id) for name, topic_id in found)


def check_topic_id(topic_id: str, at: str) -> None:
    try:
        uuid_of(topic_id)
    except ValueError as error:
        raise GroupError(at, str(error)) from None


def check_new(seen: dict[str, str], value: str, at: str, field: str) -> None:
    """Adds a name or an id to `seen` (value -> path of its object). Errors: GroupError if it is
    there already.
    """
    if (first := seen.setdefault(value, at)) != at:
        noun = field.rpartition("_")[2]
        raise GroupError(f"{at}.{field}", f"{quoted(value)} is already the {noun} of {first}")


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def dumps(line: Mapping[str, Any]) -> str:
    """Returns compact JSON, byte for byte as the Rust core writes it."""
    return _ENCODER.encode(line)
