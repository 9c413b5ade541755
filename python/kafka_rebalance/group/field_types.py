# SPDX-License-Identifier: Apache-2.0
"""Checks the types of the fields of a group that Python code made.

The core accepts a group that has exactly the types of `model.py`. For any other group, this module
looks for the first wrong field, and raises an error with its path. If it finds none, the group is
accepted: it may have lists, or subclasses of the types. (`group/contract.py` checks JSON lines.)
"""

from collections.abc import Callable, Sequence
from typing import Any

import kafka_rebalance._core as _core
from kafka_rebalance.errors import GroupError

from .field_paths import MAX_INT32, kind, text
from .model import StreamsMember, Subtopology, TaskOffset
from .streams import MAX_INT64, MIN_INT64

A_MEMBER = "Member(member_id, topics)"

_TEXTS_OF_MEMBER = (
    "group_instance_id", "client_id", "client_host", "rack_id", "user_data", "client_library"
)  # fmt: skip
_GENERATIONS_OF_MEMBER = ("generation_id", "user_data_generation_id")


def check_types(group: Any, topic: type, member: type, pair: type) -> None:
    """Raises a GroupError with the path of the first field whose type is not that of `model.py`."""
    if not _core.has_its_types(group, topic, member, pair):
        _walk(group, topic, member, pair)


def _walk(group: Any, topic: type, member: type, pair: type) -> None:
    _text(group.group_id, "group_id")
    for name in ("assignor", "leader_library", "leader", "rebalance_protocol"):
        _unless_none(_text, getattr(group, name), name)
    _unless_none(_integer, group.generation_id, "generation_id", "generation")
    for i, one in enumerate(objects(group.topics, "topics", topic, "Topic(name, partitions)")):
        _text(one.name, f"topics[{i}].name")
        _integer(one.partitions, f"topics[{i}].partitions", "count")
        if one.racks is not None:
            for p, racks in enumerate(_list(one.racks, f"topics[{i}].racks")):
                for r, rack in enumerate(_list(racks, f"topics[{i}].racks[{p}]")):
                    _unless_none(_text, rack, f"topics[{i}].racks[{p}][{r}]")
        _unless_none(_text, one.topic_id, f"topics[{i}].topic_id")
        if one.initialized is not None:
            for n, partition in enumerate(_list(one.initialized, f"topics[{i}].initialized")):
                _integer(partition, f"topics[{i}].initialized[{n}]", "partition")
    for i, one in enumerate(objects(group.members, "members", member, A_MEMBER)):
        _walk_member(one, f"members[{i}]", pair)
    _unless_none(_integer, group.num_standby_replicas, "num_standby_replicas", "count")
    if group.subtopologies is not None:
        example = "Subtopology(subtopology_id, tasks)"
        listed = objects(group.subtopologies, "subtopologies", Subtopology, example)
        for i, one in enumerate(listed):
            _text(one.subtopology_id, f"subtopologies[{i}].subtopology_id")
            _integer(one.tasks, f"subtopologies[{i}].tasks", "count")
            if not isinstance(one.stateful, bool):
                raise _wrong(one.stateful, f"subtopologies[{i}].stateful", "boolean", "a bool")
            for n, name in enumerate(_list(one.source_topics, f"subtopologies[{i}].source_topics")):
                _text(name, f"subtopologies[{i}].source_topics[{n}]")


def _walk_member(member: Any, at: str, pair: type) -> None:
    _text(member.member_id, f"{at}.member_id")
    for name in _TEXTS_OF_MEMBER:
        _unless_none(_text, getattr(member, name), f"{at}.{name}")
    for i, topic in enumerate(_list(member.topics, f"{at}.topics")):
        _text(topic, f"{at}.topics[{i}]")
    _walk_partitions(member.owned_partitions, f"{at}.owned_partitions", pair)
    for i, topic in enumerate(_list(member.owned_topics, f"{at}.owned_topics")):
        _text(topic, f"{at}.owned_topics[{i}]")
    for name in _GENERATIONS_OF_MEMBER:
        _unless_none(_integer, getattr(member, name), f"{at}.{name}", "generation")
    version, noun = member.subscription_version, "subscription version"
    _unless_none(_integer, version, f"{at}.subscription_version", noun)
    if member.streams is not None:
        _walk_streams(member.streams, f"{at}.streams", pair)


def _walk_streams(member: Any, at: str, pair: type) -> None:
    if not isinstance(member, StreamsMember):
        raise _wrong(member, at, "StreamsMember", "StreamsMember(process_id)")
    _text(member.process_id, f"{at}.process_id")
    for name in ("active_tasks", "standby_tasks"):
        _walk_partitions(getattr(member, name), f"{at}.{name}", pair)
    offsets, example = member.task_offsets, "TaskOffset(task, offset)"
    for i, one in enumerate(objects(offsets, f"{at}.task_offsets", TaskOffset, example)):
        place = f"{at}.task_offsets[{i}]"
        _walk_partitions((one.task,), f"{place}.task", pair)
        _integer(one.offset, f"{place}.offset", "task offset")
        if not MIN_INT64 <= one.offset <= MAX_INT64:
            problem = f"{one.offset} is not a task offset from {MIN_INT64} to {MAX_INT64}"
            raise GroupError(f"{place}.offset", problem)


def _walk_partitions(partitions: Any, at: str, pair: type) -> None:
    example = "TopicPartition(topic, partition)"
    for i, one in enumerate(objects(partitions, at, pair, example)):
        _text(one.topic, f"{at}[{i}].topic")
        _integer(one.partition, f"{at}[{i}].partition", "partition")
        if not 0 <= one.partition <= MAX_INT32:
            problem = f"{one.partition} is not a partition from 0 to {MAX_INT32}"
            raise GroupError(f"{at}[{i}]", problem)


def objects(values: Any, at: str, expected: type, example: str) -> Sequence[Any]:
    """Returns the list, if each entry is an `expected`; `example` is the text that makes one."""
    for i, value in enumerate(_list(values, at)):
        if not isinstance(value, expected):
            raise _wrong(value, f"{at}[{i}]", expected.__name__, example)
    return values  # type: ignore[no-any-return]


def _list(values: Any, at: str) -> Sequence[Any]:
    if not isinstance(values, list | tuple):
        what = f"{values!r} is a string" if isinstance(values, str) else f"{_kind(values)}"
        raise GroupError(at, f"{what}, not a tuple; give a tuple")
    return values


def _text(value: Any, at: str) -> None:
    if not isinstance(value, str):
        raise _wrong(value, at, "string", "a str")
    text(value, at)


def _unless_none(check: Callable[..., None], value: Any, *place: str) -> None:
    if value is not None:
        check(value, *place)


def _integer(value: Any, at: str, noun: str) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong(value, at, noun, "an int")


def _wrong(value: Any, at: str, noun: str, example: str) -> GroupError:
    return GroupError(at, f"{_kind(value)} is not a {noun}; give {example}")


def _kind(value: Any) -> str:
    if isinstance(value, tuple):
        return "a tuple"  # `kind` has JSON's name
    return "None" if value is None else kind(value)
