# SPDX-License-Identifier: Apache-2.0
"""Decides whether a commit or fetch of offsets fits the epoch of the member that sends it.

A commit by a known member (`broker_assigned/offsets.py`) with

    a request before version 9 of a member   UNSUPPORTED_VERSION; not in a transaction
    of the consumer protocol
    the member's epoch                       accepted
    a larger epoch                           STALE_MEMBER_EPOCH
    a smaller epoch                          accepted if each partition is assigned to the member,
                                             or pending, and was so in that epoch already; else
                                             STALE_MEMBER_EPOCH

A fetch with another epoch than the member's is refused with STALE_MEMBER_EPOCH, too. For classic
members, and for old versions of TxnOffsetCommit, the error is ILLEGAL_GENERATION.

Source   ConsumerGroup.validateOffsetCommit, validateOffsetFetch (Kafka 4.4.0); KIP-848, KIP-1251.
"""

from collections.abc import Iterable

from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.offsets import OffsetCommit, OffsetFetch, OffsetToCommit, TxnOffsetCommit

from ..broker_assigned.offsets import committing_member, stale_member
from ..machine.cluster import ClusterTopics
from ..machine.events import Received
from .group import ConsumerGroup
from .member import ConsumerGroupMember

_KNOWS_EPOCHS = {OffsetCommit: 9, TxnOffsetCommit: 6}


def refuse_commit(
    event: Received,
    group: ConsumerGroup,
    request: OffsetCommit | TxnOffsetCommit,
    offsets: Iterable[OffsetToCommit],
    cluster: ClusterTopics,
) -> ErrorCode:
    """Returns the error of the whole request, else NONE; `offsets` are those to be stored."""
    epoch, is_transaction = request.generation_id, isinstance(request, TxnOffsetCommit)
    member = committing_member(group, request)
    if isinstance(member, ErrorCode):
        return member
    version = event.api_version
    is_old = version is not None and version < _KNOWS_EPOCHS[type(request)]
    if is_old and not is_transaction and member.classic is None:
        return ErrorCode.UNSUPPORTED_VERSION
    if epoch == member.member_epoch:
        return ErrorCode.NONE
    if is_transaction:
        # The request has no ids of topics, so Kafka finds none of its partitions.
        cluster = ClusterTopics()
    if epoch < member.member_epoch and all(_had(member, epoch, one, cluster) for one in offsets):
        return ErrorCode.NONE
    is_classic = member.classic is not None or (is_transaction and is_old)
    return ErrorCode.ILLEGAL_GENERATION if is_classic else ErrorCode.STALE_MEMBER_EPOCH


def refuse_fetch(group: ConsumerGroup, request: OffsetFetch) -> ErrorCode:
    """Returns the error of the whole request, else NONE."""
    member = stale_member(group, request)
    if isinstance(member, ErrorCode):
        return member
    is_classic = member.classic is not None
    return ErrorCode.ILLEGAL_GENERATION if is_classic else ErrorCode.STALE_MEMBER_EPOCH


def _had(
    member: ConsumerGroupMember, epoch: int, offset: OffsetToCommit, cluster: ClusterTopics
) -> bool:
    """Returns whether the member had the partition in this epoch, and has it still."""
    topic = cluster.topics.get(offset.topic)
    since = None if topic is None else member.assignment_epoch(topic.topic_id, offset.partition)
    return since is not None and since <= epoch
