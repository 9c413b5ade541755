# SPDX-License-Identifier: Apache-2.0
"""The deadlines of members of a group whose broker assigns; a member that misses one is removed.

    session-timeout     starts anew with each accepted heartbeat
    rebalance-timeout   the member must give up what is pending; void if its epoch changed

Source   GroupMetadataManager.scheduleConsumerGroupSessionTimeout, …RebalanceTimeout, and their
         twins for share groups and streams groups (Kafka 4.4.0).
"""

from typing import Any, Protocol, TypeVar

from ..machine.continuations import Retry
from ..machine.deadlines import MEMBER_KINDS, REBALANCE, SESSION, DeadlineKey
from ..machine.state import CoordinatorState
from .group import AssigningGroup


class _Revoking(Protocol):
    @property
    def member_id(self) -> str: ...

    @property
    def member_epoch(self) -> int: ...

    @property
    def rebalance_timeout_ms(self) -> int: ...

    @property
    def is_revoking(self) -> bool: ...


_Member = TypeVar("_Member", bound=_Revoking)


def arm_session(state: CoordinatorState, group_id: str, member_id: str, timeout_ms: int) -> None:
    state.start_session(DeadlineKey(SESSION, group_id, member_id), timeout_ms)


def arm_rebalance(state: CoordinatorState, group_id: str, member: _Revoking) -> None:
    key = DeadlineKey(REBALANCE, group_id, member.member_id)
    state.deadlines.arm(key, state.now_ms + member.rebalance_timeout_ms)
    state.revocations[key] = member.member_epoch


def arm_or_cancel_rebalance(state: CoordinatorState, group_id: str, member: _Revoking) -> None:
    """Sets the rebalance timeout after a written step, which leaves the member revoking or not."""
    if member.is_revoking:
        arm_rebalance(state, group_id, member)
    else:
        _cancel(state, DeadlineKey(REBALANCE, group_id, member.member_id))


def overdue_member(
    state: CoordinatorState, group: AssigningGroup[_Member, Any], key: DeadlineKey
) -> tuple[_Member, Retry] | None:
    """Returns the member to remove after a deadline, and what follows if that fails.

    None: the member has left, or has revoked in time.
    """
    epoch = state.revocations.pop(key, None)
    member = group.members.get(key.member_id)
    if member is None or (key.kind == REBALANCE and member.member_epoch != epoch):
        return None
    return member, Retry(key, epoch)


def cancel_all(state: CoordinatorState, group_id: str, member_id: str) -> None:
    for kind in MEMBER_KINDS:
        _cancel(state, DeadlineKey(kind, group_id, member_id))


def _cancel(state: CoordinatorState, key: DeadlineKey) -> None:
    state.deadlines.cancel(key)
    state.revocations.pop(key, None)
