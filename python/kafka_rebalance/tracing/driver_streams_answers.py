# SPDX-License-Identifier: Apache-2.0
"""Writes the responses about streams groups, and their state, as JSON for the driver's answers."""

from collections.abc import Iterable
from typing import Any

from kafka_rebalance.coordinator.streams_group.group import StreamsGroup
from kafka_rebalance.coordinator.streams_group.member import StreamsGroupMember
from kafka_rebalance.coordinator.streams_group.tasks import (
    NOTHING,
    GroupTasks,
    MemberTasks,
    Task,
    task_list,
)
from kafka_rebalance.protocol import messages, streams_messages
from kafka_rebalance.protocol.error_codes import ErrorCode
from kafka_rebalance.protocol.streams_messages import DescribedTasks, TaskList

from .driver_consumer_answers import described

_Json = dict[str, Any]


def answer_of_streams(response: messages.Response) -> _Json | None:
    """Returns the keys of a response about streams groups, None for any other response."""
    match response:
        case streams_messages.StreamsGroupHeartbeatResponse(error_code=ErrorCode.NONE):
            return {
                "err": str(ErrorCode.NONE),
                "member": response.member_id,
                "epoch": response.member_epoch,
                "interval": response.heartbeat_interval_ms,
                "active": _listed(response.active_tasks),
                "standby": _listed(response.standby_tasks),
                "warmup": _listed(response.warmup_tasks),
                "status": [one.name for one in response.status],
                "creatable": sorted(one.name for one in response.creatable_topics),
                "counts": {one.name: one.partitions for one in response.creatable_topics},
            }
        case streams_messages.StreamsGroupHeartbeatResponse(error_code=error):
            return {"err": str(error)}
        case streams_messages.StreamsGroupDescribeResponse(groups=(group,)):
            members = {one.member_id: _described_member(one) for one in group.members}
            return described(group, members)
        case _:
            return None


def _listed(tasks: TaskList | None) -> _Json | None:
    return None if tasks is None else {name: list(numbers) for name, numbers in tasks}


def _described_member(one: streams_messages.DescribedStreamsMember) -> _Json:
    return {
        "epoch": one.member_epoch,
        "inst": one.instance_id,
        "rack": one.rack_id,
        "process": one.process_id,
        "asg": _roles(one.assignment),
        "target": _roles(one.target_assignment),
    }


def _roles(tasks: DescribedTasks) -> _Json:
    return {name: _listed(listed) for name, listed in tasks._asdict().items()}


def streams_state(group: StreamsGroup) -> _Json:
    """Returns the epochs and members of a group."""
    return {
        "type": "streams",
        "state": str(group.state),
        "epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
        "assigned_at": group.assignment_timestamp_ms,
        "members": {
            one.member_id: _member(one, group.targets.get(one.member_id, NOTHING))
            for one in group.members.values()
        },
    }


def _member(member: StreamsGroupMember, target: GroupTasks) -> _Json:
    return {
        "epoch": member.member_epoch,
        "prev": member.previous_member_epoch,
        "state": member.state.name,
        "assigned": _with_epochs(member.assigned),
        "pending": _with_epochs(member.pending_revocation),
        "target": {name: _numbers(tasks) for name, tasks in target._asdict().items()},
    }


def _with_epochs(tasks: MemberTasks) -> _Json:
    active: _Json = {}
    for (name, number), epoch in tasks.active.items():
        active.setdefault(name, {})[str(number)] = epoch
    return {"active": active, "standby": _numbers(tasks.standby), "warmup": _numbers(tasks.warmup)}


def _numbers(tasks: Iterable[Task]) -> _Json | None:
    return _listed(task_list(tasks))
