# SPDX-License-Identifier: Apache-2.0
"""The base classes of requests and responses; the event of a deadline; the states of groups."""

from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any

from kafka_rebalance.frozen import Frozen, Message

from .error_codes import ErrorCode


class Response(Message):
    """A response from a coordinator; most have an `error_code` for the whole request."""


class Request(Message):
    """A request from a client or another broker."""

    response = Response
    """The class of the request's response."""
    handler = ("", "")
    """The only type of group that handles the request, and its method; "" if any type does."""

    def refused(self, error: ErrorCode) -> Response:
        """Returns the response that refuses the request with `error`."""
        return self.response(error_code=error)  # type: ignore[call-arg]


def field_names(kind: Any) -> tuple[str, ...]:
    """Returns the names of the fields of a message's class; () for any other class."""
    return _field_names(kind)


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    if is_dataclass(kind):
        return tuple(one.name for one in fields(kind))
    return getattr(kind, "_fields", ())


def common_fields(source: Any, kind: Any) -> dict[str, Any]:
    """Returns the values of `source` for the fields that the class `kind` also has, by name."""
    return {name: getattr(source, name) for name in field_names(kind) if hasattr(source, name)}


class Tick(Frozen):
    """The clock has reached a deadline."""


class GroupState(Enum):
    """The state of a group of any kind; the value is its name in responses.

    Only classic groups rebalance (`PREPARING_REBALANCE`, `COMPLETING_REBALANCE`). Only
    broker-assigned groups are Assigning or Reconciling (KIP-848), only streams groups NotReady.
    """

    # Faster than Enum's own hash, which is Python code: each request looks up its group's state.
    __hash__ = object.__hash__

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"

    def __str__(self) -> str:
        return self.value
