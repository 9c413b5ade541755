# SPDX-License-Identifier: Apache-2.0
"""Handles the responses to a member's requests, and requests that get no response.

Tables map error codes to the member's reactions; `react` carries out a reaction. `consumer.py`
handles the responses to commits, but their table is here.

Source   JoinGroup-, SyncGroup-, Heartbeat- and OffsetCommitResponseHandler (Kafka 4.4.0);
         docs/behaviour/member.md#2-coordinator-discovery, docs/behaviour/member.md#4-join,
         docs/behaviour/member.md#41-errors-of-joingroup,
         docs/behaviour/member.md#42-errors-of-syncgroup,
         docs/behaviour/member.md#7-heartbeats, docs/behaviour/member.md#9-commits.
"""

from enum import Enum, auto

from kafka_rebalance.errors import KafkaRebalanceError
from kafka_rebalance.wire.classic_groups import (
    FindCoordinator,
    FindCoordinatorResponse,
    Heartbeat,
    HeartbeatResponse,
    JoinGroup,
    JoinGroupResponse,
    SyncGroup,
    SyncGroupResponse,
)
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import Response
from kafka_rebalance.wire.offsets import OffsetCommit, OffsetCommitResponse

from .membership import Generation, Membership, SentRequest, Shares
from .states import MemberState

_E = ErrorCode


class Reaction(Enum):
    """A member's reaction to an error."""

    ADOPT_ID = auto()  # join again at once, with the member id of the response
    RETRY = auto()  # join again at once; keep the generation, repeat no callbacks
    BACK_OFF = auto()  # join or commit again after a back-off
    REDISCOVER = auto()  # look for the coordinator again; keep id and generation
    RESET_GENERATION = auto()  # drop the generation, so owned partitions are lost; keep the id
    RESET_ALL = auto()  # drop generation and id, so owned partitions are lost
    REJOIN = auto()  # the group is rebalancing: join at the next poll
    FATAL = auto()  # poll throws


_Reactions = dict[ErrorCode, Reaction]
_MOVED: _Reactions = {
    _E.COORDINATOR_NOT_AVAILABLE: Reaction.REDISCOVER,
    _E.NOT_COORDINATOR: Reaction.REDISCOVER,
}
_UNKNOWN: _Reactions = {
    _E.ILLEGAL_GENERATION: Reaction.RESET_GENERATION,
    _E.UNKNOWN_MEMBER_ID: Reaction.RESET_ALL,
}
_OF_A_GENERATION: _Reactions = {**_UNKNOWN, _E.FENCED_INSTANCE_ID: Reaction.FATAL}

JOIN_GROUP: _Reactions = {
    _E.MEMBER_ID_REQUIRED: Reaction.ADOPT_ID,
    _E.UNKNOWN_MEMBER_ID: Reaction.RESET_ALL,
    _E.COORDINATOR_LOAD_IN_PROGRESS: Reaction.BACK_OFF,
    _E.REBALANCE_IN_PROGRESS: Reaction.RETRY,
    **_MOVED,
}
SYNC_GROUP: _Reactions = {_E.REBALANCE_IN_PROGRESS: Reaction.RETRY, **_UNKNOWN, **_MOVED}
HEARTBEAT: _Reactions = {**_MOVED, _E.REBALANCE_IN_PROGRESS: Reaction.REJOIN, **_OF_A_GENERATION}
OFFSET_COMMIT: _Reactions = {
    _E.COORDINATOR_LOAD_IN_PROGRESS: Reaction.BACK_OFF,
    _E.UNKNOWN_TOPIC_OR_PARTITION: Reaction.BACK_OFF,
    _E.REQUEST_TIMED_OUT: Reaction.REDISCOVER,
    **HEARTBEAT,
}


def answered(state: Membership, sent: SentRequest, response: Response) -> None:
    match response:
        case FindCoordinatorResponse(error_code=error, node_id=node):
            if error is ErrorCode.NONE:
                state.coordinator_node = node
                state.unknown_since_ms = None
                state.session_until_ms = state.now_ms + state.config.session_timeout_ms
                state.failures = 0
            elif error is ErrorCode.GROUP_AUTHORIZATION_FAILED:
                state.throw(error, f"FindCoordinator was answered {error}")
            else:
                state.back_off()
        case JoinGroupResponse():
            joined(state, sent, response)
        case SyncGroupResponse():
            synced(state, sent, response)
        case HeartbeatResponse(error_code=error):
            heartbeat_answered(state, sent, error)
        case OffsetCommitResponse():
            state.commit_answered(sent, response)
        case _:
            pass


def failed(state: Membership, sent: SentRequest) -> None:
    """Handles a request that gets no response: the connection was lost, or it timed out."""
    match sent.request:
        case FindCoordinator():
            state.back_off()
        case JoinGroup() | SyncGroup():
            # The member id is kept, because the coordinator may have added the member.
            state.forget_coordinator()
            state.rejoin_needed = True
            state.back_off()
        case Heartbeat():
            state.forget_coordinator()
            state.fail_heartbeat()
        case OffsetCommit():
            state.forget_coordinator()
        case _:
            pass


def joined(state: Membership, sent: SentRequest, response: JoinGroupResponse) -> None:
    error = response.error_code
    if error is not ErrorCode.NONE:
        if error is ErrorCode.MEMBER_ID_REQUIRED:
            state.generation = Generation(member_id=response.member_id)
        react(state, sent, JOIN_GROUP.get(error, Reaction.FATAL), error)
        return
    if state.state is not MemberState.PREPARING_REBALANCE:
        state.rejoin_needed = True  # the generation was reset after the request was sent
        return
    if response.protocol_type not in (state.protocol_type, None):
        react(state, sent, Reaction.FATAL, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        return
    state.move(MemberState.COMPLETING_REBALANCE)
    state.generation = Generation(
        response.generation_id, response.member_id, response.protocol_name
    )
    state.start_heartbeats()
    state.failures = 0
    given: Shares = ()
    if response.leader == response.member_id:
        state.is_leader = True
        try:
            given = state.lead(response)
        except KafkaRebalanceError as problem:
            state.throw(ErrorCode.UNKNOWN_SERVER_ERROR, str(problem))
            return
    request = SyncGroup(
        group_id=state.config.group_id,
        member_id=response.member_id,
        generation_id=response.generation_id,
        group_instance_id=state.config.group_instance_id,
        protocol_type=state.protocol_type,
        protocol_name=response.protocol_name,
        assignments=given,
    )
    state.send(request)


def synced(state: Membership, sent: SentRequest, response: SyncGroupResponse) -> None:
    error = response.error_code
    if error is not ErrorCode.NONE:
        react(state, sent, SYNC_GROUP.get(error, Reaction.FATAL), error)
        return
    if state.state is not MemberState.COMPLETING_REBALANCE or sent.generation != state.generation:
        react(state, sent, Reaction.RESET_GENERATION, ErrorCode.ILLEGAL_GENERATION)
        return
    types, names = (state.protocol_type, None), (state.generation.protocol_name, None)
    if response.protocol_type not in types or response.protocol_name not in names:
        react(state, sent, Reaction.FATAL, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        return
    state.move(MemberState.STABLE)
    state.rejoin_needed = False
    state.arrived = response.assignment


def heartbeat_answered(state: Membership, sent: SentRequest, error: ErrorCode) -> None:
    """Handles a Heartbeat response; an error of an older generation counts as success."""
    late = error in _OF_A_GENERATION and sent.generation != state.generation
    known = error is ErrorCode.REBALANCE_IN_PROGRESS and state.state is not MemberState.STABLE
    if error in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS) or late:
        state.session_until_ms = state.now_ms + state.config.session_timeout_ms
        state.heartbeat_failures = 0
    else:
        state.fail_heartbeat()
    if late or known or error not in HEARTBEAT:
        return
    if error is ErrorCode.FENCED_INSTANCE_ID:
        state.reset(keep_id=False)
    react(state, sent, HEARTBEAT[error], error)


def react(state: Membership, sent: SentRequest, reaction: Reaction, error: ErrorCode) -> None:
    """Carries out a reaction; resets nothing if the generation has changed since the request."""
    unchanged = sent.generation == state.generation
    if isinstance(sent.request, OffsetCommit) and not unchanged:
        # An error of an old generation's commit resets the generation, except during a join.
        unchanged = state.state is not MemberState.PREPARING_REBALANCE
    match reaction:
        case Reaction.ADOPT_ID | Reaction.RETRY | Reaction.REJOIN:
            state.rejoin_needed = True
        case Reaction.BACK_OFF:
            state.rejoin_needed |= isinstance(sent.request, JoinGroup)
            state.back_off()
        case Reaction.REDISCOVER:
            state.forget_coordinator()
            if isinstance(sent.request, JoinGroup | SyncGroup):
                state.rejoin_needed = True
                state.back_off()
        case Reaction.RESET_GENERATION | Reaction.RESET_ALL:
            if unchanged:
                state.reset(keep_id=reaction is Reaction.RESET_GENERATION)
        case Reaction.FATAL:
            state.throw(error, f"{type(sent.request).__name__} was answered {error}")
