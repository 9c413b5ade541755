# SPDX-License-Identifier: Apache-2.0
"""Finds the member of a commit or fetch of offsets, as consumer groups and streams groups do it.

A commit with

    no epoch, and the group is Empty         needs no member
    no epoch and no ids, in a transaction    needs no member
    an unknown member                        UNKNOWN_MEMBER_ID

A fetch without member id and epoch needs no member; with them, the member must be known, and the
epoch must be its own.

Source   ConsumerGroup.validateOffsetCommit, validateOffsetFetch, and their twins in
         StreamsGroup.java (Kafka 4.4.0); KIP-848.
"""

from typing import Any, Protocol, TypeVar

from kafka_rebalance.wire.classic_groups import NO_GENERATION, UNKNOWN_MEMBER
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.offsets import CommitRequest, OffsetFetch, TxnOffsetCommit

from .group import AssigningGroup


class _HasEpoch(Protocol):
    @property
    def member_epoch(self) -> int: ...


_Member = TypeVar("_Member")
_Fetching = TypeVar("_Fetching", bound=_HasEpoch)


def committing_member(
    group: AssigningGroup[_Member, Any], request: CommitRequest
) -> _Member | ErrorCode:
    """Returns the member whose epoch is to be checked; else the result: NONE or the error."""
    ids = (request.generation_id, request.member_id, request.group_instance_id)
    if request.generation_id < 0 and group.is_empty:
        return ErrorCode.NONE
    if isinstance(request, TxnOffsetCommit) and ids == (NO_GENERATION, UNKNOWN_MEMBER, None):
        return ErrorCode.NONE
    member = group.members.get(request.member_id)
    return ErrorCode.UNKNOWN_MEMBER_ID if member is None else member


def stale_member(
    group: AssigningGroup[_Fetching, Any], request: OffsetFetch
) -> _Fetching | ErrorCode:
    """Returns the member if the fetch has another epoch; else the result: NONE or the error."""
    if request.member_id is None and request.member_epoch < 0:
        return ErrorCode.NONE
    member = group.members.get(request.member_id or UNKNOWN_MEMBER)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE if request.member_epoch == member.member_epoch else member
