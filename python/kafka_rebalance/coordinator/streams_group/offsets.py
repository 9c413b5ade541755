# SPDX-License-Identifier: Apache-2.0
"""Decides whether a commit or fetch of offsets fits the epoch of the member that sends it.

The rules are those of consumer groups, but a commit of a smaller epoch is looked up by the name of
the topic: its task must be active, or pending, and the member must have had it in that epoch.

Source   StreamsGroup.validateOffsetCommit, validateOffsetFetch (Kafka 4.4.0).
"""

from collections.abc import Iterable

from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.offsets import OffsetCommit, OffsetFetch, OffsetToCommit, TxnOffsetCommit

from ..broker_assigned.offsets import committing_member, stale_member
from ..machine.events import Received
from .group import StreamsGroup
from .member import StreamsGroupMember
from .topology import sources_by_name

_KNOWS_EPOCHS = 9


def refuse_streams_commit(
    event: Received,
    group: StreamsGroup,
    request: OffsetCommit | TxnOffsetCommit,
    offsets: Iterable[OffsetToCommit],
) -> ErrorCode:
    """Returns the error of the whole request, else NONE; `offsets` are those to be stored."""
    epoch, is_transaction = request.generation_id, isinstance(request, TxnOffsetCommit)
    member = committing_member(group, request)
    if isinstance(member, ErrorCode):
        return member
    version = event.api_version
    if not is_transaction and version is not None and version < _KNOWS_EPOCHS:
        return ErrorCode.UNSUPPORTED_VERSION
    if epoch == member.member_epoch:
        return ErrorCode.NONE
    sources = {} if group.topology is None else sources_by_name(group.topology)
    if epoch < member.member_epoch and all(_had(member, epoch, one, sources) for one in offsets):
        return ErrorCode.NONE
    return ErrorCode.STALE_MEMBER_EPOCH


def refuse_streams_fetch(group: StreamsGroup, request: OffsetFetch) -> ErrorCode:
    """Returns the error of the whole request, else NONE."""
    found = stale_member(group, request)
    return found if isinstance(found, ErrorCode) else ErrorCode.STALE_MEMBER_EPOCH


def _had(
    member: StreamsGroupMember, epoch: int, offset: OffsetToCommit, sources: dict[str, str]
) -> bool:
    """Returns whether the member had the task in this epoch, and has it still."""
    task = sources.get(offset.topic, ""), offset.partition
    for tasks in (member.assigned, member.pending_revocation):
        if offset.topic in sources and task in tasks.active:
            return tasks.active[task] <= epoch
    return False
