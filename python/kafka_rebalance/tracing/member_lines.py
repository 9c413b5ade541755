# SPDX-License-Identifier: Apache-2.0
"""A member's effects as lines of a trace, and the responses that `answer` commands describe."""

import re
from collections.abc import Iterable

from kafka_rebalance.assignors.connect import Work
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.member.herder import PROTOCOLS, assigned_work, revoked_work
from kafka_rebalance.member.interface import (
    Assigned,
    Fatal,
    Lost,
    MemberEffect,
    MemberTransition,
    Revoked,
    Send,
    Start,
    Stop,
)
from kafka_rebalance.protocol import (
    ErrorCode,
    FindCoordinator,
    FindCoordinatorResponse,
    Heartbeat,
    HeartbeatResponse,
    JoinedMember,
    JoinGroup,
    JoinGroupResponse,
    LeaveGroup,
    OffsetCommit,
    OffsetCommitResponse,
    PartitionError,
    Request,
    Response,
    SyncGroup,
    SyncGroupResponse,
)
from kafka_rebalance.wire import (
    AssignmentData,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kafka_rebalance.wire.connect_protocol import (
    ConnectAssignment,
    ConnectMetadata,
    decode_connect_assignment,
    decode_connect_metadata,
    encode_connect_assignment,
    encode_connect_metadata,
)

from .text import Command, whole

_MEMBER = re.compile(r"([^,\[\]]+)(?:\[([^\[\]]*)\])?")
_CONNECT = "connect"


def listed(things: Iterable[object]) -> str:
    """Returns things as `(t-0 t-1)`."""
    return f"({' '.join(map(str, things))})"


def work_line(work: Work) -> str:
    """Returns work as `(c c-0)`: connectors, then tasks."""
    return listed([*work.connectors, *(f"{task.connector}-{task.task}" for task in work.tasks)])


def membership(member_id: str, generation_id: int, instance: str | None = None) -> str:
    """Returns `member=m instance=i generation=1`, without the parts that are absent."""
    parts = [f"member={member_id}" if member_id else "no member id"]
    if instance is not None:
        parts.append(f"instance={instance}")
    if generation_id >= 0:
        parts.append(f"generation={generation_id}")
    return " ".join(parts)


def effect_line(effect: MemberEffect, generation_id: int) -> str:
    """Returns the line of an effect; `generation_id` is the member's current generation."""
    match effect:
        case Revoked(partitions):
            return f"onPartitionsRevoked {listed(partitions)}"
        case Assigned(partitions):
            return f"onPartitionsAssigned {listed(partitions)}"
        case Lost(partitions):
            return f"onPartitionsLost {listed(partitions)}"
        case Start(work):
            return f"starts {work_line(work)}"
        case Stop(work):
            return f"stops {work_line(work)}"
        case MemberTransition(before, after):
            generation = f" generation={generation_id}" if generation_id >= 0 else ""
            return f"{before} -> {after}{generation}"
        case Fatal(error, message):
            return f"poll throws {error}: {message}"
        case Send(_, node_id, request):
            return f"-> {'any' if node_id is None else node_id}: {request_line(request)}"
    return type(effect).__name__


def request_line(request: Request) -> str:
    """Returns the line of a request, with every field that affects the coordinator or leader."""
    parts = [type(request).__name__]
    match request:
        case FindCoordinator(group_id=group_id):
            parts.append(group_id)
        case JoinGroup(member_id=member_id, protocol_type="connect", protocols=protocols):
            parts.append(membership(member_id, -1))
            parts.append(f"protocols={listed(one.name for one in protocols)}")
            report = decode_connect_metadata(protocols[0].metadata)
            parts.append(f"offset={report.config_offset}")
            if report.assignment is not None:
                parts.append(f"runs={work_line(assigned_work(report.assignment))}")
        case SyncGroup(member_id=member_id, generation_id=generation, protocol_type="connect"):
            parts.append(membership(member_id, generation))
            parts += [_assignment_line(name, data) for name, data in request.assignments]
        case JoinGroup(member_id=member_id, group_instance_id=instance, protocols=protocols):
            # Every protocol has the same subscription, except for the assignor's user data.
            sent = decode_subscription(protocols[0].metadata)
            parts.append(membership(member_id, -1, instance))
            parts.append(f"protocols={listed(one.name for one in protocols)}")
            parts.append(f"topics={listed(sent.topics)} owned={listed(sent.owned_partitions)}")
            if sent.generation_id is not None:
                parts.append(f"generation={sent.generation_id}")
        case SyncGroup(member_id=member_id, generation_id=generation, assignments=assignments):
            parts.append(membership(member_id, generation, request.group_instance_id))
            for name, data in assignments:
                parts.append(f"{name}={listed(decode_assignment(data).partitions)}")
        case Heartbeat(member_id=member_id, generation_id=generation):
            parts.append(membership(member_id, generation, request.group_instance_id))
        case OffsetCommit(member_id=member_id, generation_id=generation, offsets=offsets):
            parts.append(membership(member_id, generation, request.group_instance_id))
            parts += [f"{one.topic}-{one.partition}={one.offset}" for one in offsets]
        case LeaveGroup(members=members):
            parts += [membership(one.member_id, -1) for one in members]
    return " ".join(parts)


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
        assigned = tuple(partition(command, name) for name in rest)
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


def partition(command: Command, name: str) -> TopicPartition:
    """Parses `t-0`. Errors: GroupError."""
    topic, _, number = name.rpartition("-")
    if not topic:
        raise command.error(f"{name!r} is no partition; t-0 is")
    return TopicPartition(topic, whole(command, number))


# Connect ------------------------------------------------------------------------------------------


def _assignment_line(member_id: str, data: bytes) -> str:
    """Returns a worker's assignment as `m=(c c-0) revoked=(d) offset=3 delay=5000`."""
    message = decode_connect_assignment(data)
    parts = [f"{member_id}={work_line(assigned_work(message))}"]
    revoked = revoked_work(message)
    if revoked:
        parts.append(f"revoked={work_line(revoked)}")
    parts.append(f"offset={message.config_offset}")
    if message.delay_ms:
        parts.append(f"delay={message.delay_ms}")
    if message.error:
        parts.append(f"error={message.error}")
    return " ".join(parts)


def _encoded_assignment(request: SyncGroup, words: tuple[str, ...], command: Command) -> bytes:
    """Encodes an assignment: `c c-0 offset=3 leader=m revoked=d,d-0 delay=5m error=1`."""
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
    """Encodes a worker's report, either the one in its request or `x@3[c,c-0]`."""
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
