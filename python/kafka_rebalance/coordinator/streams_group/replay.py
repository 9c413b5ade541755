# SPDX-License-Identifier: Apache-2.0
"""Changes streams groups by their records: when a request writes them, and when the log is loaded.

Errors   IllegalRecord if a record does not fit. A part of the group may then have changed, and the
         caller restores or drops it.
Source   GroupMetadataManager.replay, StreamsGroupMember.Builder.updateWith (Kafka 4.4.0).
"""

from dataclasses import replace
from typing import cast

from kafka_rebalance.wire import broker_records as wire
from kafka_rebalance.wire.broker_records import (
    BrokerRecord,
    RecordType,
    Role,
    TargetEpochValue,
)
from kafka_rebalance.wire.streams_topology import StreamsTopology

from ..broker_assigned.group import DELETED_EPOCH, IllegalRecord
from ..broker_assigned.replay import (
    Groups,
    delete_current,
    delete_member,
    delete_target_epoch,
    group_of_record,
)
from .group import StreamsGroup
from .member import StreamsGroupMember, TasksState
from .tasks import NOTHING_ASSIGNED, GroupTasks, MemberTasks, Task

_T = RecordType


def replay_streams(groups: Groups, record: BrokerRecord) -> None:
    """Applies one record. Errors: IllegalRecord."""
    (kind, group_id, name), value = record
    group = group_of_record(groups, group_id, StreamsGroup, creates=value is not None)
    if group is None:
        return
    match value:
        case wire.StreamsEpochValue():
            group.epoch, group.metadata_hash = value.epoch, value.metadata_hash
            group.validated_topology_epoch = value.validated_topology_epoch
            group.assignment_configs = dict(value.assignment_configs or ())
            descriptions = value.stored_description_epoch, value.failed_description_epoch
            group.description_epochs = descriptions
        case wire.StreamsMemberValue():
            group.update(_with_fields(_member(group, name), value))
        case TargetEpochValue(epoch, timestamp):
            group.assignment_epoch, group.assignment_timestamp_ms = epoch, timestamp
        case wire.StreamsTargetValue(active, standby, warmup):
            target = GroupTasks(_tasks(active), _tasks(standby), _tasks(warmup))
            group.targets[cast(str, name)] = target
        case wire.StreamsCurrentValue():
            group.update(_with_current(_member(group, name), value))
        case StreamsTopology():
            group.topology = value
        case None:
            _bury(groups, group, kind, cast(str, name))


def _member(group: StreamsGroup, member_id: str | None) -> StreamsGroupMember:
    known = group.members.get(cast(str, member_id))
    return StreamsGroupMember(cast(str, member_id)) if known is None else known


def _with_fields(member: StreamsGroupMember, value: wire.StreamsMemberValue) -> StreamsGroupMember:
    return replace(
        member,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        topology_epoch=value.topology_epoch,
        process_id=value.process_id,
        user_endpoint=value.user_endpoint,
        client_tags=dict(value.client_tags),
    )


def _with_current(
    member: StreamsGroupMember, value: wire.StreamsCurrentValue
) -> StreamsGroupMember:
    epoch = value.member_epoch
    return replace(
        member,
        member_epoch=epoch,
        previous_member_epoch=value.previous_member_epoch,
        state=TasksState(value.state),
        assigned=MemberTasks(
            _epochs(value.active, epoch), _tasks(value.standby), _tasks(value.warmup)
        ),
        pending_revocation=MemberTasks(
            _epochs(value.active_pending, epoch),
            _tasks(value.standby_pending),
            _tasks(value.warmup_pending),
        ),
    )


def _tasks(role: Role) -> frozenset[Task]:
    return frozenset((one.subtopology_id, number) for one in role for number in one.partitions)


def _epochs(role: Role, without: int) -> dict[Task, int]:
    """Returns active tasks with their epochs; `without` is for a record that has no epochs."""
    found: dict[Task, int] = {}
    for name, numbers, epochs in role:
        if epochs is None or len(epochs) != len(numbers):
            epochs = (without,) * len(numbers)
        found |= {(name, number): epoch for number, epoch in zip(numbers, epochs, strict=True)}
    return found


def _bury(groups: Groups, group: StreamsGroup, kind: RecordType, member_id: str) -> None:
    if kind is _T.STREAMS_GROUP_METADATA:
        if not group.is_empty or group.assignment_epoch != DELETED_EPOCH:
            raise IllegalRecord(f"group {group.group_id!r} is deleted while it has members")
        del groups[group.group_id]
    elif kind is _T.STREAMS_GROUP_TOPOLOGY:
        group.topology = None
    elif kind is _T.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA:
        delete_target_epoch(group)
    elif kind is _T.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER:
        group.targets.pop(member_id, None)
    elif kind is _T.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT:
        nothing = NOTHING_ASSIGNED
        delete_current(group, member_id, assigned=nothing, pending_revocation=nothing)
    else:
        delete_member(group, member_id)
