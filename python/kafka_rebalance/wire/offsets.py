# SPDX-License-Identifier: Apache-2.0
"""Requests and responses about committed offsets. Times are in ms.

Source   the request and response schemas of Kafka 4.4.0 (OffsetCommitRequest.json, …).
"""

from typing import NamedTuple

from .classic_groups import NO_GENERATION, UNKNOWN_MEMBER
from .error_codes import ErrorCode
from .messages import Request, Response

NO_RETENTION = -1


class OffsetToCommit(NamedTuple):
    """One partition of an OffsetCommit; Kafka treats a null `metadata` as an empty string."""

    topic: str
    partition: int
    offset: int
    metadata: str | None = ""
    leader_epoch: int = -1


class PartitionError(NamedTuple):
    topic: str
    partition: int
    error_code: ErrorCode


class OffsetCommitResponse(Response):
    """Responds to OffsetCommit and TxnOffsetCommit: a code for each partition, in request order."""

    partitions: tuple[PartitionError, ...] = ()


class CommitRequest(Request):
    """A member, or a client that is not a member (generation -1), commits offsets."""

    response = OffsetCommitResponse
    knows_epochs = 9
    """The first version with a member's epoch, and with GROUP_ID_NOT_FOUND for an absent group."""

    group_id: str
    offsets: tuple[OffsetToCommit, ...]
    member_id: str = UNKNOWN_MEMBER
    generation_id: int = NO_GENERATION
    group_instance_id: str | None = None

    def refused(self, error: ErrorCode) -> OffsetCommitResponse:
        codes = (PartitionError(one.topic, one.partition, error) for one in self.offsets)
        return OffsetCommitResponse(partitions=tuple(codes))


class OffsetCommit(CommitRequest):
    """Commits offsets that are visible at once. `retention_ms` (v2 to v4) replaces the default."""

    retention_ms: int | None = None


class TxnOffsetCommit(CommitRequest):
    """Commits offsets that become visible when the producer commits its transaction."""

    knows_epochs = 6

    producer_id: int


class EndTransactionResponse(Response):
    """Reports whether the transaction's marker was written."""

    error_code: ErrorCode = ErrorCode.NONE


class EndTransaction(Request):
    """The transaction coordinator ends a producer's transaction with a marker (WriteTxnMarkers)."""

    response = EndTransactionResponse

    producer_id: int
    committed: bool


class FetchedOffset(NamedTuple):
    """A committed offset; a partition without one has offset -1 and no metadata."""

    topic: str
    partition: int
    offset: int = -1
    leader_epoch: int = -1
    metadata: str = ""
    error_code: ErrorCode = ErrorCode.NONE


class OffsetFetchResponse(Response):
    """Committed offsets in the request's order, or by partition if the request asks for all."""

    error_code: ErrorCode = ErrorCode.NONE
    offsets: tuple[FetchedOffset, ...] = ()


class OffsetFetch(Request):
    """A client, or a member with its epoch, reads the offsets of `partitions`; None means all."""

    response = OffsetFetchResponse

    group_id: str
    partitions: tuple[tuple[str, int], ...] | None = None
    require_stable: bool = False
    member_id: str | None = None
    member_epoch: int = NO_GENERATION


class OffsetDeleteResponse(Response):
    """The error code for the whole group, or one for each partition."""

    error_code: ErrorCode = ErrorCode.NONE
    partitions: tuple[PartitionError, ...] = ()


class OffsetDelete(Request):
    """An administrator deletes a group's offsets of these partitions (topic, partition)."""

    response = OffsetDeleteResponse

    group_id: str
    partitions: tuple[tuple[str, int], ...]
