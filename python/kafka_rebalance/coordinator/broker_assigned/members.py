# SPDX-License-Identifier: Apache-2.0
"""Finds the member of a request, or refuses the request.

    unknown member id, or unknown instance id       UNKNOWN_MEMBER_ID
    another member has the instance id              FENCED_INSTANCE_ID
    a larger epoch than the member's                FENCED_MEMBER_EPOCH
    a smaller epoch                                 FENCED_MEMBER_EPOCH, unless it is the member's
                                                    previous one and the member owns nothing else
                                                    than what is assigned to it

Source   GroupMetadataManager.validateConsumerGroupMember, throwIfStaticMemberIsUnknown,
         throwIfInstanceIdIsFenced, getMemberOrThrow,
         throwIf…GroupMemberEpochIsInvalid, Utils.throwIfEmptyString (Kafka 4.4.0); KIP-345.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import IntEnum
from typing import Any, Protocol, TypeVar

from kafka_rebalance.wire.error_codes import ErrorCode

from ..machine.events import Received
from .group import AssigningGroup, GroupWithStaticMembers, StaticMember

_Member = TypeVar("_Member")
_Any = TypeVar("_Any", bound=Any)
_Static = TypeVar("_Static", bound=StaticMember)


class _WithEpochs(Protocol):
    @property
    def member_epoch(self) -> int: ...

    @property
    def previous_member_epoch(self) -> int: ...


def has_room(
    group: GroupWithStaticMembers[Any, Any], size: int, member_id: str, instance_id: str | None
) -> bool:
    """Returns whether the member is in the group already, or the group has less than `size`."""
    return (
        instance_id in group.static_members
        or len(group.members) < size
        or member_id in group.members
    )


def known_member(group: AssigningGroup[_Member, Any], member_id: str) -> _Member:
    member = group.members.get(member_id)
    if member is None:
        raise RequestRefused(ErrorCode.UNKNOWN_MEMBER_ID)
    return member


def known_static(
    group: GroupWithStaticMembers[_Static, Any], member_id: str, instance_id: str
) -> _Static:
    """Returns the member with both ids."""
    member = group.static_member(instance_id)
    if member is None:
        raise RequestRefused(ErrorCode.UNKNOWN_MEMBER_ID)
    if member.member_id != member_id:
        raise RequestRefused(ErrorCode.FENCED_INSTANCE_ID)
    return member


def known_sender(
    group: GroupWithStaticMembers[_Static, Any], member_id: str, instance_id: str | None
) -> _Static:
    """Returns the member that sends a request with these ids."""
    if instance_id is None:
        return known_member(group, member_id)
    return known_static(group, member_id, instance_id)


def check_epoch(
    member: _WithEpochs, epoch: int, owns_only_assigned: Callable[[], bool] = lambda: True
) -> None:
    """Refuses a request with this member epoch, unless it is the present or a late one.

    The members of a share group do not report what they own.
    """
    is_late = epoch == member.previous_member_epoch and owns_only_assigned()
    if epoch > member.member_epoch or (epoch < member.member_epoch and not is_late):
        raise RequestRefused(ErrorCode.FENCED_MEMBER_EPOCH)


UNCHANGED_MS = -1
"""The rebalance timeout of a request that keeps the member's; the other fields are then None."""

_BLANK = "".join(map(chr, range(33)))  # the characters that Java's `String.trim` removes


def is_blank(text: str | None) -> bool:
    """Returns whether a text is there, but is empty for Java's `String.trim`."""
    return text is not None and not text.strip(_BLANK)


class RequestRefused(ValueError):
    """Ends the handling of a request; nothing is appended."""

    def __init__(self, error: ErrorCode) -> None:
        super().__init__(str(error))
        self.error = error


def stepped(member: _Any, state: IntEnum, epoch: int, assigned: object, pending: object) -> _Any:
    """Returns the member after a step of its reconciliation."""
    step: dict[str, Any] = {"state": state, "assigned": assigned, "pending_revocation": pending}
    epochs = {"member_epoch": epoch, "previous_member_epoch": member.member_epoch}
    return replace(member, **epochs, **step)


def updated(member: _Any, event: Received, request: Any, fields: Sequence[str], **new: Any) -> _Any:
    """Returns the member with these fields of the request; None and -1 keep a field.

    `new` has fields that a request does not have in the form in which the member has them.
    """
    sent = {name: getattr(request, name) for name in fields}
    changed = {name: value for name, value in sent.items() if value is not None}
    if changed.get("rebalance_timeout_ms") == UNCHANGED_MS:
        del changed["rebalance_timeout_ms"]
    ids = {"client_id": event.client_id, "client_host": event.client_host}
    return replace(member, **changed, **ids, **new)
