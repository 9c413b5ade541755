# SPDX-License-Identifier: Apache-2.0
"""Writes a coordinator's responses and records as lines of a trace, with names for member ids."""

from collections.abc import Sequence

from kafka_rebalance.coordinator.machine.events import LogRecord
from kafka_rebalance.wire import classic_groups as classic
from kafka_rebalance.wire import group_records as wire
from kafka_rebalance.wire.messages import Response
from kafka_rebalance.wire.offsets import (
    OffsetCommitResponse,
    OffsetDeleteResponse,
    OffsetFetchResponse,
)


class IdNames:
    """Maps member ids to the names in a trace: `c0`, and `c0#2` for the second id of `c0`."""

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
        """Returns the id with this name; the text itself if it is not a name."""
        return self._ids.get(name, name)

    def in_text(self, text: str) -> str:
        for member_id, name in self._names.items():
            text = text.replace(member_id, name)
        return text

    def list(self, ids: Sequence[str]) -> str:
        return f"({' '.join(self.name_of(one) for one in ids)})"

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
    """Returns the line of a response; empty fields are left out."""
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
        case OffsetFetchResponse(offsets=offsets):
            return [
                f"{one.topic}-{one.partition}={one.error_code if one.error_code else one.offset}"
                for one in offsets
            ]
        case (
            OffsetCommitResponse(partitions=partitions)
            | OffsetDeleteResponse(partitions=partitions)
        ):
            return [f"{one.topic}-{one.partition}={one.error_code}" for one in partitions]
        case classic.DeleteGroupsResponse(groups=groups):
            return [f"{group_id}={error}" for group_id, error in groups]
        case classic.ListGroupsResponse(groups=groups):
            return [f"{one.group_id}={one.state}" for one in groups]
        case classic.DescribeGroupsResponse(groups=groups):
            return [_described(one, names) for one in groups]
    return []  # a Heartbeat or an EndTransaction, whose response is only an error code


def _joined(response: classic.JoinGroupResponse, names: IdNames) -> list[str]:
    parts = []
    if response.generation_id >= 0:
        parts.append(f"generation={response.generation_id}")
    if response.protocol_name is not None:
        parts.append(f"protocol={response.protocol_name}")
    if response.leader:
        parts.append(f"leader={names.name_of(response.leader)}")
    if response.members:
        parts.append(f"members={names.list([one.member_id for one in response.members])}")
    if response.skip_assignment:
        parts.append("skip_assignment")
    return parts


def _described(group: classic.DescribedGroup, names: IdNames) -> str:
    parts = [f"{group.group_id}={group.state}"]
    if group.error_code:
        parts.append(str(group.error_code))
    if group.protocol_name:
        parts.append(f"protocol={group.protocol_name}")
    parts += [f"{names.name_of(one.member_id)}={_text(one.assignment)}" for one in group.members]
    return " ".join(parts)


def _text(data: bytes) -> str:
    plain = all(32 < byte <= 126 for byte in data)
    return data.decode("ascii") if plain else f"hex:{data.hex()}"
