# SPDX-License-Identifier: Apache-2.0
"""Reads and writes contract lines: JSON lines with one group each (docs/contract.md).

This module checks the type and the range of each field; `group/spec.py` checks the whole group.
Errors have the path of the field. Unknown fields are ignored. `src/group/contract.rs` reads the
lines of bulk calls: its checks have the order of this module, and its errors have equal texts,
except for those of the JSON parser.
"""

import json
import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from kafka_rebalance.errors import GroupError

from . import streams
from .field_paths import (
    a_type,
    array,
    each,
    integer,
    object_,
    optional_integer,
    optional_string,
    path,
    required,
    string,
    text,
)
from .model import (
    NEWEST_SUBSCRIPTION,
    USER_DATA,
    Member,
    Topic,
    TopicPartition,
    UserData,
    in_runs,
    quoted,
    unknown_user_data,
    uuid_of,
    wrong_protocol,
)

if TYPE_CHECKING:
    from .spec import GroupSpec

MIN_INT32 = -(2**31)
_AS_SENT = ("subscription_version", "user_data", "user_data_generation_id")
MIN_INT64, MAX_UINT64 = -(2**63), 2**64 - 1

_PAIR = "u[dD][89abAB]..\\\\u[dD][c-fC-F].."
_ESCAPE = re.compile(rf"\\(?:{_PAIR}|(u[dD][89a-fA-F]..)|.)")


def parse(line: str | bytes) -> Any:
    """Returns one JSON value. Errors: GroupError at `line` if the line is not JSON in UTF-8."""
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
    except (ValueError, RecursionError) as error:  # RecursionError: lists in lists, too deep
        raise GroupError("line", f"not JSON: {error}") from None
    return value


# The next four functions let Python read numbers and text as the Rust core's parser does.


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
    """Raises a ValueError if an escape is half of a surrogate pair; `text` is valid JSON."""
    for escape in _ESCAPE.finditer(text):
        if escape[1]:
            raise ValueError(f"{escape[0]} is half of a surrogate pair")


def read(value: Any) -> dict[str, Any]:
    """Returns the fields of a `GroupSpec`, from a contract line that is already parsed."""
    fields = object_(value, "line")
    _refuse_error_line(fields)
    group: dict[str, Any] = {
        "group_id": string(fields, "group_id", ""),
        "generation_id": _generation(fields, ""),
        "assignor": optional_string(fields, "assignor", ""),
        "topics": each(fields, "topics", "", topic),
        "members": each(fields, "members", "", _member),
    }
    group["topics"] += _deleted_topics(fields["members"], group["topics"])
    group |= {name: optional_string(fields, name, "") for name in ("leader_library", "leader")}
    protocol = optional_string(fields, "rebalance_protocol", "")
    check_protocol(protocol, group["assignor"])
    return group | {"rebalance_protocol": protocol} | streams.read_topology(fields)


def check_protocol(protocol: str | None, assignor: str | None) -> None:
    """Raises a GroupError if a group of this assignor cannot have this rebalance protocol."""
    problem = None if protocol is None else wrong_protocol(protocol, assignor)
    if problem is not None:
        raise GroupError("rebalance_protocol", problem)


def _refuse_error_line(fields: dict[str, Any]) -> None:
    """Raises the error that an earlier step of a pipeline wrote in place of the group."""
    error = fields.get("error")
    if isinstance(error, str) and "topics" not in fields:
        place, separator, problem = error.partition(": ")
        raise GroupError(place, problem) if separator else GroupError("error", error)


def topic(value: Any, at: str) -> Topic:
    """Reads a topic: name, partitions, and the optional fields. Errors: GroupError."""
    fields = object_(value, at)
    name = string(fields, "name", at)
    count = integer(required(fields, "partitions", at), f"{at}.partitions", "count")
    return Topic(  # the arguments are read, and so checked, in this order
        name,
        count,
        each(fields, "racks", at, _racks) if fields.get("racks") is not None else None,
        optional_string(fields, "topic_id", at),
        each(fields, "initialized", at, _partition)
        if fields.get("initialized") is not None
        else None,
    )


def _racks(value: Any, at: str) -> tuple[str | None, ...]:
    if value is None:
        return ()
    return tuple(
        None if rack is None else text(rack, f"{at}[{i}]")
        for i, rack in enumerate(array(value, at))
    )


def _member(value: Any, at: str) -> Member:
    fields = object_(value, at)
    return Member(  # keep the order of the arguments: the first bad field is reported
        member_id=string(fields, "member_id", at),
        group_instance_id=optional_string(fields, "group_instance_id", at),
        client_id=optional_string(fields, "client_id", at),
        client_host=optional_string(fields, "client_host", at),
        topics=each(fields, "topics", at, text),
        **_owned(fields, at),
        generation_id=_generation(fields, at),
        rack_id=optional_string(fields, "rack_id", at),
        subscription_version=optional_integer(
            fields, "subscription_version", at, "subscription version", 0, NEWEST_SUBSCRIPTION
        ),
        user_data=_user_data(fields, at),
        user_data_generation_id=_generation(fields, at, "user_data_generation_id"),
        client_library=optional_string(fields, "client_library", at),
        streams=streams.read_member(fields, at),
    )


def _owned(fields: dict[str, Any], at: str) -> dict[str, Any]:
    """Returns `owned_partitions`, and `owned_topics` if an entry has no partitions."""
    if fields.get("owned_partitions") is None:
        return {}
    entries = each(fields, "owned_partitions", at, _entry)
    is_whole = all(numbers for _, numbers in entries)
    return {
        "owned_partitions": tuple(TopicPartition(t, p) for t, numbers in entries for p in numbers),
        "owned_topics": () if is_whole else tuple(dict.fromkeys(topic for topic, _ in entries)),
    }


def _entry(value: Any, at: str) -> tuple[str, tuple[int, ...]]:
    fields = object_(value, at)
    topic = string(fields, "topic", at)
    optional_string(fields, "topic_id", at)
    return topic, each(fields, "partitions", at, _partition)


def _partition(value: Any, at: str) -> int:
    return integer(value, at, "partition")


def _deleted_topics(members: list[dict[str, Any]], topics: tuple[Topic, ...]) -> tuple[Topic, ...]:
    """Returns the topics that occur only in owned partitions, if an id is given there."""
    # If a name occurs twice, the first topic counts, as in the core.
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


def _generation(fields: dict[str, Any], at: str, name: str = "generation_id") -> int | None:
    return optional_integer(fields, name, at, "generation", MIN_INT32)


def _user_data(fields: dict[str, Any], at: str) -> UserData | None:
    text = optional_string(fields, "user_data", at)
    if text is None:
        return None
    for known in USER_DATA:
        if text == known:
            return known
    raise GroupError(path(at, "user_data"), unknown_user_data(text))


# Writing


def to_dict(group: "GroupSpec") -> dict[str, Any]:
    """Returns the contract line of a group as a dict; fields that are None are left out."""
    line: dict[str, Any] = {"group_id": group.group_id}
    names = ("generation_id", "assignor", "leader_library", "leader", "rebalance_protocol")
    _add_known(line, group, *names)
    line["topics"] = [_topic_to_dict(topic) for topic in group.topics]
    line["members"] = [_member_to_dict(member) for member in group.members]
    if group.subtopologies is not None:
        line["subtopologies"] = streams.topology_to_dict(group.subtopologies)
    _add_known(line, group, "num_standby_replicas")
    return line


def _topic_to_dict(topic: Topic) -> dict[str, Any]:
    line: dict[str, Any] = {"name": topic.name, "partitions": topic.partitions}
    if topic.racks is not None:
        line["racks"] = [list(racks) for racks in topic.racks]
    _add_known(line, topic, "topic_id")
    if topic.initialized is not None:
        line["initialized"] = list(topic.initialized)
    return line


def _member_to_dict(member: Member) -> dict[str, Any]:
    line: dict[str, Any] = {"member_id": member.member_id}
    _add_known(line, member, "group_instance_id", "client_id", "client_host")
    line["topics"] = list(member.topics)
    if member.owned_partitions or member.owned_topics:
        runs = in_runs(member.owned_partitions, topics=member.owned_topics)
        line["owned_partitions"] = runs
    _add_known(line, member, "generation_id", "rack_id", *_AS_SENT, "client_library")
    return line if member.streams is None else line | streams.member_to_dict(member.streams)


def _add_known(line: dict[str, Any], source: object, *names: str) -> None:
    for name in names:
        if (value := getattr(source, name)) is not None:
            line[name] = value


def dumps(line: Mapping[str, Any]) -> str:
    """Returns compact JSON, byte for byte as the Rust core writes it."""
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"))
