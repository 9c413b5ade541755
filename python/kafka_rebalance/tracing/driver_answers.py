# SPDX-License-Identifier: Apache-2.0
"""Writes responses and timers as JSON, for the answers of `driver.py`."""

from kafka_rebalance.coordinator import interface
from kafka_rebalance.protocol import messages
from kafka_rebalance.protocol.error_codes import ErrorCode

from .driver_commands import Json
from .driver_consumer_answers import NameOf, answer_of_modern
from .driver_records import record_event, text_of
from .driver_streams_answers import answer_of_streams
from .virtual_broker import Happened


def answer_of(happened: list[Happened], number: int, name_of: NameOf) -> Json:
    """Returns the response to request `number`, if the coordinator has already sent it."""
    answer: Json = {}
    for _, effect in happened:
        if isinstance(effect, interface.Respond) and effect.request_id == number:
            answer |= _answer(effect.response, name_of)
    return answer


def _answer(response: messages.Response, name_of: NameOf) -> Json:
    """Returns a response's keys; JoinGroup and SyncGroup have none (see `events_of`)."""
    of_modern = answer_of_modern(response, name_of)
    if of_modern is not None:
        return of_modern
    of_streams = answer_of_streams(response)
    if of_streams is not None:
        return of_streams
    match response:
        case messages.LeaveGroupResponse(error_code=error, members=members):
            left = [
                {"m": one.member_id, "inst": one.group_instance_id, "err": str(one.error_code)}
                for one in members
            ]
            return {"err": str(error), "members": left}
        case messages.OffsetCommitResponse(partitions=(one,)):
            return {"err": str(one.error_code)}
        case messages.OffsetCommitResponse(partitions=()):
            return {"err": None}
        case messages.OffsetFetchResponse(error_code=ErrorCode.NONE, offsets=(one,)):
            answer = {"off": one.offset, "le": one.leader_epoch, "md": one.metadata}
            return {"gerr": str(ErrorCode.NONE), "err": str(one.error_code), **answer}
        case messages.OffsetFetchResponse(error_code=error):
            return {"gerr": str(error)}
        case messages.OffsetDeleteResponse(error_code=error, partitions=partitions):
            return {"err": str(partitions[0].error_code if partitions else error)}
        case messages.DeleteGroupsResponse(groups=((_, error),)):
            return {"err": str(error)}
        case messages.DescribeGroupsResponse(groups=(group,)):
            return _described(group)
        case messages.ListGroupsResponse(error_code=ErrorCode.NONE, groups=groups):
            return {"err": str(ErrorCode.NONE), "groups": [_listed(one) for one in sorted(groups)]}
        case (
            messages.HeartbeatResponse(error_code=error)
            | messages.ListGroupsResponse(error_code=error)
        ):
            return {"err": str(error)}
        case _:
            return {}


def _described(group: messages.DescribedGroup) -> Json:
    members = [
        {"id": one.member_id, "meta": text_of(one.metadata), "asg": text_of(one.assignment)}
        for one in group.members
    ]
    return {
        "err": str(group.error_code),
        "state": str(group.state or ""),
        "proto": group.protocol_name,
        "ptype": group.protocol_type,
        "members": members,
    }


def _listed(one: messages.ListedGroup) -> Json:
    state, kind = str(one.state), one.group_type
    return {"g": one.group_id, "ptype": one.protocol_type, "state": state, "type": kind}


def events_of(at: int, effect: interface.Effect | interface.AppendFailed) -> list[Json]:
    """Returns the events of an effect: joins, syncs, drops, timers, records, refused logs."""
    match effect:
        case interface.Respond(request_id, messages.JoinGroupResponse() as join):
            return [_join_event(at, request_id, join)]
        case interface.Respond(request_id, messages.SyncGroupResponse() as sync):
            event = {"ev": "sync", "id": request_id, "t": at, "err": str(sync.error_code)}
            protocol = {"ptype": sync.protocol_type, "proto": sync.protocol_name}
            return [event | protocol | {"asg": text_of(sync.assignment)}]
        case interface.Drop(request_id):
            return [{"ev": "drop", "id": request_id, "t": at}]
        case interface.Expired(key):
            return [{"ev": "timer", "t": at, "key": str(key)}]
        case interface.Append(_, records):
            return [record_event(at, record) for record in records]
        case interface.Unreadable():
            return [{"ev": "refused log", "t": at}]
        case _:
            return []


def _join_event(at: int, request_id: int, join: messages.JoinGroupResponse) -> Json:
    members = [
        {"id": one.member_id, "inst": one.group_instance_id, "meta": text_of(one.metadata)}
        for one in join.members
    ]
    return {
        "ev": "join",
        "id": request_id,
        "t": at,
        "err": str(join.error_code),
        "gen": join.generation_id,
        "ptype": join.protocol_type,
        "proto": join.protocol_name,
        "leader": join.leader,
        "member": join.member_id,
        "skip": join.skip_assignment,
        "members": members,
    }
