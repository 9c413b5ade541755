# SPDX-License-Identifier: Apache-2.0
"""The response to a heartbeat: the member's tasks, if it joins or has got others, and the statuses.

Source   GroupMetadataManager.streamsGroupHeartbeat (Kafka 4.4.0).
"""

from dataclasses import replace

from kafka_rebalance.wire.broker_groups import JOIN_EPOCH
from kafka_rebalance.wire.streams_groups import (
    StreamsGroupHeartbeat,
    StreamsGroupHeartbeatResponse,
    StreamsStatus,
)

from ..coordinator_state import CoordinatorState
from ..interface import Received
from .group import StreamsGroup
from .member import StreamsGroupMember
from .target import StreamsChange
from .tasks import task_list
from .topology import ConfiguredTopology

TAGS = "rack.aware.assignment.tags"
_KNOWS_TAGS = 1


def group_status(
    event: Received,
    group: StreamsGroup,
    change: StreamsChange,
    member: StreamsGroupMember,
) -> list[StreamsStatus]:
    """Returns what the member learns about its group, besides delays and a stale topology."""
    status = [] if change.topology.status is None else [change.topology.status]
    if group.shutdown_member_id is not None:
        status.append(StreamsStatus.SHUTDOWN_APPLICATION)
    tags = [one for one in change.configs.get(TAGS, "").split(",") if one]
    knows = event.api_version is None or event.api_version >= _KNOWS_TAGS
    if knows and any(tag not in member.client_tags for tag in tags):
        status.append(StreamsStatus.MISSING_CLIENT_TAGS)
    return status


def response_of(
    state: CoordinatorState,
    request: StreamsGroupHeartbeat,
    members: tuple[StreamsGroupMember, StreamsGroupMember],
    topology: ConfiguredTopology,
    status: list[StreamsStatus],
) -> StreamsGroupHeartbeatResponse:
    """Returns the response; `members` is the member before and after the heartbeat."""
    old, new = members
    response = StreamsGroupHeartbeatResponse(
        member_id=new.member_id,
        member_epoch=new.member_epoch,
        heartbeat_interval_ms=state.config.group_streams_heartbeat_interval_ms,
        status=tuple(status),
        creatable_topics=topology.creatable_topics,
    )
    if request.member_epoch != JOIN_EPOCH and old.assigned == new.assigned:
        return response
    active, standby, warmup = map(task_list, new.assigned)
    return replace(response, active_tasks=active, standby_tasks=standby, warmup_tasks=warmup)
