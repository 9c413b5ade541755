# SPDX-License-Identifier: Apache-2.0
"""Requests of groups: kio's dataclasses as the coordinator's requests, and its responses back."""

from collections.abc import Iterable
from datetime import timedelta
from itertools import groupby
from typing import Any

from kafka_rebalance.errors import WireError
from kafka_rebalance.protocol import messages

from .frames import Asked


def request_of(asked: Asked) -> messages.Request:
    """Returns the coordinator's request."""
    return _REQUESTS[asked.api](asked.body)


def _ms(duration: timedelta) -> int:
    return round(duration.total_seconds() * 1000)


def _join_group(body: Any) -> messages.Request:
    session = _ms(body.session_timeout)
    rebalance = getattr(body, "rebalance_timeout", None)
    return messages.JoinGroup(
        group_id=body.group_id,
        member_id=body.member_id,
        group_instance_id=getattr(body, "group_instance_id", None),
        session_timeout_ms=session,
        # Version 0 has only one timeout.
        rebalance_timeout_ms=session if rebalance is None else _ms(rebalance),
        protocol_type=body.protocol_type,
        protocols=tuple(messages.JoinGroupProtocol(p.name, p.metadata) for p in body.protocols),
    )


def _sync_group(body: Any) -> messages.Request:
    return messages.SyncGroup(
        group_id=body.group_id,
        member_id=body.member_id,
        generation_id=body.generation_id,
        group_instance_id=getattr(body, "group_instance_id", None),
        protocol_type=getattr(body, "protocol_type", None),
        protocol_name=getattr(body, "protocol_name", None),
        assignments=tuple((one.member_id, one.assignment) for one in body.assignments),
    )


def _heartbeat(body: Any) -> messages.Request:
    return messages.Heartbeat(
        group_id=body.group_id,
        member_id=body.member_id,
        generation_id=body.generation_id,
        group_instance_id=getattr(body, "group_instance_id", None),
    )


def _leave_group(body: Any) -> messages.Request:
    # Up to version 2, the request has one member.
    members = getattr(body, "members", None) or (body,)
    return messages.LeaveGroup(
        group_id=body.group_id,
        members=tuple(
            messages.MemberIdentity(one.member_id, getattr(one, "group_instance_id", None))
            for one in members
        ),
    )


def _offset_commit(body: Any) -> messages.Request:
    generation = getattr(body, "generation_id_or_member_epoch", None)
    retention = getattr(body, "retention_time", None)
    return messages.OffsetCommit(
        group_id=body.group_id,
        member_id=body.member_id,
        generation_id=body.generation_id if generation is None else generation,
        group_instance_id=getattr(body, "group_instance_id", None),
        retention_ms=None if retention is None else _ms(retention),
        offsets=tuple(
            messages.OffsetToCommit(
                topic.name,
                one.partition_index,
                one.committed_offset,
                one.committed_metadata,
                getattr(one, "committed_leader_epoch", -1),
            )
            for topic in body.topics
            for one in topic.partitions
        ),
    )


def _offset_fetch(body: Any) -> messages.Request:
    groups = getattr(body, "groups", None)
    if groups is not None and len(groups) != 1:
        raise WireError("offset_fetch: more than one group; ask for each by itself")
    asked = body if groups is None else groups[0]
    partitions = None
    if asked.topics is not None:
        partitions = tuple((t.name, p) for t in asked.topics for p in t.partition_indexes)
    return messages.OffsetFetch(
        group_id=asked.group_id,
        partitions=partitions,
        require_stable=getattr(body, "require_stable", False),
    )


def _describe_groups(body: Any) -> messages.Request:
    return messages.DescribeGroups(group_ids=tuple(body.groups))


def _list_groups(_: Any) -> messages.Request:
    return messages.ListGroups()


_REQUESTS = {
    "join_group": _join_group,
    "sync_group": _sync_group,
    "heartbeat": _heartbeat,
    "leave_group": _leave_group,
    "offset_commit": _offset_commit,
    "offset_fetch": _offset_fetch,
    "describe_groups": _describe_groups,
    "list_groups": _list_groups,
}


# Responses ----------------------------------------------------------------------------------------


def fields_of(asked: Asked, response: messages.Response) -> dict[str, Any]:
    """Returns the fields of the response."""
    match response:
        case messages.JoinGroupResponse():
            return _joined(asked, response)
        case messages.SyncGroupResponse():
            return _fields(response, "error_code protocol_type protocol_name assignment")
        case messages.HeartbeatResponse():
            return _fields(response, "error_code")
        case messages.LeaveGroupResponse():
            return _left(asked, response)
        case messages.OffsetCommitResponse(partitions=partitions):
            return {"topics": _by_topic(_committed(one) for one in partitions)}
        case messages.OffsetFetchResponse():
            return _fetched(asked, response)
        case messages.DescribeGroupsResponse(groups=groups):
            return {"groups": [_described(one) for one in groups]}
        case messages.ListGroupsResponse():
            return {
                "error_code": response.error_code,
                "groups": [
                    {
                        "group_id": one.group_id,
                        "protocol_type": one.protocol_type,
                        "group_state": one.state.value,
                    }
                    for one in response.groups
                ],
            }
    raise TypeError(f"no answer of this server: {type(response).__name__}")


def _fields(response: Any, names: str) -> dict[str, Any]:
    return {name: getattr(response, name) for name in names.split()}


def _joined(asked: Asked, response: messages.JoinGroupResponse) -> dict[str, Any]:
    names = "error_code generation_id protocol_type protocol_name leader skip_assignment member_id"
    fields = _fields(response, names)
    if asked.version < 7:  # the field cannot be null
        fields["protocol_name"] = response.protocol_name or ""
    members = [_fields(one, "member_id group_instance_id metadata") for one in response.members]
    return {**fields, "members": members}


def _left(asked: Asked, response: messages.LeaveGroupResponse) -> dict[str, Any]:
    error = response.error_code
    if asked.version < 3 and response.members:
        error = response.members[0].error_code
    members = [_fields(one, "member_id group_instance_id error_code") for one in response.members]
    return {"error_code": error, "members": members}


def _committed(one: messages.PartitionError) -> tuple[str, dict[str, Any]]:
    return one.topic, {"partition_index": one.partition, "error_code": one.error_code}


def _fetched(asked: Asked, response: messages.OffsetFetchResponse) -> dict[str, Any]:
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
    answer = {"error_code": response.error_code, "topics": topics}
    groups = getattr(asked.body, "groups", ())
    return {**answer, "groups": [{**answer, "group_id": one.group_id} for one in groups]}


def _described(one: messages.DescribedGroup) -> dict[str, Any]:
    return {
        "error_code": one.error_code,
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
    """Groups neighbours with one topic."""
    return [
        {"name": topic, "partitions": [one for _, one in run]}
        for topic, run in groupby(partitions, key=lambda pair: pair[0])
    ]
