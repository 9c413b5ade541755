# SPDX-License-Identifier: Apache-2.0
"""The changes of committed offsets, as the records of the log make them."""

from typing import NamedTuple

Partition = tuple[str, int]  # (topic, partition)


class CommittedOffset(NamedTuple):
    """A committed offset. Times in ms; an absent time or epoch is None."""

    offset: int
    metadata: str
    commit_timestamp_ms: int
    leader_epoch: int | None = None
    expire_timestamp_ms: int | None = None


class Commit(NamedTuple):
    """A record with a value; it belongs to a transaction if `producer_id` is set."""

    group_id: str
    partition: Partition
    value: CommittedOffset
    producer_id: int | None = None


class Forget(NamedTuple):
    """A tombstone: it removes the committed value and all pending values of the partition."""

    group_id: str
    partition: Partition


class Marker(NamedTuple):
    """The end of a producer's transaction."""

    producer_id: int
    committed: bool


OffsetChange = Commit | Forget | Marker
