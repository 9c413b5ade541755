# SPDX-License-Identifier: Apache-2.0
"""Refuses requests that do not fit the group's state, the member's ids or the generation.

    1. state        the error in ERROR_BY_STATE, except REBALANCE_IN_PROGRESS
    2. ids          UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID
    3. generation   ILLEGAL_GENERATION
    4. state        REBALANCE_IN_PROGRESS, which only members of the present generation receive

Source   ClassicGroup.validateOffsetCommit/validateOffsetDelete/validateDeleteGroup,
         GroupMetadataManager.validateClassicGroupHeartbeat/validateClassicGroupSync (Kafka 4.4.0).
"""

from kafka_rebalance.wire import classic_groups as classic
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import GroupState, Request
from kafka_rebalance.wire.offsets import CommitRequest, OffsetCommit, OffsetDelete, TxnOffsetCommit

from .group import Group

_S = GroupState
_E = ErrorCode
_Errors = dict[GroupState | None, ErrorCode]
_UNAVAILABLE: _Errors = {_S.DEAD: _E.COORDINATOR_NOT_AVAILABLE}
_UNKNOWN: _Errors = {None: _E.UNKNOWN_MEMBER_ID, _S.EMPTY: _E.UNKNOWN_MEMBER_ID}
_REBALANCING: _Errors = {_S.PREPARING_REBALANCE: _E.REBALANCE_IN_PROGRESS}
_ABSENT: _Errors = {None: _E.GROUP_ID_NOT_FOUND, _S.DEAD: _E.GROUP_ID_NOT_FOUND}
_NON_EMPTY = (_S.PREPARING_REBALANCE, _S.COMPLETING_REBALANCE, _S.STABLE)

# Request -> state -> error; None stands for an absent group. A state left out has no error.
ERROR_BY_STATE: dict[type[Request], _Errors] = {
    classic.JoinGroup: {**_UNAVAILABLE},
    classic.SyncGroup: {**_UNKNOWN, **_REBALANCING, **_UNAVAILABLE},
    classic.Heartbeat: {**_UNKNOWN, **_REBALANCING, **_UNAVAILABLE},
    classic.LeaveGroup: {None: _E.UNKNOWN_MEMBER_ID, **_UNAVAILABLE},
    OffsetCommit: {_S.COMPLETING_REBALANCE: _E.REBALANCE_IN_PROGRESS, **_UNAVAILABLE},
    TxnOffsetCommit: {**_UNAVAILABLE},
    OffsetDelete: {**_ABSENT},
    classic.DeleteGroups: {**_ABSENT, **dict.fromkeys(_NON_EMPTY, _E.NON_EMPTY_GROUP)},
}


def refuse_in_state(group: Group | None, request: Request) -> ErrorCode:
    """Returns the error in ERROR_BY_STATE for the group's state; NONE if there is no error."""
    state = None if group is None else group.state
    return ERROR_BY_STATE[type(request)].get(state, ErrorCode.NONE)


def refuse_member(
    group: Group | None, request: classic.SyncGroup | classic.Heartbeat | CommitRequest
) -> ErrorCode:
    """Returns the error for a request of a member: checks 1 to 4; NONE if it may proceed."""
    error = refuse_in_state(group, request)
    if group is None or error not in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
        return error
    unknown = group.check(request.member_id, request.group_instance_id)
    if unknown is not ErrorCode.NONE:
        return unknown
    return error if request.generation_id == group.generation_id else ErrorCode.ILLEGAL_GENERATION
