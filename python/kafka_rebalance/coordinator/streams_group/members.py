# SPDX-License-Identifier: Apache-2.0
"""Finds the member of a request, or refuses the request, as in a consumer group.

A smaller epoch is accepted only if it is the member's previous one, and the member has no other
tasks than those that are assigned to it, each in its role.

Quirk    a request with an instance id and another member id moves the remembered target to that id
         even if it is refused. In a group that is not Stable, the holder of the instance id then
         loses its tasks at its next heartbeat; when the group is Stable again, it gets them back.
Source   GroupMetadataManager.getOrMaybeCreate…StreamsGroupMember, replaceStreamsMember,
         throwIfStreamsGroupMemberEpochIsInvalid (Kafka 4.4.0); KIP-345.
"""

from collections.abc import Collection
from dataclasses import replace
from functools import partial

from kafka_rebalance.wire.broker_groups import JOIN_EPOCH, LEAVE_STATIC_EPOCH
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.streams_groups import StreamsGroupHeartbeat, TaskList

from ..broker_assigned import log
from ..broker_assigned.members import RequestRefused, check_epoch, known_sender
from ..machine.state import CoordinatorState
from .group import StreamsGroup
from .member import StreamsGroupMember
from .records import current_record, member_record, member_tombstones, target_record
from .tasks import NOTHING, Task


def find_member(
    state: CoordinatorState,
    group: StreamsGroup,
    request: StreamsGroupHeartbeat,
    records: log.Records,
) -> StreamsGroupMember:
    """Returns the member that sends the request; a new one is in epoch 0."""
    member_id, holder = request.member_id, group.static_member(request.instance_id)
    if holder is not None and holder.member_id != member_id:
        _relabel(state, group, holder.member_id, member_id)
    if request.member_epoch != JOIN_EPOCH:
        member = known_sender(group, member_id, request.instance_id)
        _check_epoch(member, request)
        return member
    if holder is not None:
        if holder.member_epoch != LEAVE_STATIC_EPOCH:
            raise RequestRefused(ErrorCode.UNRELEASED_INSTANCE_ID)
        return _take_over(group, holder, member_id, records)
    known = group.members.get(member_id)
    return StreamsGroupMember(member_id) if known is None else known


def _relabel(state: CoordinatorState, group: StreamsGroup, old_id: str, new_id: str) -> None:
    """Gives the remembered target of a static member's old id to its new id."""
    refined = group.unlogged.refined
    targets = dict(refined.targets)
    target = targets.pop(old_id, None)
    if target is not None:
        moved = refined._replace(targets={**targets, new_id: target})
        group.set_unlogged(group.unlogged._replace(refined=moved), state.num_appends)


def _take_over(
    group: StreamsGroup, holder: StreamsGroupMember, member_id: str, records: log.Records
) -> StreamsGroupMember:
    """Replaces the holder of an instance id by a member with the new id, in epoch 0."""
    group_id, old_id = group.group_id, holder.member_id
    member = replace(
        holder, member_id=member_id, member_epoch=JOIN_EPOCH, previous_member_epoch=JOIN_EPOCH
    )
    records += member_tombstones(group_id, old_id)
    records.append(member_record(group_id, member))
    records.append(target_record(group_id, member_id, group.targets.get(old_id, NOTHING)))
    records.append(current_record(group_id, member))
    return member


def _check_epoch(member: StreamsGroupMember, request: StreamsGroupHeartbeat) -> None:
    check_epoch(member, request.member_epoch, partial(_has_only_assigned, member, request))


def _has_only_assigned(member: StreamsGroupMember, request: StreamsGroupHeartbeat) -> bool:
    active, standby, warmup = member.assigned
    return (
        _contains(active.keys(), request.active_tasks)
        and _contains(standby, request.standby_tasks)
        and _contains(warmup, request.warmup_tasks)
    )


def _contains(assigned: Collection[Task], owned: TaskList | None) -> bool:
    """Returns whether all owned tasks are assigned, and a task of each listed subtopology is."""
    if owned is None:
        return False
    names = {name for name, _ in assigned}
    return all(
        name in names and all((name, number) in assigned for number in numbers)
        for name, numbers in owned
    )
