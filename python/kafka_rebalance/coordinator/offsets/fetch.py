# SPDX-License-Identifier: Apache-2.0
"""OffsetFetch: returns durable offsets at once, or stable offsets after the appends in flight.

Source   OffsetMetadataManager.fetchOffsets; docs/behaviour/coordinator.md#84-offsetfetch;
         KIP-447 (stable).
"""

from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import GroupState
from kafka_rebalance.wire.offsets import FetchedOffset, OffsetFetch, OffsetFetchResponse

from ..machine.events import Received
from ..machine.state import AnyGroup, CoordinatorState
from .store import GroupOffsets


def offset_fetch(state: CoordinatorState, event: Received, request: OffsetFetch) -> None:
    """Returns durable offsets; with `require_stable`, the latest ones, once they are durable."""
    if request.require_stable:
        offsets = state.offsets.latest(request.group_id)
        response = _fetched(state, state.groups.get(request.group_id), offsets, request)
        state.respond_when_durable(event.request_id, request, response)
    else:
        offsets = state.offsets.durable(request.group_id)
        group = state.durable_group(request.group_id)
        state.respond(event.request_id, _fetched(state, group, offsets, request))


def _fetched(
    state: CoordinatorState, group: AnyGroup | None, offsets: GroupOffsets, request: OffsetFetch
) -> OffsetFetchResponse:
    error = ErrorCode.NONE if group is None else state.kind(group).refuse_fetch(group, request)
    if error is not ErrorCode.NONE:
        return OffsetFetchResponse(error_code=error)
    # Committed offsets of a removed group are ignored, but its open transactions still matter.
    is_absent = group is None or group.state is GroupState.DEAD or not group.has_offsets
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
