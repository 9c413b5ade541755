# SPDX-License-Identifier: Apache-2.0
"""Converts kio's requests about groups to messages of the coordinator, and its responses back.

As in Kafka, some work is done outside the coordinator: errors for partitions that do not exist,
several groups in one OffsetFetch, the filter by type in ListGroups.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from itertools import groupby
from typing import Any, NamedTuple
from uuid import UUID

from kafka_rebalance.errors import GroupError
from kafka_rebalance.wire import classic_groups as classic
from kafka_rebalance.wire import offsets as wire
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import GroupState, Request, Response, common_fields, field_names
from kafka_rebalance.wire.streams_groups import StreamsGroupHeartbeatResponse

from .cluster import Cluster, ServedTopic
from .frames import Asked

Ask = Callable[[Request], Awaitable[Any]]
"""Asks the coordinator. The response is None if the member has sent a newer request meanwhile."""

_ACCEPTABLE_LAG, _TASK_OFFSETS_MS = 10_000, 60_000
"""Kafka's defaults for two settings of warm-up tasks; no member here has such tasks."""
_UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def answered(asked: Asked, ask: Ask, cluster: Cluster) -> Mapping[str, Any] | Response | None:
    """Returns the response to a request about a group, or its fields; None for no response."""
    if isinstance(asked.body, Request):
        response: Response | None = await ask(asked.body)
        return response
    match asked.api:
        case "streams_group_heartbeat":
            return _streams_beat(await ask(asked.body.heartbeat), cluster)
        case "offset_fetch":
            return await _offset_fetch(asked, ask, cluster)
        case "offset_commit" | "txn_offset_commit":
            return await _offset_commit(asked, ask, cluster)
        case "offset_delete":
            return await _offset_delete(asked, ask, cluster)
    given = {}
    if asked.api == "leave_group" and not hasattr(asked.body, "members"):  # versions 0 to 2
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
# Our name for a request's field -> kio's names for it.
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
    """Returns the coordinator's request; a field that the version lacks has its default."""
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


def _streams_beat(
    response: StreamsGroupHeartbeatResponse | None, cluster: Cluster
) -> Mapping[str, Any] | None:
    """Returns the fields of the response; creates the internal topics that it asks for."""
    if response is None:
        return None
    for topic in response.creatable_topics:
        with suppress(GroupError):  # the topic exists, or its name or size is not allowed
            cluster.add(ServedTopic(topic.name, max(1, topic.partitions)))
    status = [{"status_code": one, "status_detail": one.name} for one in response.status]
    return {
        **_fields(response),
        "heartbeat_interval": response.heartbeat_interval_ms,
        "acceptable_recovery_lag": _ACCEPTABLE_LAG,
        "task_offset_interval": _TASK_OFFSETS_MS,
        "status": status or None,
    }


# Offsets ------------------------------------------------------------------------------------------


class _Topic(NamedTuple):
    """A topic by name and id, as a response names it; a request contains only one of the two."""

    name: str | None
    topic_id: UUID | None

    @property
    def unknown(self) -> ErrorCode:
        return ErrorCode.UNKNOWN_TOPIC_ID if self.name is None else _UNKNOWN


def _named(one: Any, cluster: Cluster) -> _Topic:
    """Returns the topic of a request's entry, which from the request's version 10 on has only an
    id.
    """
    if hasattr(one, "name"):
        return _Topic(one.name, None)
    found = cluster.find(one)
    return _Topic(None if found is None else found.name, one.topic_id)


def _entries(asked: Asked, cluster: Cluster) -> list[tuple[_Topic, Any]]:
    return [
        (_named(topic, cluster), one) for topic in asked.body.topics for one in topic.partitions
    ]


async def _offset_commit(asked: Asked, ask: Ask, cluster: Cluster) -> Mapping[str, Any]:
    """Commits the offsets of existing partitions; if none exists, the coordinator is not asked."""
    entries = _entries(asked, cluster)
    offsets = tuple(
        wire.OffsetToCommit(
            topic.name or "",
            one.partition_index,
            one.committed_offset,
            one.committed_metadata,
            getattr(one, "committed_leader_epoch", -1),
        )
        for topic, one in entries
        if cluster.has(topic.name or "", one.partition_index)
    )
    answered: Iterable[wire.PartitionError] = ()
    if offsets:
        answered = (await ask(_request(asked, offsets=offsets))).partitions
    return {"topics": _coded(entries, answered)}


async def _offset_delete(asked: Asked, ask: Ask, cluster: Cluster) -> Mapping[str, Any]:
    entries = _entries(asked, cluster)
    places = ((topic.name or "", one.partition_index) for topic, one in entries)
    known = tuple(place for place in places if cluster.has(*place))
    response = await ask(_request(asked, partitions=known))
    topics = [] if response.error_code else _coded(entries, response.partitions)
    return {"error_code": response.error_code, "topics": topics}


async def _offset_fetch(asked: Asked, ask: Ask, cluster: Cluster) -> Mapping[str, Any]:
    body = asked.body
    several = getattr(body, "groups", None)
    groups = []
    for one in (body,) if several is None else several:
        partitions, unknown = None, []
        if one.topics is not None:
            entries = [(_named(t, cluster), p) for t in one.topics for p in t.partition_indexes]
            partitions = tuple((t.name, p) for t, p in entries if t.name is not None)
            unknown = [entry for entry in entries if entry[0].name is None]
        request = wire.OffsetFetch(
            group_id=one.group_id,
            partitions=partitions,
            require_stable=getattr(body, "require_stable", False),
            member_id=getattr(one, "member_id", None),
            member_epoch=getattr(one, "member_epoch", classic.NO_GENERATION),
        )
        response = await ask(request)
        if asked.version == 1 and partitions:  # version 1 can report only errors of partitions
            unread = (wire.FetchedOffset(*p, error_code=response.error_code) for p in partitions)
            response = replace(response, offsets=response.offsets or tuple(unread))
        groups.append({**_fetched(response, unknown, cluster), "group_id": one.group_id})
    return {"groups": groups} if several is not None else groups[0]


# Our field name -> Kafka's name, where these differ; kio's class picks the names that it knows.
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
        "error_message": str(one.error_code) if one.error_code else None,
        "group_state": str(one.state or ""),
    }


def _coded(
    entries: Iterable[tuple[_Topic, Any]], answered: Iterable[wire.PartitionError]
) -> list[dict[str, Any]]:
    """Returns the entries with the coordinator's error codes; an entry for which it sent no code
    gets that of an unknown topic.
    """
    codes = {(one.topic, one.partition): one.error_code for one in answered}
    places = dict.fromkeys((topic, one.partition_index) for topic, one in entries)
    found = ((t, p, codes.get((t.name or "", p), t.unknown)) for t, p in places)
    return _by_topic((t, {"partition_index": p, "error_code": code}) for t, p, code in found)


def _fetched(
    response: wire.OffsetFetchResponse, unknown: list[tuple[_Topic, int]], cluster: Cluster
) -> dict[str, Any]:
    offsets = [(_Topic(one.topic, cluster.topic_id(one.topic)), one) for one in response.offsets]
    missing = ErrorCode.UNKNOWN_TOPIC_ID
    offsets += [(topic, wire.FetchedOffset("", p, error_code=missing)) for topic, p in unknown]
    topics = _by_topic((topic, _fields(one)) for topic, one in offsets)
    return {"error_code": response.error_code, "topics": topics}


def _by_topic(partitions: Iterable[tuple[_Topic, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Returns one entry for each run of partitions of the same topic."""
    return [
        {"name": topic.name, "topic_id": topic.topic_id, "partitions": [one for _, one in run]}
        for topic, run in groupby(partitions, key=lambda pair: pair[0])
    ]
