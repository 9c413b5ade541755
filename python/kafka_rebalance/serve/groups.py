# SPDX-License-Identifier: Apache-2.0
"""Turns kio's requests about groups into the coordinator's messages, and its responses back.

As in Kafka, some work is done outside the coordinator: errors for partitions that do not exist,
several groups in one OffsetFetch, the filter by type in ListGroups.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import timedelta
from itertools import groupby
from typing import Any, NamedTuple

from kafka_rebalance.wire import classic_groups as classic
from kafka_rebalance.wire import offsets as wire
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import GroupState, Request, Response, common_fields, field_names

from .frames import Asked

Ask = Callable[[Request], Awaitable[Any]]
"""Asks the coordinator. The response is None if a newer request of the member replaced this one."""
Has = Callable[[str, int], bool]

_UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def answered(asked: Asked, ask: Ask, has: Has) -> Mapping[str, Any] | None:
    """Returns the fields of the response to a request about a group; None for no response."""
    match asked.api:
        case "offset_fetch":
            return await _offset_fetch(asked, ask)
        case "offset_commit" | "txn_offset_commit":
            return await _offset_commit(asked, ask, has)
        case "offset_delete":
            return await _offset_delete(asked, ask, has)
    given = {}
    if asked.api == "leave_group" and not hasattr(asked.body, "members"):  # version 0 to 2
        given["members"] = (classic.MemberIdentity(asked.body.member_id),)
    response = await ask(_request(asked, **given))
    return None if response is None else _response(asked, response)


_REQUESTS: dict[str, type[Request]] = {
    "join_group": classic.JoinGroup,
    "sync_group": classic.SyncGroup,
    "heartbeat": classic.Heartbeat,
    "leave_group": classic.LeaveGroup,
    "delete_groups": classic.DeleteGroups,
    "describe_groups": classic.DescribeGroups,
    "list_groups": classic.ListGroups,
    "offset_commit": wire.OffsetCommit,
    "txn_offset_commit": wire.TxnOffsetCommit,
    "offset_delete": wire.OffsetDelete,
}
# The other names that kio has for a field of a request.
_KIO_NAMES = {
    "session_timeout_ms": ("session_timeout",),
    "rebalance_timeout_ms": ("rebalance_timeout",),
    "retention_ms": ("retention_time",),
    "generation_id": ("generation_id_or_member_epoch",),
    "group_ids": ("groups", "groups_names"),
    "states": ("states_filter",),
    "types": ("types_filter",),
}


class _GivenAssignment(NamedTuple):
    member_id: str
    assignment: bytes


_ENTRIES: dict[str, type[Any]] = {
    "protocols": classic.JoinGroupProtocol,
    "assignments": _GivenAssignment,
    "members": classic.MemberIdentity,
}


def _request(asked: Asked, **given: Any) -> Request:
    """Returns our request; a field that the version lacks has its default."""
    kind, body = _REQUESTS[asked.api], asked.body
    for name in field_names(kind):
        names = (name, *_KIO_NAMES.get(name, ()))
        value = next((getattr(body, one) for one in names if hasattr(body, one)), None)
        if isinstance(value, timedelta):
            value = round(value.total_seconds() * 1000)
        elif name in _ENTRIES and value is not None:
            entry = _ENTRIES[name]
            value = tuple(entry(**common_fields(one, entry)) for one in value)
        if value is not None:
            given.setdefault(name, value)
    return kind(**given)


# Offsets ------------------------------------------------------------------------------------------


async def _offset_commit(asked: Asked, ask: Ask, has: Has) -> Mapping[str, Any]:
    """Commits offsets of partitions that exist; if there is none, the coordinator is not asked."""
    body = asked.body
    entries = [(topic.name, one) for topic in body.topics for one in topic.partitions]
    offsets = tuple(
        wire.OffsetToCommit(
            topic,
            one.partition_index,
            one.committed_offset,
            one.committed_metadata,
            getattr(one, "committed_leader_epoch", -1),
        )
        for topic, one in entries
        if has(topic, one.partition_index)
    )
    codes = {(topic, one.partition_index): _UNKNOWN for topic, one in entries}
    if offsets:
        response = await ask(_request(asked, offsets=offsets))
        codes |= {(one.topic, one.partition): one.error_code for one in response.partitions}
    return {"topics": _by_topic(_coded(*partition, code) for partition, code in codes.items())}


async def _offset_delete(asked: Asked, ask: Ask, has: Has) -> Mapping[str, Any]:
    entries = [(t.name, one.partition_index) for t in asked.body.topics for one in t.partitions]
    known = tuple(one for one in entries if has(*one))
    response = await ask(_request(asked, partitions=known))
    codes = dict.fromkeys(entries, _UNKNOWN)
    codes |= {(one.topic, one.partition): one.error_code for one in response.partitions}
    if response.error_code is not ErrorCode.NONE:
        codes = {}
    topics = _by_topic(_coded(*partition, code) for partition, code in codes.items())
    return {"error_code": response.error_code, "topics": topics}


async def _offset_fetch(asked: Asked, ask: Ask) -> Mapping[str, Any]:
    body = asked.body
    several = getattr(body, "groups", None)
    groups = []
    for one in (body,) if several is None else several:
        partitions = None
        if one.topics is not None:
            partitions = tuple((t.name, p) for t in one.topics for p in t.partition_indexes)
        request = wire.OffsetFetch(
            group_id=one.group_id,
            partitions=partitions,
            require_stable=getattr(body, "require_stable", False),
            member_id=getattr(one, "member_id", None),
            member_epoch=getattr(one, "member_epoch", classic.NO_GENERATION),
        )
        response = await ask(request)
        topics = _by_topic((each.topic, _fields(each)) for each in response.offsets)
        error = response.error_code
        groups.append({"error_code": error, "topics": topics, "group_id": one.group_id})
    return {"groups": groups} if several is not None else groups[0]


# Our field name -> Kafka's name, where these differ; kio's class takes the names that it has.
_KAFKA_NAMES = {
    "state": "group_state",
    "protocol_name": "protocol_data",
    "partition": "partition_index",
    "offset": "committed_offset",
    "leader_epoch": "committed_leader_epoch",
    "metadata": "member_metadata",
    "assignment": "member_assignment",
}


def _fields(message: Any) -> dict[str, Any]:
    """Returns the fields of a response or of its entry, each under our name and Kafka's name."""
    found = {}
    for name in field_names(type(message)):
        value = getattr(message, name)
        if isinstance(value, tuple):
            value = [_fields(one) if field_names(type(one)) else one for one in value]
        elif isinstance(value, GroupState):
            value = str(value)
        found[name] = found[_KAFKA_NAMES.get(name, name)] = value
    return found


def _response(asked: Asked, response: Response) -> dict[str, Any]:
    fields = _fields(response)
    match response:
        case classic.JoinGroupResponse() if asked.version < 7:  # the field cannot be null
            fields["protocol_name"] = response.protocol_name or ""
        case classic.LeaveGroupResponse(members=(first, *_)) if asked.version < 3:
            fields["error_code"] = first.error_code
        case classic.DeleteGroupsResponse(groups=groups):
            results = [{"group_id": one, "error_code": code} for one, code in groups]
            return {"results": results}
        case classic.DescribeGroupsResponse(groups=groups):
            return {"groups": [_described(one) for one in groups]}
    return fields


def _described(one: classic.DescribedGroup) -> dict[str, Any]:
    return {
        **_fields(one),
        "error_message": None if one.error_code is ErrorCode.NONE else str(one.error_code),
        "group_state": str(one.state or ""),
    }


def _coded(topic: str, partition: int, code: int) -> tuple[str, dict[str, Any]]:
    return topic, {"partition_index": partition, "error_code": code}


def _by_topic(partitions: Iterable[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Returns one entry for each run of partitions of the same topic."""
    return [
        {"name": topic, "partitions": [one for _, one in run]}
        for topic, run in groupby(partitions, key=lambda pair: pair[0])
    ]
