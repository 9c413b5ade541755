# SPDX-License-Identifier: Apache-2.0
"""Formats requests and effects of members, and responses and records of a coordinator, as lines of
a trace.
"""

from collections.abc import Iterable, Sequence

from kafka_rebalance.assignors.connect.work import Work
from kafka_rebalance.coordinator.machine.events import LogRecord
from kafka_rebalance.member import interface
from kafka_rebalance.member.worker import assigned_work, revoked_work
from kafka_rebalance.wire import classic_groups as classic
from kafka_rebalance.wire import group_records as wire
from kafka_rebalance.wire import offsets
from kafka_rebalance.wire.connect_protocol import decode_connect_assignment, decode_connect_metadata
from kafka_rebalance.wire.consumer_protocol import decode_assignment, decode_subscription
from kafka_rebalance.wire.messages import Request, Response

_CONNECT = "connect"


def listed(things: Iterable[object]) -> str:
    """Returns text such as `(t-0 t-1)`."""
    return f"({' '.join(map(str, things))})"


def work_line(work: Work) -> str:
    """Returns text such as `(c c-0)`: connectors, then tasks."""
    return listed(work.names())


def _pairs(**given: object) -> list[str]:
    """Returns strings such as `generation=1`, one for each value that is not None."""
    return [f"{name}={value}" for name, value in given.items() if value is not None]


def membership(member_id: str, generation_id: int, instance: str | None = None) -> str:
    """Returns text such as `member=m instance=i generation=1`, or `no member id`."""
    who = f"member={member_id}" if member_id else "no member id"
    generation = generation_id if generation_id >= 0 else None
    return " ".join([who, *_pairs(instance=instance, generation=generation)])


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
    """Returns the line of a request, without timeouts, user data and offset metadata."""
    parts = [type(request).__name__]
    match request:
        case classic.FindCoordinator(group_id=group_id):
            parts.append(group_id)
        case classic.JoinGroup(protocols=protocols):
            parts.append(membership(request.member_id, -1, request.group_instance_id))
            parts.append(f"protocols={listed(one.name for one in protocols)}")
            # One protocol is enough: its metadata differs from the others' only in user data, which
            # is left out.
            is_worker = request.protocol_type == _CONNECT
            read = _report_parts if is_worker else _subscription_parts
            parts += read(protocols[0].metadata)
        case classic.SyncGroup() | classic.Heartbeat() | offsets.OffsetCommit():
            ids = (request.member_id, request.generation_id, request.group_instance_id)
            parts.append(membership(*ids))
            if isinstance(request, classic.SyncGroup):
                is_worker = request.protocol_type == _CONNECT
                line = _work_assignment if is_worker else _partition_assignment
                parts += [line(name, data) for name, data in request.assignments]
            elif isinstance(request, offsets.OffsetCommit):
                parts += [f"{one.topic}-{one.partition}={one.offset}" for one in request.offsets]
        case classic.LeaveGroup(members=members):
            parts += [membership(one.member_id, -1) for one in members]
    return " ".join(parts)


def _report_parts(metadata: bytes) -> list[str]:
    report = decode_connect_metadata(metadata)
    runs = None if report.assignment is None else work_line(assigned_work(report.assignment))
    return _pairs(offset=report.config_offset, runs=runs)


def _subscription_parts(metadata: bytes) -> list[str]:
    sent = decode_subscription(metadata)
    topics, owned = listed(sent.topics), listed(sent.owned_partitions)
    return _pairs(topics=topics, owned=owned, generation=sent.generation_id)


def _partition_assignment(member_id: str, data: bytes) -> str:
    return f"{member_id}={listed(decode_assignment(data).partitions)}"


def _work_assignment(member_id: str, data: bytes) -> str:
    """Returns a worker's assignment as `m=(c c-0) revoked=(d) offset=3 delay=5000`."""
    message = decode_connect_assignment(data)
    revoked = revoked_work(message)
    parts = _pairs(
        revoked=work_line(revoked) if revoked else None,
        offset=message.config_offset,
        delay=message.delay_ms or None,
        error=message.error or None,
    )
    return " ".join([f"{member_id}={work_line(assigned_work(message))}", *parts])


class IdNames:
    """Maps member ids to their names in a trace: `c0`, and `c0#2` for the second id of `c0`."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._ids: dict[str, str] = {}

    def call(self, member_id: str, client: str) -> None:
        if member_id and member_id not in self._names:
            used = sum(name.partition("#")[0] == client for name in self._names.values())
            name = f"{client}#{used + 1}" if used else client
            self._names[member_id] = name
            self._ids[name] = member_id

    def name_of(self, member_id: str) -> str:
        """Returns the name of an id; the id itself if it has no name."""
        return self._names.get(member_id, member_id)

    def id_of(self, name: str) -> str:
        """Returns the id that has this name; the string itself if it is not a name."""
        return self._ids.get(name, name)

    def in_text(self, text: str) -> str:
        for member_id, name in self._names.items():
            text = text.replace(member_id, name)
        return text

    def list(self, ids: Sequence[str]) -> str:
        return listed(map(self.name_of, ids))

    def records(self, records: Sequence[LogRecord]) -> str:
        return "; ".join(self._record(record) for record in records)

    def _record(self, record: LogRecord) -> str:
        key = wire.decode_key(record.key)
        match key, wire.decode_value(key, record.value):
            case wire.OffsetCommitKey(group_id, topic, partition), None:
                return f"{group_id} {topic}-{partition} tombstone"
            case wire.OffsetCommitKey(
                group_id, topic, partition
            ), wire.OffsetCommitValue() as value:
                return f"{group_id} {topic}-{partition}={value.offset}"
            case wire.GroupMetadataKey(group_id), wire.GroupMetadataValue() as value:
                members = self.list([one.member_id for one in value.members])
                return f"{group_id} generation={value.generation_id} members={members}"
            case wire.GroupMetadataKey(group_id), _:
                return f"{group_id} tombstone"
        return "another kind of record"


def response_line(response: Response, names: IdNames) -> str:
    """Returns the line of a response, without its empty fields."""
    parts = [type(response).__name__.removesuffix("Response")]
    error = getattr(response, "error_code", None)
    if error is not None:
        parts.append(str(error))
    return " ".join([*parts, *_details(response, names)])


def _details(response: Response, names: IdNames) -> list[str]:
    match response:
        case classic.FindCoordinatorResponse(node_id=node):
            return [f"node={node}"]
        case classic.JoinGroupResponse():
            return _joined(response, names)
        case classic.SyncGroupResponse(assignment=assignment):
            return [f"assignment={_text(assignment)}"] if assignment else []
        case classic.LeaveGroupResponse(members=members):
            return [
                f"{names.name_of(one.member_id) or one.group_instance_id}={one.error_code}"
                for one in members
            ]
        case offsets.OffsetFetchResponse(offsets=fetched):
            return [
                f"{one.topic}-{one.partition}={one.error_code if one.error_code else one.offset}"
                for one in fetched
            ]
        case (
            offsets.OffsetCommitResponse(partitions=partitions)
            | offsets.OffsetDeleteResponse(partitions=partitions)
        ):
            return [f"{one.topic}-{one.partition}={one.error_code}" for one in partitions]
        case classic.DeleteGroupsResponse(groups=groups):
            return [f"{group_id}={error}" for group_id, error in groups]
        case classic.ListGroupsResponse(groups=groups):
            return [f"{one.group_id}={one.state}" for one in groups]
        case classic.DescribeGroupsResponse(groups=groups):
            return [_described(one, names) for one in groups]
    return []  # responses to Heartbeat and EndTransaction have only an error code


def _joined(response: classic.JoinGroupResponse, names: IdNames) -> list[str]:
    members = [one.member_id for one in response.members]
    parts = _pairs(
        generation=response.generation_id if response.generation_id >= 0 else None,
        protocol=response.protocol_name,
        leader=names.name_of(response.leader) if response.leader else None,
        members=names.list(members) if members else None,
    )
    return [*parts, "skip_assignment"] if response.skip_assignment else parts


def _described(group: classic.DescribedGroup, names: IdNames) -> str:
    parts = [f"{group.group_id}={group.state}"]
    if group.error_code:
        parts.append(str(group.error_code))
    parts += _pairs(protocol=group.protocol_name or None)
    parts += [f"{names.name_of(one.member_id)}={_text(one.assignment)}" for one in group.members]
    return " ".join(parts)


def _text(data: bytes) -> str:
    plain = all(32 < byte <= 126 for byte in data)
    return data.decode("ascii") if plain else f"hex:{data.hex()}"
