# SPDX-License-Identifier: Apache-2.0
"""Reads and writes the input and the answer of a leader as JSON.

This is the layout of the field `application` of a contract line, and of the cases of `python -m
tools.streams_vectors`. A line holds what can be seen from outside: topics, end offsets, and the
bytes that threads sent and were assigned. `topology` infers what a line leaves out. The data that a
thread sent is read from `user_data` alone; the decoded fields next to it are for human readers.

Errors   GroupError with the path of the bad field.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from kafka_rebalance.assignors.streams.application import (
    LONG_MAX,
    Application,
    Partition,
    Settings,
    StreamThread,
    TopicsInfo,
)
from kafka_rebalance.assignors.streams.leader import ASSIGNORS, HIGH_AVAILABILITY
from kafka_rebalance.errors import GroupError, WireError
from kafka_rebalance.group.declared_types import fits
from kafka_rebalance.group.field_paths import (
    MAX_INT32,
    array,
    each,
    integer,
    object_,
    required,
    string,
    text,
)
from kafka_rebalance.group.model import TopicPartition, quoted
from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.wire.streams_protocol import (
    NO_REBALANCE,
    AssignmentInfo,
    decode_assignment_info,
    decode_subscription_info,
)

FIELD = "application"
_NEW = "new_changelog_topics"
_T = TypeVar("_T")
_LAST_S = 253_402_300_799
_ZERO = str(UUID(int=0))


class SentAssignment(NamedTuple):
    """The leader's assignment for a thread: partitions, in the leader's order, and user data."""

    partitions: tuple[TopicPartition, ...]
    info: AssignmentInfo


def read_application(value: Any, at: str = FIELD) -> Application:
    """Returns a leader's input. Settings that the line lacks are Kafka's defaults; without a
    topology in the line, the topology is empty.
    """
    case = object_(value, at)
    if case.get("error") is not None:
        raise GroupError(at, f"not read from the cluster: {text(case['error'], f'{at}.error')}")
    brokers = {
        one: None if rack is None else text(rack, f"{at}.brokers[{quoted(one)}]")
        for one, rack in object_(case.get("brokers") or {}, f"{at}.brokers").items()
    }
    ends = case.get("end_offsets")
    return Application(
        checked_assignor(case.get("assignor") or HIGH_AVAILABILITY, f"{at}.assignor"),
        _whole(required(case, "now_ms", at), f"{at}.now_ms"),
        uuid(case.get("leader_process_id") or _ZERO, f"{at}.leader_process_id"),
        uuid(case.get("future_process_id") or _ZERO, f"{at}.future_process_id"),
        settings(object_(case.get("configs") or {}, f"{at}.configs"), f"{at}.configs"),
        _by_name(
            case, "topics", at, lambda ids, at: [brokers.get(str(one)) for one in array(ids, at)]
        ),
        each({"subtopologies": ()} | case, "subtopologies", at, _subtopology),
        None if ends is None else _by_name(case, "end_offsets", at, _whole),
        _by_name({"committed_offsets": {}} | case, "committed_offsets", at, _offset),
        each({_NEW: case.get(_NEW) or ()}, _NEW, at, text),
        each(case, "members", at, _thread),
    )


def read_assigned(value: Any, at: str = FIELD) -> dict[str, SentAssignment]:
    """Returns each member's present assignment, as the leader sent it, by member id."""
    given = object_(required(object_(value, at), "assigned", at), f"{at}.assigned")
    found = {}
    for member_id, value in given.items():
        place = f"{at}.assigned[{quoted(member_id)}]"
        one = object_(value, place)
        partitions = each(one, "partitions", place, _partition)
        found[member_id] = SentAssignment(partitions, _bytes(one, place, decode_assignment_info))
    return found


def settings(configs: Mapping[str, Any], at: str) -> Settings:
    """Returns the leader's settings: those given, and Kafka's defaults."""
    return Settings(**checked_settings(configs, at))


def checked_assignor(value: Any, at: str) -> str:
    if value not in ASSIGNORS:
        raise GroupError(at, f"{quoted(str(value))} is not one of {', '.join(ASSIGNORS)}")
    return str(value)


def checked_settings(configs: Mapping[str, Any], at: str) -> dict[str, Any]:
    """Returns the given settings as fields of `Settings`. Their names are Kafka's, with dots or
    underscores, and values may be strings, as in a properties file.
    """
    found: dict[str, Any] = {}
    for name, value in configs.items():
        field = str(name).replace(".", "_")
        if field not in Settings._fields:
            known = ", ".join(one.replace("_", ".") for one in Settings._fields)
            raise GroupError(f"{at}.{name}", f"not a setting of the leader; these are: {known}")
        hint = Settings.__annotations__[field]
        if isinstance(value, str) and hint == tuple[str, ...]:
            value = tuple(one.strip() for one in value.split(",") if one.strip())
        elif isinstance(value, str) and hint is not str and re.fullmatch("[0-9]{1,19}", value):
            value = int(value)
        found[field] = value = tuple(value) if isinstance(value, list) else value
        most = LONG_MAX if field.endswith(("_lag", "_ms")) else MAX_INT32
        is_within = not isinstance(value, int) or 0 <= value <= most
        if not (fits(value, hint) and is_within):
            raise GroupError(f"{at}.{name}", f"{quoted(str(value))} does not fit this setting")
        for one in value if isinstance(value, tuple) else [value]:
            if isinstance(one, str):
                text(one, f"{at}.{name}")
    return found


def written_thread(thread: StreamThread, user_data: bytes) -> dict[str, Any]:
    """Returns a thread as JSON for a line: the decoded fields and bytes of its last JoinGroup."""
    info = thread.info
    return {
        "member_id": thread.member_id,
        "process_id": uuid_text(info.process_id),
        "rack_id": thread.rack_id,
        "owned_partitions": [list(tp) for tp in thread.owned_partitions],
        "version": info.version,
        "user_end_point": info.user_end_point.decode(errors="replace") or None,
        "task_offset_sums": {str(task): total for task, total in info.offset_sums().items()},
        "client_tags": info.tags(),
        "user_data": base64.b64encode(user_data).decode(),
    }


def written_assigned(
    partitions: Iterable[Partition], info: AssignmentInfo, user_data: bytes
) -> dict[str, Any]:
    """Returns a thread's assignment as JSON, as in the field `expected` of the test vectors."""
    later = info.next_rebalance_ms
    return {
        "partitions": [list(tp) for tp in partitions],
        "active_tasks": [str(task.task_id) for task in info.active_tasks],
        "standby_tasks": {
            str(one.task.task_id): [list(tp) for tp in one.partitions] for one in info.standby_tasks
        },
        "next_rebalance_ms": None if later == NO_REBALANCE else later,
        "error_code": info.error_code,
        "version": info.version,
        "commonly_supported_version": info.commonly_supported_version,
        "user_data": base64.b64encode(user_data).decode(),
    }


def uuid(value: Any, at: str) -> Uuid:
    try:
        number = UUID(text(value, at)).int
    except ValueError:
        raise GroupError(at, f"{quoted(value)} is not a UUID") from None
    halves = number >> 64, number & (1 << 64) - 1
    most, least = (half - (1 << 64) if half >> 63 else half for half in halves)
    return most, least


def uuid_text(one: Uuid) -> str:
    most, least = (half & (1 << 64) - 1 for half in one)
    return str(UUID(int=most << 64 | least))


def utc_text(at_ms: int) -> str:
    """Returns a time in epoch ms as text in UTC; Python's last date stands for all later times."""
    seconds = min(max(0, at_ms) // 1000, _LAST_S)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _thread(value: Any, at: str) -> StreamThread:
    member = object_(value, at)
    rack = member.get("rack_id")
    return StreamThread(
        string(member, "member_id", at),
        None if rack is None else text(rack, f"{at}.rack_id"),
        each(member, "owned_partitions", at, _partition),
        _bytes(member, at, decode_subscription_info),
    )


def _bytes(fields: Mapping[str, Any], at: str, decode: Callable[[bytes], _T]) -> _T:
    try:
        return decode(base64.b64decode(string(fields, "user_data", at), validate=True))
    except (WireError, binascii.Error) as error:
        raise GroupError(f"{at}.user_data", str(error)) from error


def _partition(value: Any, at: str) -> TopicPartition:
    pair = array(value, at)
    if len(pair) != 2:
        raise GroupError(at, "not a pair of topic and partition")
    return TopicPartition(text(pair[0], f"{at}[0]"), integer(pair[1], f"{at}[1]", "partition"))


def _subtopology(value: Any, at: str) -> TopicsInfo:
    one = object_(value, at)
    sources, *rest = (
        each({name: ()} | one, name, at, text)
        for name in ("source_topics", "repartition_source_topics", "changelog_topics")
    )
    return TopicsInfo(
        integer(required(one, "subtopology_id", at), f"{at}.subtopology_id", "subtopology"),
        (*sources, *rest[0]),
        rest[1],
        each({"source_changelog_topics": ()} | one, "source_changelog_topics", at, text),
        _whole(one.get("unlogged_stores") or 0, f"{at}.unlogged_stores"),
    )


def _whole(value: Any, at: str) -> int:
    return integer(value, at, "whole number", 0, LONG_MAX)


def _offset(value: Any, at: str) -> int | None:
    return None if value is None else _whole(value, at)


def _by_name(
    case: Mapping[str, Any], name: str, at: str, item: Callable[[Any, str], _T]
) -> dict[str, Sequence[_T]]:
    """Returns a list of values for each topic, one value for each partition."""
    topics = object_(required(case, name, at), f"{at}.{name}")
    return {topic: each(topics, topic, f"{at}.{name}", item) for topic in topics}
