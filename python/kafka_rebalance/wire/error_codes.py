# SPDX-License-Identifier: Apache-2.0
"""Defines the Kafka error codes of responses to group requests, and of failed appends."""

import struct
from enum import IntEnum
from typing import Annotated


class ErrorCode(IntEnum):
    """The names and numbers of org.apache.kafka.common.protocol.Errors."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    UNKNOWN_TOPIC_OR_PARTITION = 3
    INVALID_FETCH_SIZE = 4
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    MESSAGE_TOO_LARGE = 10
    OFFSET_METADATA_TOO_LARGE = 12
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    UNSUPPORTED_VERSION = 35
    INVALID_REQUEST = 42
    KAFKA_STORAGE_ERROR = 56
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    MEMBER_ID_REQUIRED = 79
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    UNSTABLE_OFFSET_COMMIT = 88
    UNKNOWN_TOPIC_ID = 100
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    INVALID_REGULAR_EXPRESSION = 128
    STREAMS_INVALID_TOPOLOGY = 130

    def __str__(self) -> str:
        return self.name

    @classmethod
    def _missing_(cls, value: object) -> "ErrorCode | None":
        """Returns a new code, `ERROR_<number>`, for a number that is not in this list."""
        if not isinstance(value, int):
            return None
        unknown = int.__new__(cls, value)
        unknown._name_, unknown._value_ = f"ERROR_{value}", value
        return unknown


ErrorField = Annotated[ErrorCode, struct.Struct(">h")]
"""The type of a response's field with an error code of 16 bits (`wire/layout.py`)."""

_E = ErrorCode

# The error of a failed append -> the error of the response; other errors stay unchanged.
_APPEND_ERRORS = {
    _E.UNKNOWN_TOPIC_OR_PARTITION: _E.COORDINATOR_NOT_AVAILABLE,
    _E.NOT_ENOUGH_REPLICAS: _E.COORDINATOR_NOT_AVAILABLE,
    _E.REQUEST_TIMED_OUT: _E.COORDINATOR_NOT_AVAILABLE,
    _E.NOT_LEADER_OR_FOLLOWER: _E.NOT_COORDINATOR,
    _E.KAFKA_STORAGE_ERROR: _E.NOT_COORDINATOR,
    _E.MESSAGE_TOO_LARGE: _E.UNKNOWN_SERVER_ERROR,
    _E.RECORD_LIST_TOO_LARGE: _E.UNKNOWN_SERVER_ERROR,
    _E.INVALID_FETCH_SIZE: _E.UNKNOWN_SERVER_ERROR,
}


def of_append_error(error: ErrorCode) -> ErrorCode:
    """Returns the error code for a JoinGroup or SyncGroup response after a failed append."""
    return _APPEND_ERRORS.get(error, error)


def of_operation_error(error: ErrorCode) -> ErrorCode:
    """Returns the error code for responses to all other requests after a failed append.

    A NETWORK_EXCEPTION (from the verification of a transaction) becomes
    COORDINATOR_LOAD_IN_PROGRESS, because clients then retry without looking for a coordinator.

    Source   CoordinatorOperationExceptionHelper.handleOperationException.
    """
    is_network = error is ErrorCode.NETWORK_EXCEPTION
    return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if is_network else of_append_error(error)
