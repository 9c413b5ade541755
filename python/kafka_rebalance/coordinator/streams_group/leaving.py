# SPDX-License-Identifier: Apache-2.0
"""Members leave a streams group, or are removed when a deadline passes.

    epoch -1   the member leaves; its tasks are free at once; the group gets its next epoch
    epoch -2   a static member will come back: it keeps its tasks and its target until its session
               ends

A leave computes no targets: the next heartbeat of any member does.

Source   GroupMetadataManager.streamsGroupLeave, streamsGroupFenceMember (Kafka 4.4.0).
"""

from dataclasses import replace

from kafka_rebalance.wire.broker_groups import LEAVE_STATIC_EPOCH
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.streams_groups import StreamsGroupHeartbeat, StreamsGroupHeartbeatResponse

from ..broker_assigned import log
from ..broker_assigned.group import NOT_ASSIGNED_MS
from ..broker_assigned.members import RequestRefused, known_sender
from ..broker_assigned.timeouts import cancel_all, overdue_member
from ..machine.continuations import Continuation, SendResponse
from ..machine.deadlines import DeadlineKey
from ..machine.events import Received
from ..machine.state import CoordinatorState
from .group import StreamsGroup
from .member import StreamsGroupMember
from .records import current_record, epoch_record, member_tombstones, target_epoch_record
from .tasks import NOTHING_ASSIGNED


def leave(state: CoordinatorState, event: Received, request: StreamsGroupHeartbeat) -> None:
    """Handles a heartbeat with epoch -1 or -2. Errors: RequestRefused."""
    group = state.groups.get(request.group_id)
    if not isinstance(group, StreamsGroup):
        raise RequestRefused(ErrorCode.GROUP_ID_NOT_FOUND)
    ask_shutdown(group, request)
    epoch = request.member_epoch
    response = StreamsGroupHeartbeatResponse(member_id=request.member_id, member_epoch=epoch)
    then = SendResponse(event.request_id, response, request)
    member = known_sender(group, request.member_id, request.instance_id)
    if request.instance_id is not None and epoch == LEAVE_STATIC_EPOCH:
        away = current_record(group.group_id, _away(member))
        log.write(state, group.group_id, [away], then)
        return
    _remove(state, group, member, then)


def ask_shutdown(group: StreamsGroup, request: StreamsGroupHeartbeat) -> None:
    """Stores the first member that asks to shut the application down."""
    if request.shutdown_application and group.shutdown_member_id is None:
        group.shutdown_member_id = request.member_id


def _away(member: StreamsGroupMember) -> StreamsGroupMember:
    zeros = dict.fromkeys(member.assigned.active, 0)
    return replace(
        member,
        member_epoch=LEAVE_STATIC_EPOCH,
        assigned=member.assigned._replace(active=zeros),
        pending_revocation=NOTHING_ASSIGNED,
    )


def _remove(
    state: CoordinatorState, group: StreamsGroup, member: StreamsGroupMember, then: Continuation
) -> None:
    """Removes a member, and makes the group's next epoch."""
    group_id, epoch = group.group_id, group.epoch + 1
    validated, configs = group.validated_topology_epoch, group.assignment_configs
    records: log.Records = [*member_tombstones(group_id, member.member_id)]
    records.append(epoch_record(group, epoch, group.metadata_hash, validated, configs))
    if len(group.members) == 1:
        records.append(target_epoch_record(group_id, epoch, NOT_ASSIGNED_MS))
    cancel_all(state, group_id, member.member_id)
    log.write(state, group_id, records, then)


def member_deadline(state: CoordinatorState, group: StreamsGroup, key: DeadlineKey) -> None:
    """Removes the member of a deadline that has passed, unless it has revoked in time."""
    overdue = overdue_member(state, group, key)
    if overdue is not None:
        _remove(state, group, *overdue)
