# SPDX-License-Identifier: Apache-2.0
"""Handles the result of an append: sends the responses that wait for it, or undoes its changes."""

from kafka_rebalance.wire.error_codes import ErrorCode, of_append_error
from kafka_rebalance.wire.messages import GroupState

from ..classic_group.group import Group
from .state import Created, Shard, of_kind


def appended(state: Shard, append_id: int, position: int) -> None:
    """Handles a durable append at `position`; ignores one from before the state was dropped."""
    write = state.writes.pop(append_id, None)
    if write is None:
        return
    state.offsets.complete(append_id, position)
    if write.group_id is not None:
        from ..broker_assigned import log

        log.completed(state, write, write.group_id)
    for group in (of_kind(one, Group) for one in write.deleted):
        if group is not None:
            state.move(group, GroupState.DEAD)
    if write.then is not None:
        write.then.done(state)
    _release(state, append_id)


def append_failed(state: Shard, append_id: int, error: ErrorCode) -> None:
    """Refuses the request of a failed append, and restores the groups that the request changed."""
    write = state.writes.pop(append_id, None)
    if write is None:
        return
    state.num_failed += 1
    state.offsets.fail(append_id)
    from ..broker_assigned import log

    log.failed(state, write, append_id)
    if write.then is not None:
        write.then.failed(state, error)
    for one in write.created:
        _take_back(state, one, error)
    for group in write.buried():
        state.groups.setdefault(group.group_id, group)
    _release(state, append_id)


def refuse_all(state: Shard, error: ErrorCode) -> None:
    """Refuses all requests that wait for appends; nothing is undone, as the state is dropped."""
    waiting = list(state.waiting.values())
    state.waiting.clear()
    for write in list(state.writes.values()):
        if write.then is not None:
            write.then.failed(state, error)
    for one in waiting:
        one.then.failed(state, error)


def _take_back(state: Shard, created: Created, error: ErrorCode) -> None:
    """Removes a group whose first append failed, unless the group has newer offsets."""
    group = created.group
    offsets = state.offsets.latest(group.group_id)
    if state.groups.get(group.group_id) is not group or not created.is_of(group.group_id, offsets):
        return
    for member in group.members.values():
        state.refuse_parked(group, member, of_append_error(error))
    state.move(group, GroupState.DEAD)
    state.forget(group)


def _release(state: Shard, append_id: int) -> None:
    for request_id, waiting in list(state.waiting.items()):
        waiting.append_ids.discard(append_id)
        if not waiting.append_ids:
            del state.waiting[request_id]
            waiting.then.done(state)
