# SPDX-License-Identifier: Apache-2.0
"""Members of broker-assigned groups: the errors of their requests, their steps and deadlines.

A smaller epoch than the member's is accepted if it is the previous one and the member owns only
what is assigned to it. A member that misses a deadline is removed. A member's session restarts with
each accepted heartbeat; a passed rebalance timeout has no effect if the member's epoch has changed.

Source   GroupMetadataManager (validateConsumerGroupMember, throwIfStaticMemberIsUnknown,
         throwIfInstanceIdIsFenced, throwIf…GroupMemberEpochIsInvalid,
         scheduleConsumerGroupSessionTimeout, …RebalanceTimeout), Utils.throwIfEmptyString
         (Kafka 4.4.0); docs/behaviour/consumer-groups.md#5-deadlines.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import IntEnum
from typing import Any, TypeVar

from kafka_rebalance.wire.error_codes import ErrorCode

from ..machine.deadlines import MEMBER_KINDS, REBALANCE, SESSION, DeadlineKey
from ..machine.events import Received
from ..machine.state import Shard
from .group import AssignedMember, AssigningGroup
from .table_order import name_set

_Member = TypeVar("_Member", bound=AssignedMember)


def known_member(
    group: AssigningGroup[_Member, Any], member_id: str, instance_id: str | None = None
) -> _Member:
    """Returns the member that sends a request with these ids. Errors: RequestRefused."""
    is_static = instance_id is not None
    member = group.static_member(instance_id) if is_static else group.members.get(member_id)
    if member is None:
        raise RequestRefused(ErrorCode.UNKNOWN_MEMBER_ID)
    if member.member_id != member_id:
        raise RequestRefused(ErrorCode.FENCED_INSTANCE_ID)
    return member


def check_epoch(
    member: AssignedMember, epoch: int, owns_only_assigned: Callable[[], bool] = lambda: True
) -> None:
    """Raises RequestRefused unless the epoch is the member's present one; or its previous one, if
    the member owns only what is assigned to it.
    """
    is_late = epoch == member.previous_member_epoch and owns_only_assigned()
    if epoch > member.member_epoch or (epoch < member.member_epoch and not is_late):
        raise RequestRefused(ErrorCode.FENCED_MEMBER_EPOCH)


UNCHANGED_MS = -1
"""The rebalance timeout in a request that leaves it unchanged; other unchanged fields are None."""

_BLANK = "".join(map(chr, range(33)))  # the characters that Java's `String.trim` removes


def is_blank(text: str | None) -> bool:
    """Returns whether a string is not None, but empty after Java's `String.trim`."""
    return text is not None and not text.strip(_BLANK)


class RequestRefused(ValueError):
    """Raised to refuse a request: ends its handling, and nothing is appended."""

    def __init__(self, error: ErrorCode) -> None:
        super().__init__(str(error))
        self.error = error


def stepped(
    member: _Member, state: IntEnum, epoch: int, assigned: object, pending: object
) -> _Member:
    """Returns the member after a step of its reconciliation."""
    step: dict[str, Any] = {"assigned": assigned, "pending_revocation": pending}
    before = member.member_epoch
    return replace(member, state=state, member_epoch=epoch, previous_member_epoch=before, **step)


def updated(
    member: _Member, event: Received, request: Any, fields: Sequence[str], **new: Any
) -> _Member:
    """Returns the member with `new`, and with the request's `fields` (None and -1: unchanged)."""
    sent = {name: getattr(request, name) for name in fields}
    changed = {name: value for name, value in sent.items() if value is not None}
    if changed.get("rebalance_timeout_ms") == UNCHANGED_MS:
        del changed["rebalance_timeout_ms"]
    if "subscribed_topic_names" in changed:
        changed["subscribed_topic_names"] = name_set(changed["subscribed_topic_names"])
    changed |= new
    return replace(member, client_id=event.client_id, client_host=event.client_host, **changed)


# Deadlines ----------------------------------------------------------------------------------------


def arm_session(state: Shard, group_id: str, member_id: str, timeout_ms: int) -> None:
    state.start_session(DeadlineKey(SESSION, group_id, member_id), timeout_ms)


def arm_rebalance(state: Shard, group_id: str, member: AssignedMember) -> None:
    key = DeadlineKey(REBALANCE, group_id, member.member_id)
    state.deadlines.arm(key, state.now_ms + member.rebalance_timeout_ms)
    state.revocations[key] = member.member_epoch


def arm_or_cancel_rebalance(state: Shard, group_id: str, member: AssignedMember) -> None:
    """Arms the rebalance timeout if the member must revoke something, else cancels it."""
    if member.is_revoking:
        arm_rebalance(state, group_id, member)
    else:
        _cancel(state, DeadlineKey(REBALANCE, group_id, member.member_id))


def cancel_all(state: Shard, group_id: str, member_id: str) -> None:
    for kind in MEMBER_KINDS:
        _cancel(state, DeadlineKey(kind, group_id, member_id))


def _cancel(state: Shard, key: DeadlineKey) -> None:
    state.deadlines.cancel(key)
    state.revocations.pop(key, None)
