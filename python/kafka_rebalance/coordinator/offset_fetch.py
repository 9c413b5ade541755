"""OffsetFetch: plain ones at once, stable ones when what is under way has ended.

Source   OffsetMetadataManager.fetchOffsets; section 5.5 of the behaviour; KIP-447 (stable).
"""

from .error_codes import ErrorCode
from .events import Received
from .messages import FetchedOffset, OffsetFetch, OffsetFetchResponse
from .state import State, WaitingFetch
from .states import GroupState


def offset_fetch(state: State, event: Received, request: OffsetFetch) -> None:
    """Gives offsets; stable ones when the appends that are under way have ended."""
    if request.require_stable and state.writes:
        waiting = WaitingFetch(request, set(state.writes))
        state.waiting_fetches[event.request_id] = waiting
        return
    state.respond(event.request_id, fetched(state, request))


def fetched(state: State, request: OffsetFetch) -> OffsetFetchResponse:
    """What is durable, or UNSTABLE_OFFSET_COMMIT where a transaction may still change it."""
    offsets = state.offsets.durable(request.group_id)
    group = state.groups.get(request.group_id)
    if group is None or group.is_(GroupState.DEAD):
        partitions = request.partitions or ()
        return OffsetFetchResponse(offsets=tuple(FetchedOffset(*one) for one in partitions))
    wanted = request.partitions
    if wanted is None:
        wanted = tuple(sorted(partition for partition, _ in offsets.values()))
    found = []
    for partition in wanted:
        value = offsets.value(partition)
        if request.require_stable and offsets.is_pending(partition):
            unstable = ErrorCode.UNSTABLE_OFFSET_COMMIT
            found.append(FetchedOffset(*partition, error_code=unstable))
        elif value is None:
            found.append(FetchedOffset(*partition))
        else:
            epoch = -1 if value.leader_epoch is None else value.leader_epoch
            found.append(FetchedOffset(*partition, value.offset, epoch, value.metadata))
    return OffsetFetchResponse(offsets=tuple(found))
