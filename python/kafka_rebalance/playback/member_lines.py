# SPDX-License-Identifier: Apache-2.0
"""Writes a member's effects, and the requests among them, as lines of a trace."""

from collections.abc import Iterable

from kafka_rebalance.assignors.connect import Work
from kafka_rebalance.member import interface
from kafka_rebalance.member.herder import assigned_work, revoked_work
from kafka_rebalance.wire import decode_assignment, decode_subscription
from kafka_rebalance.wire.classic_groups import (
    FindCoordinator,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    SyncGroup,
)
from kafka_rebalance.wire.connect_protocol import decode_connect_assignment, decode_connect_metadata
from kafka_rebalance.wire.messages import Request
from kafka_rebalance.wire.offsets import OffsetCommit

_CONNECT = "connect"


def listed(things: Iterable[object]) -> str:
    """Returns text such as `(t-0 t-1)`."""
    return f"({' '.join(map(str, things))})"


def work_line(work: Work) -> str:
    """Returns text such as `(c c-0)`: connectors, then tasks."""
    return listed(work.names())


def membership(member_id: str, generation_id: int, instance: str | None = None) -> str:
    """Returns text such as `member=m instance=i generation=1`, or `no member id`."""
    parts = [f"member={member_id}" if member_id else "no member id"]
    if instance is not None:
        parts.append(f"instance={instance}")
    if generation_id >= 0:
        parts.append(f"generation={generation_id}")
    return " ".join(parts)


def effect_line(effect: interface.MemberEffect, generation_id: int) -> str:
    match effect:
        case interface.Revoked(partitions):
            return f"onPartitionsRevoked {listed(partitions)}"
        case interface.PendingRevocation(partitions):
            return f"stops reading {listed(partitions)}"
        case interface.Assigned(partitions):
            return f"onPartitionsAssigned {listed(partitions)}"
        case interface.Lost(partitions):
            return f"onPartitionsLost {listed(partitions)}"
        case interface.Start(work):
            return f"starts {work_line(work)}"
        case interface.Stop(work):
            return f"stops {work_line(work)}"
        case interface.MemberTransition(before, after):
            generation = f" generation={generation_id}" if generation_id >= 0 else ""
            return f"{before} -> {after}{generation}"
        case interface.Fatal(error, message):
            return f"poll throws {error}: {message}"
        case interface.Send(_, node_id, request):
            return f"-> {'any' if node_id is None else node_id}: {request_line(request)}"
    return type(effect).__name__


def request_line(request: Request) -> str:
    """Returns the line of a request; timeouts, user data and offset metadata are left out."""
    parts = [type(request).__name__]
    match request:
        case FindCoordinator(group_id=group_id):
            parts.append(group_id)
        case JoinGroup(protocols=protocols):
            parts.append(membership(request.member_id, -1, request.group_instance_id))
            parts.append(f"protocols={listed(one.name for one in protocols)}")
            # A subscription differs by protocol only in its user data, which the line leaves out.
            is_worker = request.protocol_type == _CONNECT
            read = _report_parts if is_worker else _subscription_parts
            parts += read(protocols[0].metadata)
        case SyncGroup() | Heartbeat() | OffsetCommit():
            ids = (request.member_id, request.generation_id, request.group_instance_id)
            parts.append(membership(*ids))
            if isinstance(request, SyncGroup):
                is_worker = request.protocol_type == _CONNECT
                line = _work_assignment if is_worker else _partition_assignment
                parts += [line(name, data) for name, data in request.assignments]
            elif isinstance(request, OffsetCommit):
                parts += [f"{one.topic}-{one.partition}={one.offset}" for one in request.offsets]
        case LeaveGroup(members=members):
            parts += [membership(one.member_id, -1) for one in members]
    return " ".join(parts)


def _report_parts(metadata: bytes) -> list[str]:
    report = decode_connect_metadata(metadata)
    parts = [f"offset={report.config_offset}"]
    if report.assignment is not None:
        parts.append(f"runs={work_line(assigned_work(report.assignment))}")
    return parts


def _subscription_parts(metadata: bytes) -> list[str]:
    sent = decode_subscription(metadata)
    parts = [f"topics={listed(sent.topics)}", f"owned={listed(sent.owned_partitions)}"]
    if sent.generation_id is not None:
        parts.append(f"generation={sent.generation_id}")
    return parts


def _partition_assignment(member_id: str, data: bytes) -> str:
    return f"{member_id}={listed(decode_assignment(data).partitions)}"


def _work_assignment(member_id: str, data: bytes) -> str:
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
