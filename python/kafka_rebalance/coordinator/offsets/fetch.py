# SPDX-License-Identifier: Apache-2.0
"""OffsetFetch: returns durable offsets at once, or stable offsets after the appends in flight.

Source   OffsetMetadataManager.fetchOffsets; docs/behaviour/coordinator.md#84-offsetfetch;
         KIP-447 (stable).
"""

from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.group_states import GroupState
from kafka_rebalance.wire.offsets import FetchedOffset, OffsetFetch, OffsetFetchResponse

from ..classic_group.group import Group
from ..consumer_group.group import ConsumerGroup
from ..consumer_group.offsets import refuse_fetch
from ..machine.events import Received
from ..machine.state import AnyGroup, CoordinatorState
from ..share_group.group import ShareGroup
from ..streams_group.group import StreamsGroup
from ..streams_group.offsets import refuse_streams_fetch
from .store import GroupOffsets


def offset_fetch(state: CoordinatorState, event: Received, request: OffsetFetch) -> None:
    """Returns durable offsets; with `require_stable`, the latest ones, once they are durable."""
    if request.require_stable:
        offsets = state.offsets.latest(request.group_id)
        response = _fetched(state.groups.get(request.group_id), offsets, request)
        state.respond_when_durable(event.request_id, request, response)
    else:
        offsets = state.offsets.durable(request.group_id)
        group = state.durable_group(request.group_id)
        state.respond(event.request_id, _fetched(group, offsets, request))


def _fetched(
    group: AnyGroup | None, offsets: GroupOffsets, request: OffsetFetch
) -> OffsetFetchResponse:
    if isinstance(group, ConsumerGroup):
        error = refuse_fetch(group, request)
        if error is not ErrorCode.NONE:
            return OffsetFetchResponse(error_code=error)
    elif isinstance(group, StreamsGroup):
        error = refuse_streams_fetch(group, request)
        if error is not ErrorCode.NONE:
            return OffsetFetchResponse(error_code=error)
    # Committed offsets of a removed group are ignored, but its open transactions still matter.
    is_dead = isinstance(group, Group) and group.is_(GroupState.DEAD)
    is_absent = group is None or is_dead or isinstance(group, ShareGroup)
    wanted = request.partitions
    if wanted is None:
        there = () if is_absent else offsets.values()
        wanted = tuple(sorted(partition for partition, _ in there))
    found = []
    for partition in wanted:
        value = None if is_absent else offsets.value(partition)
        if request.require_stable and offsets.is_pending(partition):
            unstable = ErrorCode.UNSTABLE_OFFSET_COMMIT
            found.append(FetchedOffset(*partition, error_code=unstable))
        elif value is None:
            found.append(FetchedOffset(*partition))
        else:
            epoch = -1 if value.leader_epoch is None else value.leader_epoch
            found.append(FetchedOffset(*partition, value.offset, epoch, value.metadata))
    return OffsetFetchResponse(offsets=tuple(found))
