# SPDX-License-Identifier: Apache-2.0
"""Responses and records as lines of a trace, with short names in place of member ids."""

from collections.abc import Sequence

from kafka_rebalance.coordinator.interface import LogRecord
from kafka_rebalance.protocol.messages import (
    DeleteGroupsResponse,
    DescribedGroup,
    DescribeGroupsResponse,
    EndTransactionResponse,
    FindCoordinatorResponse,
    HeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupResponse,
    ListGroupsResponse,
    OffsetCommitResponse,
    OffsetDeleteResponse,
    OffsetFetchResponse,
    Response,
    SyncGroupResponse,
)
from kafka_rebalance.wire.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_key,
    decode_value,
)


class IdNames:
    """Maps member ids to a trace's names: `c0`, and `c0#2` for the second id of `c0`."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._ids: dict[str, str] = {}

    def call(self, member_id: str, client: str) -> None:
        """Records that a client has received an id."""
        if member_id and member_id not in self._names:
            used = sum(name.partition("#")[0] == client for name in self._names.values())
            name = f"{client}#{used + 1}" if used else client
            self._names[member_id] = name
            self._ids[name] = member_id

    def name_of(self, member_id: str) -> str:
        """Returns the name of an id, or the id itself if it has none."""
        return self._names.get(member_id, member_id)

    def id_of(self, name: str) -> str:
        """Returns the id behind a name, or the text itself."""
        return self._ids.get(name, name)

    def in_text(self, text: str) -> str:
        """Returns a text with names in place of ids."""
        for member_id, name in self._names.items():
            text = text.replace(member_id, name)
        return text

    def list(self, ids: Sequence[str]) -> str:
        """Returns the names of several ids, as one text."""
        return f"({' '.join(self.name_of(one) for one in ids)})"

    def records(self, records: Sequence[LogRecord]) -> str:
        """Returns records in short form, as one text."""
        return "; ".join(self._record(record) for record in records)

    def _record(self, record: LogRecord) -> str:
        key = decode_key(record.key)
        match key, decode_value(key, record.value):
            case OffsetCommitKey(group_id, topic, partition), None:
                return f"{group_id} {topic}-{partition} tombstone"
            case OffsetCommitKey(group_id, topic, partition), OffsetCommitValue() as value:
                return f"{group_id} {topic}-{partition}={value.offset}"
            case GroupMetadataKey(group_id), GroupMetadataValue() as value:
                members = self.list([one.member_id for one in value.members])
                return f"{group_id} generation={value.generation_id} members={members}"
            case GroupMetadataKey(group_id), _:
                return f"{group_id} tombstone"
        return "another kind of record"


def response_line(response: Response, names: IdNames) -> str:
    """Returns the line of a response; empty fields are left out."""
    match response:
        case FindCoordinatorResponse(error_code=error, node_id=node):
            return f"FindCoordinator {error} node={node}"
        case JoinGroupResponse():
            return _joined(response, names)
        case SyncGroupResponse(error_code=error, assignment=assignment):
            return f"SyncGroup {error}" + (f" assignment={_text(assignment)}" if assignment else "")
        case HeartbeatResponse(error_code=error):
            return f"Heartbeat {error}"
        case LeaveGroupResponse(error_code=error, members=members):
            left = (
                f"{names.name_of(one.member_id) or one.group_instance_id}={one.error_code}"
                for one in members
            )
            return " ".join([f"LeaveGroup {error}", *left])
        case OffsetCommitResponse(partitions=partitions):
            codes = (f"{one.topic}-{one.partition}={one.error_code}" for one in partitions)
            return " ".join(["OffsetCommit", *codes])
        case EndTransactionResponse(error_code=error):
            return f"EndTransaction {error}"
        case OffsetFetchResponse(error_code=error, offsets=offsets):
            found = (
                f"{one.topic}-{one.partition}={one.error_code if one.error_code else one.offset}"
                for one in offsets
            )
            return " ".join([f"OffsetFetch {error}", *found])
        case OffsetDeleteResponse(error_code=error, partitions=partitions):
            codes = (f"{one.topic}-{one.partition}={one.error_code}" for one in partitions)
            return " ".join([f"OffsetDelete {error}", *codes])
        case DeleteGroupsResponse(groups=groups):
            return " ".join(["DeleteGroups", *(f"{name}={error}" for name, error in groups)])
        case ListGroupsResponse(error_code=error, groups=groups):
            listed = (f"{one.group_id}={one.state}" for one in groups)
            return " ".join([f"ListGroups {error}", *listed])
        case DescribeGroupsResponse(groups=groups):
            return " ".join(["DescribeGroups", *(_described(one, names) for one in groups)])


def _joined(response: JoinGroupResponse, names: IdNames) -> str:
    parts = [f"JoinGroup {response.error_code}"]
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
    return " ".join(parts)


def _described(group: DescribedGroup, names: IdNames) -> str:
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
