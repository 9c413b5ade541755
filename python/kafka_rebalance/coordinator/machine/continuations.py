# SPDX-License-Identifier: Apache-2.0
"""What follows an append: the actions after it is durable, or after it has failed.

`appends.py` takes them.
"""

from dataclasses import dataclass

from kafka_rebalance.wire.classic_groups import DeleteGroups
from kafka_rebalance.wire.messages import Request, Response

from ..classic_group.group import ClassicGroupMember, Group
from .deadlines import DeadlineKey
from .events import ShareStateDue


@dataclass(frozen=True, slots=True)
class StoreAssignment:
    """After the append, all members get the leader's assignment, and the group becomes Stable."""

    group: Group
    generation_id: int
    assignment: dict[str, bytes]


@dataclass(frozen=True, slots=True)
class ReplaceStatic:
    """After the append, a static member has a new id, but there is no rebalance.

    `before` is the member with its old id.
    """

    group: Group
    before: ClassicGroupMember
    old_leader: str | None
    request_id: int
    knows_skipping: bool


@dataclass(frozen=True, slots=True)
class SendResponse:
    """After the append, `response` is sent, or a refusal of `request` if the append failed.

    `due` is what the host must do after the response of a share group's member.
    """

    request_id: int
    response: Response
    request: Request
    due: ShareStateDue | None = None


@dataclass(frozen=True, slots=True)
class AnswerClassicMember:
    """After the append, a classic member of a consumer group gets its response; timers are set.

    `armed` has deadlines with their times in ms from then.
    """

    request_id: int
    response: Response
    request: Request
    cancelled: DeadlineKey
    armed: tuple[tuple[DeadlineKey, int], ...]


@dataclass(frozen=True, slots=True)
class Retry:
    """If the append fails, the deadline that led to it is armed again."""

    key: DeadlineKey
    revocation: int | None  # the epoch of `revocations`, which the deadline has used up


@dataclass(frozen=True, slots=True)
class ForgetInitializing:
    """If the append fails, the share state of `due` counts as not initialised."""

    due: ShareStateDue


@dataclass(frozen=True, slots=True)
class ContinueDeletion:
    """After the append, the deletion of share groups goes on with `group_ids`, then with all."""

    request_id: int
    request: DeleteGroups
    group_ids: tuple[str, ...]


Continuation = (
    StoreAssignment
    | ReplaceStatic
    | SendResponse
    | AnswerClassicMember
    | Retry
    | ForgetInitializing
    | ContinueDeletion
    | None
)
