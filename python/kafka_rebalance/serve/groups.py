# SPDX-License-Identifier: Apache-2.0
"""Turns kio's requests about groups into the coordinator's messages, and its responses back.

As in Kafka, some work is done outside the coordinator: errors for partitions that do not exist,
several groups in one OffsetFetch, the filter by type in ListGroups.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import timedelta
from itertools import groupby
from typing import Any

from kafka_rebalance.wire.classic_groups import (
    NO_GENERATION,
    UNKNOWN_MEMBER,
    DeleteGroups,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribeGroups,
    DescribeGroupsResponse,
    Heartbeat,
    HeartbeatResponse,
    JoinGroup,
    JoinGroupProtocol,
    JoinGroupResponse,
    LeaveGroup,
    LeaveGroupResponse,
    ListGroups,
    MemberIdentity,
    SyncGroup,
    SyncGroupResponse,
)
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import Request, Response
from kafka_rebalance.wire.offsets import (
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    OffsetFetchResponse,
    OffsetToCommit,
    TxnOffsetCommit,
)

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
        case "list_groups":
            return await _list_groups(asked, ask)
    response = await ask(_REQUESTS[asked.api](asked.body))
    return None if response is None else _fields_of(asked, response)


def _ms(duration: timedelta) -> int:
    return round(duration.total_seconds() * 1000)


def _join_group(body: Any) -> Request:
    session = _ms(body.session_timeout)
    rebalance = getattr(body, "rebalance_timeout", None)
    return JoinGroup(
        group_id=body.group_id,
        member_id=body.member_id,
        group_instance_id=getattr(body, "group_instance_id", None),
        session_timeout_ms=session,
        # Version 0 has no rebalance timeout.
        rebalance_timeout_ms=session if rebalance is None else _ms(rebalance),
        protocol_type=body.protocol_type,
        protocols=tuple(JoinGroupProtocol(p.name, p.metadata) for p in body.protocols),
    )


def _sync_group(body: Any) -> Request:
    return SyncGroup(
        group_id=body.group_id,
        member_id=body.member_id,
        generation_id=body.generation_id,
        group_instance_id=getattr(body, "group_instance_id", None),
        protocol_type=getattr(body, "protocol_type", None),
        protocol_name=getattr(body, "protocol_name", None),
        assignments=tuple((one.member_id, one.assignment) for one in body.assignments),
    )


def _heartbeat(body: Any) -> Request:
    return Heartbeat(
        group_id=body.group_id,
        member_id=body.member_id,
        generation_id=body.generation_id,
        group_instance_id=getattr(body, "group_instance_id", None),
    )


def _leave_group(body: Any) -> Request:
    members = getattr(body, "members", None)
    if members is None:  # up to version 2, the request has one member
        members = (body,)
    return LeaveGroup(
        group_id=body.group_id,
        members=tuple(
            MemberIdentity(one.member_id, getattr(one, "group_instance_id", None))
            for one in members
        ),
    )


def _delete_groups(body: Any) -> Request:
    return DeleteGroups(group_ids=tuple(body.groups_names))


def _describe_groups(body: Any) -> Request:
    return DescribeGroups(group_ids=tuple(body.groups))


_REQUESTS = {
    "join_group": _join_group,
    "sync_group": _sync_group,
    "heartbeat": _heartbeat,
    "leave_group": _leave_group,
    "delete_groups": _delete_groups,
    "describe_groups": _describe_groups,
}


# Offsets ------------------------------------------------------------------------------------------


async def _offset_commit(asked: Asked, ask: Ask, has: Has) -> Mapping[str, Any]:
    """Commits the offsets of partitions that exist; without any, does not ask the coordinator."""
    body = asked.body
    entries = [(topic.name, one) for topic in body.topics for one in topic.partitions]
    offsets = tuple(
        OffsetToCommit(
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
        response = await ask(_commit(asked, offsets))
        codes |= {(one.topic, one.partition): one.error_code for one in response.partitions}
    return {"topics": _by_topic(_coded(*partition, code) for partition, code in codes.items())}


def _commit(asked: Asked, offsets: tuple[OffsetToCommit, ...]) -> Request:
    body = asked.body
    instance = getattr(body, "group_instance_id", None)
    if asked.api == "txn_offset_commit":
        return TxnOffsetCommit(
            group_id=body.group_id,
            producer_id=body.producer_id,
            member_id=getattr(body, "member_id", UNKNOWN_MEMBER),
            generation_id=getattr(body, "generation_id", NO_GENERATION),
            group_instance_id=instance,
            offsets=offsets,
        )
    generation = getattr(body, "generation_id_or_member_epoch", None)
    retention = getattr(body, "retention_time", None)
    return OffsetCommit(
        group_id=body.group_id,
        member_id=body.member_id,
        generation_id=body.generation_id if generation is None else generation,
        group_instance_id=instance,
        retention_ms=None if retention is None else _ms(retention),
        offsets=offsets,
    )


async def _offset_delete(asked: Asked, ask: Ask, has: Has) -> Mapping[str, Any]:
    entries = [(t.name, one.partition_index) for t in asked.body.topics for one in t.partitions]
    known = tuple(one for one in entries if has(*one))
    request = OffsetDelete(group_id=asked.body.group_id, partitions=known)
    response = await ask(request)
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
        request = OffsetFetch(
            group_id=one.group_id,
            partitions=partitions,
            require_stable=getattr(body, "require_stable", False),
            member_id=getattr(one, "member_id", None),
            member_epoch=getattr(one, "member_epoch", NO_GENERATION),
        )
        groups.append({**_fetched(await ask(request)), "group_id": one.group_id})
    return {"groups": groups} if several is not None else groups[0]


async def _list_groups(asked: Asked, ask: Ask) -> Mapping[str, Any]:
    states = tuple(getattr(asked.body, "states_filter", ()))
    types = tuple(getattr(asked.body, "types_filter", ()))
    response = await ask(ListGroups(states=states, types=types))
    return {
        "error_code": response.error_code,
        "groups": [
            {
                "group_id": one.group_id,
                "protocol_type": one.protocol_type,
                "group_state": one.state.value,
                "group_type": one.group_type,
            }
            for one in response.groups
        ],
    }


# Responses ----------------------------------------------------------------------------------------


def _fields_of(asked: Asked, response: Response) -> dict[str, Any]:
    match response:
        case JoinGroupResponse():
            return _joined(asked, response)
        case SyncGroupResponse():
            return _fields(response, "error_code protocol_type protocol_name assignment")
        case HeartbeatResponse():
            return _fields(response, "error_code")
        case LeaveGroupResponse():
            return _left(asked, response)
        case DeleteGroupsResponse(groups=groups):
            results = [{"group_id": one, "error_code": code} for one, code in groups]
            return {"results": results}
        case DescribeGroupsResponse(groups=groups):
            return {"groups": [_described(one) for one in groups]}
    raise TypeError(f"no answer of this server: {type(response).__name__}")


def _fields(response: Any, names: str) -> dict[str, Any]:
    return {name: getattr(response, name) for name in names.split()}


def _joined(asked: Asked, response: JoinGroupResponse) -> dict[str, Any]:
    names = "error_code generation_id protocol_type protocol_name leader skip_assignment member_id"
    fields = _fields(response, names)
    if asked.version < 7:  # the field cannot be null
        fields["protocol_name"] = response.protocol_name or ""
    members = [_fields(one, "member_id group_instance_id metadata") for one in response.members]
    return {**fields, "members": members}


def _left(asked: Asked, response: LeaveGroupResponse) -> dict[str, Any]:
    error = response.error_code
    if asked.version < 3 and response.members:
        error = response.members[0].error_code
    members = [_fields(one, "member_id group_instance_id error_code") for one in response.members]
    return {"error_code": error, "members": members}


def _coded(topic: str, partition: int, code: int) -> tuple[str, dict[str, Any]]:
    return topic, {"partition_index": partition, "error_code": code}


def _fetched(response: OffsetFetchResponse) -> dict[str, Any]:
    topics = _by_topic(
        (
            one.topic,
            {
                "partition_index": one.partition,
                "committed_offset": one.offset,
                "committed_leader_epoch": one.leader_epoch,
                "metadata": one.metadata,
                "error_code": one.error_code,
            },
        )
        for one in response.offsets
    )
    return {"error_code": response.error_code, "topics": topics}


def _described(one: DescribedGroup) -> dict[str, Any]:
    return {
        "error_code": one.error_code,
        "error_message": None if one.error_code is ErrorCode.NONE else str(one.error_code),
        "group_id": one.group_id,
        "group_state": "" if one.state is None else one.state.value,
        "protocol_type": one.protocol_type,
        "protocol_data": one.protocol_name,
        "members": [
            {
                **_fields(member, "member_id group_instance_id client_id client_host"),
                "member_metadata": member.metadata,
                "member_assignment": member.assignment,
            }
            for member in one.members
        ],
    }


def _by_topic(partitions: Iterable[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Puts neighbouring partitions of one topic into one entry."""
    return [
        {"name": topic, "partitions": [one for _, one in run]}
        for topic, run in groupby(partitions, key=lambda pair: pair[0])
    ]
