# SPDX-License-Identifier: Apache-2.0
"""The rebalance itself: from "somebody has to rejoin" to a new generation.

    prepare          parked SyncGroups are told to rejoin; Empty waits the initial delay (KIP-134),
                     any other state the longest rebalance timeout, or not at all if all are here
    complete_join    dynamic members that did not come are out; a leader that came is found; every
                     member gets its generation, and the rebalance timeout again for its SyncGroup
    sync_deadline    who has not synced by then is out, also in a Stable group

Source   GroupMetadataManager.java (prepareRebalance, completeClassicGroupJoin, expirePendingSync,
         tryCompleteInitialRebalanceElseSchedule);
         docs/behaviour/coordinator.md#4-rebalance.
"""

from kafka_rebalance.protocol.error_codes import ErrorCode
from kafka_rebalance.protocol.group_state import GroupState
from kafka_rebalance.protocol.messages import JoinedMember, JoinGroupResponse, SyncGroupResponse

from .coordinator_state import CoordinatorState, Write
from .group import Group
from .members import ClassicGroupMember
from .records import group_record


def rebalance_or_complete(state: CoordinatorState, group: Group) -> None:
    """A rebalance starts, or the one that runs goes on."""
    if group.can_rebalance():
        prepare(state, group)
    else:
        try_complete_join(state, group)


def prepare(state: CoordinatorState, group: Group) -> None:
    """Starts a rebalance."""
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


def try_complete_join(state: CoordinatorState, group: Group) -> None:
    """Ends the join phase if nobody is missing; never cuts the initial delay short."""
    if (
        group.is_(GroupState.PREPARING_REBALANCE)
        and group.previous_state is not GroupState.EMPTY
        and group.has_all_joined()
    ):
        complete_join(state, group)


def join_deadline(state: CoordinatorState, group: Group) -> None:
    """The join phase's time, or a part of the initial delay, is over."""
    if group.not_(GroupState.PREPARING_REBALANCE):
        return  # of a group of this name that is gone
    delay = group.initial_delay_ms
    if delay is not None and group.new_member_added and group.initial_remaining_ms:
        # Somebody came while we waited: others may be on their way.
        group.new_member_added = False
        remaining = group.initial_remaining_ms
        group.initial_delay_ms = min(state.config.group_initial_rebalance_delay_ms, remaining)
        group.initial_remaining_ms = max(remaining - delay, 0)
        state.arm("join", group, group.initial_delay_ms)
    else:
        complete_join(state, group)


def complete_join(state: CoordinatorState, group: Group) -> None:
    """Ends the join phase, with whoever has come."""
    state.cancel("join", group)
    group.initial_delay_ms = None
    # 1. Dynamic members that did not come are out; static ones keep their place.
    for member in list(group.members.values()):
        if member.parked_join is None and not member.is_static:
            remove(state, group, member)
            state.end_session(group, member.member_id)
    # 2. Without a leader that came there is no generation: wait until somebody comes, or until
    #    the sessions of the static members end.
    if not group.elect_joined_leader() and group.members:
        state.arm("join", group, group.rebalance_timeout_ms())
        return
    # 3. A generation more.
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
    """A member's place in the current generation; `listed` goes to the leader only."""
    return JoinGroupResponse(
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or "",
        member_id=member.member_id,
        members=listed if group.is_leader(member.member_id) else (),
    )


def sync_deadline(state: CoordinatorState, group: Group) -> None:
    """Who has not synced in time is out."""
    if not group.is_(GroupState.COMPLETING_REBALANCE, GroupState.STABLE) or not group.pending_sync:
        return
    for member_id in list(group.pending_sync):
        member = group.members.get(member_id)
        if member is not None:
            remove(state, group, member)
        state.end_session(group, member_id)
    prepare(state, group)


def session_deadline(state: CoordinatorState, group: Group, member_id: str) -> None:
    """A member, or an id that is still pending, has been silent for too long."""
    if member_id in group.pending:
        group.remove(member_id)
    elif group.has(member_id) and not group.get(member_id).is_excused():
        remove(state, group, group.get(member_id))
        if group.is_(GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            prepare(state, group)
            return
    else:
        return
    # Unlike a LeaveGroup, this cuts the initial delay short.
    if group.is_(GroupState.PREPARING_REBALANCE) and group.has_all_joined():
        complete_join(state, group)


def fall_silent(state: CoordinatorState, group_id: str, member_id: str, since_ms: int) -> None:
    """A member's session runs from then on; one that is new has its own deadline already."""
    group = state.groups.get(group_id)
    member = None if group is None else group.members.get(member_id)
    if group is not None and member is not None and not member.is_new:
        left = since_ms + member.session_timeout_ms - state.now_ms
        state.arm_session(group, member_id, max(left, 0))


def remove(state: CoordinatorState, group: Group, member: ClassicGroupMember) -> None:
    """Takes a member out; what it waits for is answered.

    Kafka leaves a parked SyncGroup of a removed member unanswered for ever; we answer it.
    """
    response = JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
    state.answer_join(group, member, response)
    state.answer_sync(member, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
    group.remove(member.member_id)


def drop_assignments(state: CoordinatorState, group: Group, error: ErrorCode) -> None:
    """Nobody has an assignment any more, and who waits for one is told why."""
    for member in group.members.values():
        member.assignment = b""
        hand_out(state, group, member, error)


def hand_out(
    state: CoordinatorState, group: Group, member: ClassicGroupMember, error: ErrorCode
) -> None:
    """Answers a parked SyncGroup with the member's assignment, or an error.

    Its session starts anew: it could not be heard of while it waited.
    """
    well = error is ErrorCode.NONE
    response = SyncGroupResponse(
        error_code=error,
        protocol_type=group.protocol_type if well else None,
        protocol_name=group.protocol_name if well else None,
        assignment=member.assignment,
    )
    if state.answer_sync(member, response):
        state.renew_session(group, member)


def stop_waiting_for_syncs(state: CoordinatorState, group: Group) -> None:
    """Nobody's SyncGroup is missing any more."""
    group.pending_sync.clear()
    state.cancel("sync", group)
