# SPDX-License-Identifier: Apache-2.0
"""The deadlines of a streams group and of its members.

    session-timeout             as in `broker_assigned/timeouts.py`
    rebalance-timeout           as there; the member must give up its pending tasks
    initial-rebalance-timeout   started by a join to an empty group, and not prolonged; then the
                                first targets are computed

Quirk    the first targets are not computed if the group's topology was never configured: the first
         heartbeat configures it for a group that its own records replace. Then the next heartbeat
         computes them.
Source   GroupMetadataManager.computeDelayedTargetAssignment (Kafka 4.4.0).
"""

from ..broker_assigned import log
from ..broker_assigned.timeouts import arm_or_cancel_rebalance, arm_session
from ..machine.deadlines import INITIAL_REBALANCE, REBALANCE, SESSION, DeadlineKey
from ..machine.state import CoordinatorState
from .group import StreamsGroup
from .leaving import member_deadline
from .member import StreamsGroupMember, TasksState
from .target import StreamsChange, initial_key, targets_for


def arm_initial(state: CoordinatorState, group: StreamsGroup) -> None:
    """Starts the initial rebalance delay of an empty group."""
    key = initial_key(group.group_id)
    delay_ms = state.config.group_streams_initial_rebalance_delay_ms
    if group.is_empty and delay_ms > 0 and not state.deadlines.is_armed(key):
        state.deadlines.arm(key, state.now_ms + delay_ms)


def after_step(state: CoordinatorState, group_id: str, member: StreamsGroupMember) -> None:
    """Arms or cancels the rebalance timeout after a written step of a reconciliation."""
    revokes = member.state is TasksState.UNREVOKED_TASKS
    arm_or_cancel_rebalance(state, group_id, member, revokes=revokes)


def start_members(state: CoordinatorState, group: StreamsGroup) -> None:
    """Arms the deadlines of the members of a group that was loaded."""
    timeout_ms = state.config.group_streams_session_timeout_ms
    for member in group.members.values():
        arm_session(state, group.group_id, member.member_id, timeout_ms)
        if member.state is TasksState.UNREVOKED_TASKS:
            after_step(state, group.group_id, member)


def deadline(state: CoordinatorState, group: StreamsGroup, key: DeadlineKey) -> None:
    """Handles a deadline; one that only other kinds of groups have is void."""
    if key.kind == INITIAL_REBALANCE:
        _first_targets(state, group)
    elif key.kind in (SESSION, REBALANCE):
        member_deadline(state, group, key)


def _first_targets(state: CoordinatorState, group: StreamsGroup) -> None:
    topology = group.unlogged.configured
    if group.is_empty or group.epoch <= group.assignment_epoch or topology is None:
        return
    change = StreamsChange(group, group.epoch, topology, group.assignment_configs)
    log.write(state, group.group_id, targets_for(state, change).records, None)
