# SPDX-License-Identifier: Apache-2.0
"""Responses to a member's requests, built from the `answer` commands of a trace."""

import re
from collections.abc import Iterable

from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.member.worker import PROTOCOLS
from kafka_rebalance.playback.text import Command, partition, whole
from kafka_rebalance.wire.classic_groups import (
    FindCoordinator,
    FindCoordinatorResponse,
    Heartbeat,
    HeartbeatResponse,
    JoinedMember,
    JoinGroup,
    JoinGroupResponse,
    SyncGroup,
    SyncGroupResponse,
)
from kafka_rebalance.wire.connect_protocol import (
    ConnectAssignment,
    ConnectMetadata,
    decode_connect_metadata,
    encode_connect_assignment,
    encode_connect_metadata,
)
from kafka_rebalance.wire.consumer_protocol import (
    AssignmentData,
    Subscription,
    encode_assignment,
    encode_subscription,
)
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import Request, Response
from kafka_rebalance.wire.offsets import OffsetCommit, OffsetCommitResponse, PartitionError

_MEMBER = re.compile(r"([^,\[\]]+)(?:\[([^\[\]]*)\])?")
_CONNECT = "connect"


def answer_to(request: Request, command: Command) -> Response:
    """Returns the response that `answer KIND [ERROR] …` describes. Errors: GroupError."""
    rest = command.words[2:]
    error = ErrorCode.NONE
    if rest and rest[0] in ErrorCode.__members__:
        error, rest = ErrorCode[rest[0]], rest[1:]
    if isinstance(request, SyncGroup) and request.protocol_type == _CONNECT:
        return SyncGroupResponse(
            error_code=error, assignment=_encoded_assignment(request, rest, command)
        )
    if isinstance(request, SyncGroup):
        command.only()
        assigned = tuple(TopicPartition(*partition(command, name)) for name in rest)
        return SyncGroupResponse(
            error_code=error, assignment=encode_assignment(AssignmentData(assigned))
        )
    if rest:
        raise command.error(f"no error code {rest[0]!r}")
    match request:
        case FindCoordinator():
            command.only("node")
            return FindCoordinatorResponse(error_code=error, node_id=command.number("node", -1))
        case JoinGroup():
            return _join_answer(request, error, command)
        case Heartbeat():
            command.only()
            return HeartbeatResponse(error_code=error)
        case OffsetCommit(offsets=offsets):
            command.only()
            return OffsetCommitResponse(
                partitions=tuple(PartitionError(one.topic, one.partition, error) for one in offsets)
            )
    raise command.error(f"nobody waits for the answer to {type(request).__name__}")


def _join_answer(request: JoinGroup, error: ErrorCode, command: Command) -> JoinGroupResponse:
    command.only("generation", "leader", "member", "members", "type", "protocol", "skip_assignment")
    member_id = command.option("member", request.member_id)
    members = []
    for name, topics in _MEMBER.findall(command.option("members")):
        if request.protocol_type == _CONNECT:
            instance, metadata = None, _report(request, member_id, name, topics, command)
            name = name.partition("@")[0]
        elif name == member_id:
            instance, metadata = request.group_instance_id, request.protocols[0].metadata
        else:
            instance = None
            metadata = encode_subscription(Subscription(tuple(filter(None, topics.split(",")))))
        members.append(JoinedMember(name, instance, metadata))
    return JoinGroupResponse(
        error_code=error,
        generation_id=command.number("generation", -1),
        protocol_type=command.option("type", request.protocol_type),
        protocol_name=command.option("protocol", request.protocols[0].name),
        leader=command.option("leader"),
        skip_assignment=command.option("skip_assignment") == "yes",
        member_id=member_id,
        members=tuple(members),
    )


# Connect ------------------------------------------------------------------------------------------


def _encoded_assignment(request: SyncGroup, words: tuple[str, ...], command: Command) -> bytes:
    """Encodes an assignment such as `c c-0 offset=3 leader=m revoked=d,d-0 delay=5m error=1`."""
    if words == ("as-sent",):
        command.only()
        return dict(request.assignments).get(request.member_id, b"")
    command.only("offset", "leader", "revoked", "delay", "error")
    connectors, tasks = _work(words)
    revoked_connectors, revoked_tasks = _work(filter(None, command.option("revoked").split(",")))
    message = ConnectAssignment(
        error=command.number("error", 0),
        leader=command.option("leader", "x"),
        leader_url="http://x/",
        config_offset=command.number("offset", -1),
        connectors=connectors,
        tasks=tasks,
        revoked_connectors=revoked_connectors,
        revoked_tasks=revoked_tasks,
        delay_ms=command.ms("delay", 0),
        version=PROTOCOLS[request.protocol_name or ""],
    )
    return encode_connect_assignment(message)


def _report(request: JoinGroup, member_id: str, name: str, work: str, command: Command) -> bytes:
    """Encodes a worker's report: the one in its request, or another such as `x@3[c,c-0]`."""
    protocol = command.option("protocol", request.protocols[0].name)
    own = next((one.metadata for one in request.protocols if one.name == protocol), None)
    if own is None:
        raise command.error(f"no protocol {protocol!r} was offered")
    if name == member_id:
        return own
    mine = decode_connect_metadata(own)
    name, _, offset = name.partition("@")
    connectors, tasks = _work(filter(None, work.split(",")))
    assignment = ConnectAssignment(connectors=connectors, tasks=tasks, version=mine.version)
    return encode_connect_metadata(
        ConnectMetadata(
            url=f"http://{name}/",
            config_offset=whole(command, offset) if offset else mine.config_offset,
            assignment=assignment,
            version=mine.version,
        )
    )


def _work(names: Iterable[str]) -> tuple[tuple[str, ...], tuple[tuple[str, int], ...]]:
    """Splits names such as `c c-0` into connectors and tasks."""
    connectors, tasks = [], []
    for name in names:
        connector, _, number = name.rpartition("-")
        if connector and number.isdecimal():
            tasks.append((connector, int(number)))
        else:
            connectors.append(name)
    return tuple(connectors), tuple(tasks)
