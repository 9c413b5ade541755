# SPDX-License-Identifier: Apache-2.0
"""The group coordinator without I/O: it takes events and the time, and returns effects.

A Coordinator stands for one partition of `__consumer_offsets`: it holds the groups that hash to it.
It reads no clock, uses no random numbers, and never blocks: the same events in the same order lead
to the same effects and states. The caller calls `handle(Tick(), t)` at `t = next_deadline_ms()`,
carries out every Append and reports its result, and sends every Respond. Within one step, Kafka
sends responses in the order of a hash map; here, in the order in which members joined.

A Tick runs one deadline, the earliest, because Kafka queues each expired timer as an event behind
the waiting requests. If all rebalance timeouts of a group are 0, a deadline can be armed for the
present time again and again, until a session expires. A host that stops its clock during Ticks must
then let time pass: `VirtualBroker` adds 1 ms when one deadline has run 3 times at the same time.

Source   GroupCoordinatorService, GroupCoordinatorShard of Kafka 4.4.0.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from itertools import count
from types import MappingProxyType
from typing import Any

from kafka_rebalance.wire import classic_groups as classic
from kafka_rebalance.wire import offsets
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import Request, Tick

from .broker_assigned.group import AssigningGroup
from .broker_assigned.members import RequestRefused
from .classic_group import join_group
from .classic_group.group import Group
from .classic_group.kind import describe_groups, heartbeat, leave_group, list_groups, sync_group
from .config import CoordinatorConfig
from .machine import appends, events
from .machine.deadlines import DeadlineKey
from .machine.state import AnyGroup, Ownership, Shard, of_kind
from .offsets import requests as offset_requests


def counted_ids() -> Callable[[], str]:
    """Returns a function that makes UUIDs from 1, 2, 3, …, so that every run uses the same ids."""
    from uuid import UUID

    numbers = count(1)
    return lambda: str(UUID(int=next(numbers)))


class Coordinator:
    """A group coordinator. `new_id` returns the UUID in a member's new id.

    `vouched` is for simulations: joined members count as alive until the host reports Silent, so
    their heartbeats need not be simulated. `is_logged=False` is for callers that read no records.
    """

    def __init__(
        self,
        config: CoordinatorConfig | None = None,
        new_id: Callable[[], str] | None = None,
        *,
        vouched: bool = False,
        is_logged: bool = True,
    ) -> None:
        new_id, config = new_id or counted_ids(), config or CoordinatorConfig()
        self._state = Shard(config, new_id, KINDS, vouched, is_logged)

    @property
    def config(self) -> CoordinatorConfig:
        return self._state.config

    def config_of(self, group_id: str) -> CoordinatorConfig:
        """Returns the settings that hold for a group, whether it exists or not."""
        return self._state.config_of(group_id)

    def groups(self) -> Mapping[str, AnyGroup]:
        """Returns the groups by group id; the caller must not change them."""
        return MappingProxyType(self._state.groups)

    def classic_groups(self) -> dict[str, Group]:
        found = {group_id: self._state.classic(group_id) for group_id in self._state.groups}
        return {group_id: group for group_id, group in found.items() if group is not None}

    def classic_group(self, group_id: str) -> Group | None:
        """Returns the classic group with this id; None if there is none."""
        return self._state.classic(group_id)

    def deadlines(self) -> dict[DeadlineKey, int]:
        return self._state.deadlines.armed()

    def next_deadline_ms(self) -> int | None:
        """Returns the time of the next Tick; None if no deadline is armed."""
        found = self._state.deadlines.next()
        return None if found is None else found[1]

    def next_deadline(self) -> tuple[DeadlineKey, int] | None:
        """Returns the deadline of the next Tick and its time; None if no deadline is armed."""
        return self._state.deadlines.next()

    def handle(self, event: events.CoordinatorEvent, now_ms: int) -> list[events.Effect]:
        """Handles one event. Errors: ValueError if `now_ms` decreases."""
        state = self._state
        if now_ms < state.now_ms:
            raise ValueError(f"now_ms: {now_ms} is before {state.now_ms}")
        state.now_ms = now_ms
        effects: list[events.Effect] = []
        state.effects = effects
        match event:
            case events.Received():
                _receive(state, event)
            case Tick():
                _tick(state)
            case events.Appended(append_id, position):
                appends.appended(state, append_id, position)
            case events.AppendFailed(append_id, error):
                appends.append_failed(state, append_id, error)
            case events.LoadStarted():
                state.clear()
                state.ownership = Ownership.LOADING
            case events.Loaded(entries):
                from .machine import loading

                state.clear()
                loading.load(state, entries)
            case events.Unloaded():
                from .machine import loading

                loading.unload(state)
            case events.PartitionsDeleted():
                offset_requests.partitions_deleted(state, event)
            case events.TopicsChanged():
                _topics_changed(state, event)
            case events.PatternsDue(group_id, patterns):
                from .consumer_group.patterns import resolve

                resolve(state, group_id, patterns)
            case events.ShareStateDue():
                from .share_group.initialization import share_state_initialized

                share_state_initialized(state, event)
            case events.Sweep():
                offset_requests.sweep(state)
            case events.GroupConfigured(group_id, CoordinatorConfig() as config):
                state.group_configs[group_id] = config
            case events.GroupConfigured(group_id):
                state.group_configs.pop(group_id, None)
            case events.Silent():
                _fall_silent(state, event)
            case events.Heard(group_id, member_id):
                state.silent.discard((group_id, member_id))
        return effects


class _Kinds(dict[str, Any]):
    """The `GroupKind` of each type of group, imported when it is first used."""

    def __missing__(self, group_type: str) -> Any:
        module = import_module(f"..{group_type}_group.kind", __name__)
        kind = self[group_type] = getattr(module, f"{group_type.title()}Groups")()
        return kind


KINDS = _Kinds()

_Handler = Callable[[Shard, events.Received, Any], None]

_HANDLERS: dict[type[Request], _Handler] = {
    classic.JoinGroup: join_group.join_group,
    classic.SyncGroup: sync_group,
    classic.Heartbeat: heartbeat,
    classic.LeaveGroup: leave_group,
    offsets.OffsetCommit: offset_requests.offset_commit,
    offsets.TxnOffsetCommit: offset_requests.offset_commit,
    offsets.EndTransaction: offset_requests.end_transaction,
    offsets.OffsetFetch: offset_requests.offset_fetch,
    offsets.OffsetDelete: offset_requests.offset_delete,
    classic.DeleteGroups: offset_requests.delete_groups,
    classic.DescribeGroups: describe_groups,
    classic.ListGroups: list_groups,
}
"""Handlers for any type of group; a request about one type names a handler in `Request.handler`."""


def _receive(state: Shard, event: events.Received) -> None:
    request = event.request
    refusal = _gate(state, request, event.api_version)
    if refusal is not None:
        response = request.refused(refusal)
        match request, refusal:
            case classic.JoinGroup(member_id=member_id), _ if refusal in _ECHOES_ID:
                response = classic.JoinGroupResponse(error_code=refusal, member_id=member_id)
            case classic.ListGroups(), ErrorCode.NOT_COORDINATOR:
                response = classic.ListGroupsResponse()  # this coordinator has no groups
            case classic.Heartbeat(), ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                response = classic.HeartbeatResponse()  # no error: no session expires in a load
        state.respond(event.request_id, response)
        return
    if isinstance(request, classic.FindCoordinator):
        raise ValueError("any broker answers FindCoordinator, without its coordinator")
    try:
        _handle(state, event, request)
    except RequestRefused as refused:
        state.respond(event.request_id, request.refused(refused.error))


def _handle(state: Shard, event: events.Received, request: Request) -> None:
    """Passes a request to its handler, which can depend on the group. Errors: RequestRefused."""
    group = state.groups.get(getattr(request, "group_id", ""))
    special = None if group is None else state.kind(group).handlers.get(type(request))
    if special is not None:
        special(state, event, request, group)
    elif (handler := _HANDLERS.get(type(request))) is not None:
        handler(state, event, request)
    else:
        group_type, name = request.handler
        getattr(KINDS[group_type], name)(state, event, request)


_NEEDS_GROUP_ID = {
    classic.JoinGroup,
    classic.SyncGroup,
    classic.Heartbeat,
    classic.LeaveGroup,
    offsets.TxnOffsetCommit,
    offsets.OffsetDelete,
}
_ECHOES_ID = (ErrorCode.INVALID_GROUP_ID, ErrorCode.INVALID_SESSION_TIMEOUT)


def _gate(state: Shard, request: Request, version: int | None) -> ErrorCode | None:
    """Returns the error that refuses a request before its group is read, else None."""
    group_type, handler = request.handler
    if handler == "heartbeat":
        error: ErrorCode = KINDS[group_type].refuse_fields(state, request, version)
        if error is not ErrorCode.NONE:
            return error
    if type(request) in _NEEDS_GROUP_ID and getattr(request, "group_id", "") == "":
        return ErrorCode.INVALID_GROUP_ID
    if isinstance(request, classic.JoinGroup):
        least = state.config.group_min_session_timeout_ms
        most = state.config.group_max_session_timeout_ms
        if not least <= request.session_timeout_ms <= most:
            return ErrorCode.INVALID_SESSION_TIMEOUT
    if state.ownership is Ownership.LOADING:
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    if state.ownership is Ownership.GONE:
        return ErrorCode.NOT_COORDINATOR
    return None


def _topics_changed(state: Shard, event: events.TopicsChanged) -> None:
    touched = state.cluster.change(event)
    for group in (of_kind(one, AssigningGroup) for one in state.groups.values()):
        if group is not None and any(map(group.reads, touched)):
            group.refresh_at = (0, 0)


def _fall_silent(state: Shard, event: events.Silent) -> None:
    group_id, member_id = event.group_id, event.member_id
    state.silent.add((group_id, member_id))
    group = state.groups.get(group_id)
    if group is not None:
        state.kind(group).fall_silent(state, group, member_id, event.since_ms)


def _tick(state: Shard) -> None:
    key = state.deadlines.take_due(state.now_ms)
    if key is None:
        return
    state.effects.append(events.Expired(key))
    group = state.groups.get(key.group_id)
    if group is not None:
        state.kind(group).deadline(state, group, key)
