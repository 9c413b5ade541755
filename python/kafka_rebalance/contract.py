"""The contract: one group as one JSON line, and its result as another.

Types are checked here, what the values mean in `model.py`; both name the field's path. Fields that
the contract does not know are ignored. The twin, for lines in bulk, is `src/contract.rs`: same
order of checks, same words.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

from kafka_rebalance.errors import GroupError
from kafka_rebalance.model import MAX_INT32, GroupSpec, Member, Topic, TopicPartition

MIN_INT32 = -(2**31)

_T = TypeVar("_T")


def from_json(line: str | bytes, *, max_partitions: int) -> GroupSpec:
    """Reads one contract line."""
    return from_dict(parse(line), max_partitions=max_partitions)


def parse(line: str | bytes) -> Any:
    """One JSON value; a line that is not UTF-8 or not JSON is a GroupError at `line`."""
    try:
        text = line.decode("utf-8") if isinstance(line, bytes) else line
        value = json.loads(text, parse_constant=_no_constant)
        text.encode("utf-8")
    except UnicodeError as error:
        raise GroupError("line", f"not UTF-8: {error}") from None
    except (ValueError, RecursionError) as error:
        raise GroupError("line", f"not JSON: {error}") from None
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def from_dict(value: Any, *, max_partitions: int) -> GroupSpec:
    """Reads a contract line that is already parsed."""
    fields = _object(value, "line")
    _refuse_error_line(fields)
    group_id = _string(fields, "group_id", "")
    generation_id = _optional_generation(fields, "")
    assignor = _optional_string(fields, "assignor", "")
    topics = _list(fields, "topics", "", _topic)
    members = _list(fields, "members", "", _member)
    return GroupSpec(group_id, topics, members, assignor, generation_id, max_partitions)


def _refuse_error_line(fields: dict[str, Any]) -> None:
    """A line that tells why a group could not be read is that error, not a group without fields."""
    error = fields.get("error")
    if isinstance(error, str) and "topics" not in fields:
        path, separator, problem = error.partition(": ")
        raise GroupError(path, problem) if separator else GroupError("error", error)


def _topic(value: Any, at: str) -> Topic:
    fields = _object(value, at)
    name = _string(fields, "name", at)
    count = _integer(_required(fields, "partitions", at), f"{at}.partitions", "count", 0)
    if fields.get("racks") is None:
        return Topic(name, count)
    return Topic(name, count, _list(fields, "racks", at, _racks))


def _racks(value: Any, at: str) -> tuple[str | None, ...]:
    if value is None:
        return ()
    return tuple(
        None if rack is None else _text(rack, f"{at}[{i}]")
        for i, rack in enumerate(_array(value, at))
    )


def _member(value: Any, at: str) -> Member:
    fields = _object(value, at)
    member_id = _string(fields, "member_id", at)
    group_instance_id = _optional_string(fields, "group_instance_id", at)
    client_id = _optional_string(fields, "client_id", at)
    client_host = _optional_string(fields, "client_host", at)
    topics = _list(fields, "topics", at, _text)
    owned: list[TopicPartition] = []
    if fields.get("owned_partitions") is not None:
        for partitions in _list(fields, "owned_partitions", at, _owned):
            owned.extend(partitions)
    generation_id = _optional_generation(fields, at)
    rack_id = _optional_string(fields, "rack_id", at)
    return Member(
        member_id,
        topics,
        group_instance_id,
        client_id,
        client_host,
        tuple(owned),
        generation_id,
        rack_id,
    )


def _owned(value: Any, at: str) -> list[TopicPartition]:
    fields = _object(value, at)
    topic = _string(fields, "topic", at)
    return [TopicPartition(topic, p) for p in _list(fields, "partitions", at, _partition)]


def _partition(value: Any, at: str) -> int:
    return _integer(value, at, "partition", 0)


# Fields and types


def _path(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name


def _required(fields: dict[str, Any], name: str, at: str) -> Any:
    value = fields.get(name)
    if value is None:
        raise GroupError(_path(at, name), "missing")
    return value


def _string(fields: dict[str, Any], name: str, at: str) -> str:
    return _text(_required(fields, name, at), _path(at, name))


def _optional_string(fields: dict[str, Any], name: str, at: str) -> str | None:
    value = fields.get(name)
    return None if value is None else _text(value, _path(at, name))


def _optional_generation(fields: dict[str, Any], at: str) -> int | None:
    value = fields.get("generation_id")
    path = _path(at, "generation_id")
    return None if value is None else _integer(value, path, "generation", MIN_INT32)


def _list(
    fields: dict[str, Any], name: str, at: str, item: Callable[[Any, str], _T]
) -> tuple[_T, ...]:
    path = _path(at, name)
    values = _array(_required(fields, name, at), path)
    return tuple(item(value, f"{path}[{i}]") for i, value in enumerate(values))


def _object(value: Any, path: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise GroupError(path, f"{_kind(value)} is not an object")
    return dict(value)


def _array(value: Any, path: str) -> list[Any] | tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise GroupError(path, f"{_kind(value)} is not a list")
    return value


def _text(value: Any, path: str) -> str:
    if not isinstance(value, str):
        raise GroupError(path, f"{_kind(value)} is not a string")
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise GroupError(path, "half of a surrogate pair is not text") from None
    return value


def _integer(value: Any, path: str, noun: str, least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise GroupError(path, f"{_kind(value)} is not a {noun}")
    if not least <= value <= MAX_INT32:
        raise GroupError(path, f"{value} is not a {noun} from {least} to {MAX_INT32}")
    return value


def _kind(value: Any) -> str:
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
    return "a list" if isinstance(value, list | tuple) else f"a {type(value).__name__}"


# Out


def to_dict(group: GroupSpec) -> dict[str, Any]:
    """The contract line of a group, absent fields left out."""
    line: dict[str, Any] = {"group_id": group.group_id}
    if group.generation_id is not None:
        line["generation_id"] = group.generation_id
    if group.assignor is not None:
        line["assignor"] = group.assignor
    line["topics"] = [_topic_to_dict(topic) for topic in group.topics]
    line["members"] = [_member_to_dict(member) for member in group.members]
    return line


def _topic_to_dict(topic: Topic) -> dict[str, Any]:
    line: dict[str, Any] = {"name": topic.name, "partitions": topic.partitions}
    if topic.racks is not None:
        line["racks"] = [list(racks) for racks in topic.racks]
    return line


def _member_to_dict(member: Member) -> dict[str, Any]:
    line: dict[str, Any] = {"member_id": member.member_id}
    for name in ("group_instance_id", "client_id", "client_host"):
        if (value := getattr(member, name)) is not None:
            line[name] = value
    line["topics"] = list(member.topics)
    if member.owned_partitions:
        line["owned_partitions"] = group_by_topic(member.owned_partitions)
    for name in ("generation_id", "rack_id"):
        if (value := getattr(member, name)) is not None:
            line[name] = value
    return line


def group_by_topic(partitions: tuple[TopicPartition, ...]) -> list[dict[str, Any]]:
    """Runs of partitions of one topic, order kept: `[{"topic", "partitions"}, …]`."""
    runs: list[dict[str, Any]] = []
    for topic, partition in partitions:
        if not runs or runs[-1]["topic"] != topic:
            runs.append({"topic": topic, "partitions": []})
        runs[-1]["partitions"].append(partition)
    return runs


def dumps(line: Mapping[str, Any]) -> str:
    """Compact JSON, the same bytes as the Rust core writes."""
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"))
