# SPDX-License-Identifier: Apache-2.0
"""A rebalance: its start, the new generation, and the deadline for SyncGroup.

Source   GroupMetadataManager.java (prepareRebalance, completeClassicGroupJoin, expirePendingSync,
         tryCompleteInitialRebalanceElseSchedule);
         docs/behaviour/coordinator.md#4-rebalance.
"""

from kafka_rebalance.wire.classic_groups import JoinedMember, JoinGroupResponse, SyncGroupResponse
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import GroupState

from ..machine.state import Shard, Write
from .group import ClassicGroupMember, Group, group_record


def rebalance_or_complete(state: Shard, group: Group) -> None:
    """Starts a rebalance; in a running one, ends the join phase if all members have joined."""
    if group.can_rebalance():
        prepare(state, group)
    else:
        try_complete_join(state, group)


def prepare(state: Shard, group: Group) -> None:
    """Starts a rebalance; ends the join phase if all have joined and the group was not Empty."""
    if group.is_(GroupState.COMPLETING_REBALANCE):
        drop_assignments(state, group, ErrorCode.REBALANCE_IN_PROGRESS)
    stop_waiting_for_syncs(state, group)
    is_initial = group.is_(GroupState.EMPTY)
    if is_initial:
        delay = state.config.group_initial_rebalance_delay_ms
        group.initial_delay_ms = delay
        group.initial_remaining_ms = max(group.rebalance_timeout_ms() - delay, 0)
        state.arm("join", group, delay)
    else:
        group.initial_delay_ms = None
    state.move(group, GroupState.PREPARING_REBALANCE)
    if is_initial:
        return
    if group.has_all_joined():
        complete_join(state, group)
    else:
        state.arm("join", group, group.rebalance_timeout_ms())


def try_complete_join(state: Shard, group: Group) -> None:
    """Ends the join phase if all members have joined, except during the initial delay."""
    if (
        group.is_(GroupState.PREPARING_REBALANCE)
        and group.previous_state is not GroupState.EMPTY
        and group.has_all_joined()
    ):
        complete_join(state, group)


def join_deadline(state: Shard, group: Group) -> None:
    """Ends the join phase, or a part of the initial delay, when its time is over."""
    if not group.is_(GroupState.PREPARING_REBALANCE):
        return  # the deadline belongs to a removed group with this id
    delay = group.initial_delay_ms
    if delay is not None and group.new_member_added and group.initial_remaining_ms:
        # A member joined during this part of the delay, so more members may follow.
        group.new_member_added = False
        remaining = group.initial_remaining_ms
        group.initial_delay_ms = min(state.config.group_initial_rebalance_delay_ms, remaining)
        group.initial_remaining_ms = max(remaining - delay, 0)
        state.arm("join", group, group.initial_delay_ms)
    else:
        complete_join(state, group)


def complete_join(state: Shard, group: Group) -> None:
    """Ends the join phase with the members that have joined."""
    state.cancel("join", group)
    group.initial_delay_ms = None
    # 1. Dynamic members that have not rejoined are removed; static members stay.
    for member in list(group.members.values()):
        if member.parked_join is None and not member.is_static:
            remove(state, group, member)
            state.end_session(group, member.member_id)
    # 2. If no member has joined, no leader can be elected: wait for a JoinGroup, or until the
    #    sessions of the static members expire.
    if not group.elect_joined_leader() and group.members:
        state.arm("join", group, group.rebalance_timeout_ms())
        return
    # 3. The next generation starts.
    state.next_generation(group)
    if group.is_(GroupState.EMPTY):
        state.append([group_record(group, {})], Write(None))
        return
    listed = group.joined_members()
    for member in group.members.values():
        state.answer_join(group, member, joined(group, member, listed))
        state.renew_session(group, member)
        member.is_new = False
        group.pending_sync[member.member_id] = None
    state.arm("sync", group, group.rebalance_timeout_ms())


def joined(
    group: Group, member: ClassicGroupMember, listed: tuple[JoinedMember, ...] = ()
) -> JoinGroupResponse:
    """Returns a member's JoinGroup response; only the leader's contains the `listed` members."""
    return JoinGroupResponse(
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or "",
        member_id=member.member_id,
        members=listed if group.is_leader(member.member_id) else (),
    )


def sync_deadline(state: Shard, group: Group) -> None:
    """Removes the members that have not sent SyncGroup in time, and starts a rebalance."""
    if not group.is_(GroupState.COMPLETING_REBALANCE, GroupState.STABLE) or not group.pending_sync:
        return
    for member_id in list(group.pending_sync):
        member = group.members.get(member_id)
        if member is not None:
            remove(state, group, member)
        state.end_session(group, member_id)
    prepare(state, group)


def session_deadline(state: Shard, group: Group, member_id: str) -> None:
    """Removes a pending id, or a member that is not excused, when its session expires."""
    if member_id in group.pending:
        group.remove(member_id)
    elif member_id in group.members and not group.members[member_id].is_excused():
        remove(state, group, group.members[member_id])
        if group.is_(GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            prepare(state, group)
            return
    else:
        return
    # Unlike a LeaveGroup, an expired session can end the initial delay early.
    if group.is_(GroupState.PREPARING_REBALANCE) and group.has_all_joined():
        complete_join(state, group)


def fall_silent(state: Shard, group: Group, member_id: str, since_ms: int) -> None:
    """Starts the session timeout of a silent member at `since_ms`, unless the member is new."""
    member = group.members.get(member_id)
    if member is not None and not member.is_new:
        left = since_ms + member.session_timeout_ms - state.now_ms
        state.arm_session(group, member_id, max(left, 0))


def remove(state: Shard, group: Group, member: ClassicGroupMember) -> None:
    """Removes a member and refuses its parked requests: unlike Kafka, even a parked SyncGroup."""
    state.refuse_parked(group, member, ErrorCode.UNKNOWN_MEMBER_ID)
    group.remove(member.member_id)


def drop_assignments(state: Shard, group: Group, error: ErrorCode) -> None:
    for member in group.members.values():
        member.assignment = b""
        hand_out(state, group, member, error)


def hand_out(state: Shard, group: Group, member: ClassicGroupMember, error: ErrorCode) -> None:
    """Answers a member's parked SyncGroup; if there is one, restarts the session, too."""
    well = error is ErrorCode.NONE
    response = SyncGroupResponse(
        error_code=error,
        protocol_type=group.protocol_type if well else None,
        protocol_name=group.protocol_name if well else None,
        assignment=member.assignment,
    )
    if state.answer_sync(member, response):
        state.renew_session(group, member)


def stop_waiting_for_syncs(state: Shard, group: Group) -> None:
    group.pending_sync.clear()
    state.cancel("sync", group)
