# SPDX-License-Identifier: Apache-2.0
"""Defines a member's reactions to the error codes of responses, as tables.

Source   AbstractCoordinator and ConsumerCoordinator (Kafka 4.4.0): JoinGroupResponseHandler,
         SyncGroupResponseHandler, HeartbeatResponseHandler, OffsetCommitResponseHandler;
         docs/behaviour/member.md#41-errors-of-joingroup,
         docs/behaviour/member.md#42-errors-of-syncgroup,
         docs/behaviour/member.md#7-heartbeats, docs/behaviour/member.md#9-commits.
"""

from enum import Enum, auto

from kafka_rebalance.wire.error_codes import ErrorCode

_E = ErrorCode


class Reaction(Enum):
    """A member's reaction to an error."""

    ADOPT_ID = auto()  # join again at once, with the member id of the response
    RETRY = auto()  # join again at once; keep the generation, call no callbacks again
    BACK_OFF = auto()  # join or commit again after a back-off
    REDISCOVER = auto()  # look for the coordinator again; keep id and generation
    RESET_GENERATION = auto()  # drop the generation, so owned partitions are lost; keep the id
    RESET_ALL = auto()  # drop generation and id, so owned partitions are lost
    REJOIN = auto()  # the group rebalances: join at the next poll
    FATAL = auto()  # poll throws


JOIN_GROUP: dict[ErrorCode, Reaction] = {
    _E.MEMBER_ID_REQUIRED: Reaction.ADOPT_ID,
    _E.UNKNOWN_MEMBER_ID: Reaction.RESET_ALL,
    _E.COORDINATOR_LOAD_IN_PROGRESS: Reaction.BACK_OFF,
    _E.REBALANCE_IN_PROGRESS: Reaction.RETRY,
    _E.COORDINATOR_NOT_AVAILABLE: Reaction.REDISCOVER,
    _E.NOT_COORDINATOR: Reaction.REDISCOVER,
}

SYNC_GROUP: dict[ErrorCode, Reaction] = {
    _E.REBALANCE_IN_PROGRESS: Reaction.RETRY,
    _E.UNKNOWN_MEMBER_ID: Reaction.RESET_ALL,
    _E.ILLEGAL_GENERATION: Reaction.RESET_GENERATION,
    _E.COORDINATOR_NOT_AVAILABLE: Reaction.REDISCOVER,
    _E.NOT_COORDINATOR: Reaction.REDISCOVER,
}

HEARTBEAT: dict[ErrorCode, Reaction] = {
    _E.COORDINATOR_NOT_AVAILABLE: Reaction.REDISCOVER,
    _E.NOT_COORDINATOR: Reaction.REDISCOVER,
    _E.REBALANCE_IN_PROGRESS: Reaction.REJOIN,
    _E.ILLEGAL_GENERATION: Reaction.RESET_GENERATION,
    _E.UNKNOWN_MEMBER_ID: Reaction.RESET_ALL,
    _E.FENCED_INSTANCE_ID: Reaction.FATAL,
}

OFFSET_COMMIT: dict[ErrorCode, Reaction] = {
    _E.COORDINATOR_LOAD_IN_PROGRESS: Reaction.BACK_OFF,
    _E.UNKNOWN_TOPIC_OR_PARTITION: Reaction.BACK_OFF,
    _E.COORDINATOR_NOT_AVAILABLE: Reaction.REDISCOVER,
    _E.NOT_COORDINATOR: Reaction.REDISCOVER,
    _E.REQUEST_TIMED_OUT: Reaction.REDISCOVER,
    _E.REBALANCE_IN_PROGRESS: Reaction.REJOIN,
    _E.ILLEGAL_GENERATION: Reaction.RESET_GENERATION,
    _E.UNKNOWN_MEMBER_ID: Reaction.RESET_ALL,
    _E.FENCED_INSTANCE_ID: Reaction.FATAL,
}
