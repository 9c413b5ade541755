# SPDX-License-Identifier: Apache-2.0
"""Actions after an append, when it is durable or when it has failed.

A `state` is a `Shard`; its type is `Any` here, because the module of `Shard` imports this one.
Requests that need other actions have a `Continuation` of their own, beside their handler.
"""

from typing import Any

from kafka_rebalance.frozen import Frozen
from kafka_rebalance.wire.error_codes import ErrorCode, of_operation_error
from kafka_rebalance.wire.messages import Request, Response

from .deadlines import DeadlineKey
from .events import ShareStateDue

_RETRY_MS = 500


class Continuation(Frozen):
    """Actions after an append; by default there are none."""

    def done(self, state: Any) -> None:
        """Called when the append is durable."""

    def failed(self, state: Any, error: ErrorCode) -> None:
        """Called when the append failed, or the coordinator's state is lost (NOT_COORDINATOR)."""


class Answer(Continuation):
    """After the append, `response` is sent, or a refusal of `request` if the append failed."""

    request_id: int
    response: Response
    request: Request

    def done(self, state: Any) -> None:
        state.respond(self.request_id, self.response)

    def failed(self, state: Any, error: ErrorCode) -> None:
        state.respond(self.request_id, self.request.refused(of_operation_error(error)))


class SendResponse(Answer):
    """Sends the response; for a share group's member, the host must then carry out `due`."""

    due: ShareStateDue | None = None

    def done(self, state: Any) -> None:
        Answer.done(self, state)
        if self.due is not None:
            state.effects.append(self.due)


class AnswerClassicMember(Answer):
    """Answers a classic member, and arms the deadlines in `armed`: pairs (key, delay in ms)."""

    cancelled: DeadlineKey
    armed: tuple[tuple[DeadlineKey, int], ...]

    def done(self, state: Any) -> None:
        state.answer_classic_member(self)


class Retry(Continuation):
    """If the append fails, the deadline that led to it is armed again, 500 ms from now."""

    key: DeadlineKey
    revocation: int | None  # the epoch that the passed deadline took from `revocations`

    def failed(self, state: Any, error: ErrorCode) -> None:
        if error is not ErrorCode.NOT_COORDINATOR:
            state.deadlines.arm(self.key, state.now_ms + _RETRY_MS)
            if self.revocation is not None:
                state.revocations[self.key] = self.revocation
