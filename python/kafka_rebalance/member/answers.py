"""What comes back: each response, each error code, and no response at all.

Source   AbstractCoordinator's response handlers; sections 7.2, 7.4, 7.7 and 7.10 of the behaviour.
"""

from kafka_rebalance.coordinator import (
    ErrorCode,
    FindCoordinator,
    FindCoordinatorResponse,
    Heartbeat,
    HeartbeatResponse,
    JoinGroup,
    JoinGroupResponse,
    OffsetCommit,
    OffsetCommitResponse,
    Response,
    SyncGroup,
    SyncGroupResponse,
)
from kafka_rebalance.errors import KafkaRebalanceError

from .leading import assignments, snapshot, subscribed_topics
from .reactions import HEARTBEAT, JOIN_GROUP, OFFSET_COMMIT, SYNC_GROUP, Reaction
from .state import Generation, Sent, State
from .states import MemberState

CONSUMER = "consumer"


def answered(state: State, sent: Sent, response: Response) -> None:
    """A response has come."""
    match response:
        case FindCoordinatorResponse(error_code=error, node_id=node):
            if error is ErrorCode.NONE:
                state.coordinator_node = node
                state.session_until_ms = state.now_ms + state.config.session_timeout_ms
                state.failures = 0
            else:
                state.back_off()
        case JoinGroupResponse():
            joined(state, sent, response)
        case SyncGroupResponse():
            synced(state, sent, response)
        case HeartbeatResponse(error_code=error):
            beaten(state, sent, error)
        case OffsetCommitResponse(partitions=partitions):
            errors = [one.error_code for one in partitions if one.error_code is not ErrorCode.NONE]
            committed(state, sent, errors[0] if errors else ErrorCode.NONE)


def failed(state: State, sent: Sent) -> None:
    """No response will come."""
    match sent.request:
        case FindCoordinator():
            state.back_off()
        case JoinGroup() | SyncGroup():
            # The member id is kept: the coordinator may have taken the member in.
            state.forget_coordinator()
            state.rejoin_needed = True
            state.back_off()
        case Heartbeat() | OffsetCommit():
            state.forget_coordinator()
        case _:
            pass


def joined(state: State, sent: Sent, response: JoinGroupResponse) -> None:
    """JoinGroup is answered: lead or follow, or do as the error says."""
    error = response.error_code
    if error is not ErrorCode.NONE:
        if error is ErrorCode.MEMBER_ID_REQUIRED:
            state.generation = Generation(member_id=response.member_id)
        react(state, sent, JOIN_GROUP.get(error, Reaction.FATAL), error)
        return
    if state.state is not MemberState.PREPARING_REBALANCE:
        state.rejoin_needed = True  # reset meanwhile
        return
    if response.protocol_type not in (CONSUMER, None):
        react(state, sent, Reaction.FATAL, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        return
    state.move(MemberState.COMPLETING_REBALANCE)
    state.generation = Generation(
        response.generation_id, response.member_id, response.protocol_name
    )
    state.start_heartbeats()
    state.failures = 0
    leads = response.leader == response.member_id
    given: tuple[tuple[str, bytes], ...] = ()
    if leads:
        try:
            given = lead(state, response)
        except KafkaRebalanceError as problem:
            state.throw(ErrorCode.UNKNOWN_SERVER_ERROR, str(problem))
            return
    request = SyncGroup(
        group_id=state.config.group_id,
        member_id=response.member_id,
        generation_id=response.generation_id,
        group_instance_id=state.config.group_instance_id,
        protocol_type=CONSUMER,
        protocol_name=response.protocol_name,
        assignments=given,
    )
    state.send(request, state.config.join_timeout_ms)


def lead(state: State, response: JoinGroupResponse) -> tuple[tuple[str, bytes], ...]:
    """Assigns, and watches the topics of all members from now on, also where it need not assign."""
    state.is_leader = True
    state.group_subscription = subscribed_topics(response.members)
    racks = bool(state.config.client_rack)
    state.assigned_by = snapshot(state.topics, state.group_subscription, racks=racks)
    if response.skip_assignment:
        return ()
    assignor = state.assignors[response.protocol_name or ""]
    return assignments(assignor, response.members, state.topics)


def synced(state: State, sent: Sent, response: SyncGroupResponse) -> None:
    """SyncGroup is answered: the assignment waits for the next poll."""
    error = response.error_code
    if error is not ErrorCode.NONE:
        react(state, sent, SYNC_GROUP.get(error, Reaction.FATAL), error)
        return
    if state.state is not MemberState.COMPLETING_REBALANCE or sent.generation != state.generation:
        react(state, sent, Reaction.RESET_GENERATION, ErrorCode.ILLEGAL_GENERATION)
        return
    state.move(MemberState.STABLE)
    state.rejoin_needed = False
    state.arrived = response.assignment


def beaten(state: State, sent: Sent, error: ErrorCode) -> None:
    """Heartbeat is answered."""
    if error in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
        state.session_until_ms = state.now_ms + state.config.session_timeout_ms
    if error is ErrorCode.NONE:
        return
    reaction = HEARTBEAT.get(error, Reaction.FATAL)
    if reaction is Reaction.REJOIN and state.state is not MemberState.STABLE:
        return  # it is joining already
    react(state, sent, reaction, error)


def committed(state: State, sent: Sent, error: ErrorCode) -> None:
    """OffsetCommit is answered."""
    state.committed = True
    if error is ErrorCode.NONE:
        return
    reaction = OFFSET_COMMIT.get(error)
    if reaction in (Reaction.BACK_OFF, Reaction.REDISCOVER):
        state.committed = False  # once more, while there is time
    if reaction is not None and reaction is not Reaction.FATAL:
        react(state, sent, reaction, error)


def react(state: State, sent: Sent, reaction: Reaction, error: ErrorCode) -> None:
    """Does what the table says; resets only if nothing has changed since the request was sent."""
    unchanged = sent.generation == state.generation
    match reaction:
        case Reaction.ADOPT_ID | Reaction.RETRY | Reaction.REJOIN:
            state.rejoin_needed = True
        case Reaction.BACK_OFF:
            state.rejoin_needed |= isinstance(sent.request, JoinGroup)
            state.back_off()
        case Reaction.REDISCOVER:
            state.forget_coordinator()
            state.rejoin_needed |= isinstance(sent.request, JoinGroup | SyncGroup)
            state.back_off()
        case Reaction.RESET_GENERATION | Reaction.RESET_ALL:
            if unchanged:
                state.reset(keep_id=reaction is Reaction.RESET_GENERATION)
        case Reaction.FATAL:
            if error is ErrorCode.FENCED_INSTANCE_ID and unchanged:
                state.reset(keep_id=True)
            state.throw(error, f"{type(sent.request).__name__} was answered {error}")
