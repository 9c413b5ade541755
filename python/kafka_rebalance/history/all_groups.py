# SPDX-License-Identifier: Apache-2.0
"""The history of all groups in records of `__consumer_offsets`, on one machine.

Nearly all records are commits: the core decodes their keys, and Python sees only sums of them.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby, islice
from operator import attrgetter

import kafka_rebalance._core as _core
from kafka_rebalance.errors import WireError
from kafka_rebalance.group.field_paths import each_of
from kafka_rebalance.wire.broker_records import decode_record
from kafka_rebalance.wire.group_records import (
    GroupMetadataKey,
    Key,
    OtherKey,
    decode_key,
    encode_key,
)

from .group_epochs import SESSION_MS, GroupEpochs, group_name
from .group_history import GroupHistory
from .group_log import RecordedGeneration, read_generation
from .recorded import RecordedRebalance
from .records import OffsetsRecord

_AT_ONCE = 10_000
CONSUMER_GROUP_KEY = 3
"""The version of the key of a group in the consumer protocol (ConsumerGroupMetadataKey.json)."""

_Row = tuple[RecordedRebalance, RecordedGeneration | None]

Recorded = Sequence[_Row]
"""Rows, each with the generation of its record; None if that is unreadable or no longer needed."""


def rebalance_history(
    records: Iterable[OffsetsRecord], *, session_ms: int = SESSION_MS
) -> list[RecordedRebalance]:
    """Returns a row for each metadata record of a classic group, and for each epoch of a group in
    the consumer protocol (KIP-848), in the order of time.

    The records may come in any order; tombstones and records of other kinds have no row. Without
    `session_ms`, consumer groups have the default of `group.consumer.session.timeout.ms`. A record
    whose value cannot be read becomes a row with an `error`.

    Errors   TypeError at `records` for anything but records.
    """
    return [row for row, _ in recorded_generations(records, session_ms=session_ms)]


def recorded_generations(
    records: Iterable[OffsetsRecord], *, session_ms: int = SESSION_MS
) -> list[_Row]:
    """Returns each row of `rebalance_history` with the generation in its record, or None.

    Errors   TypeError at `records` for anything but records.
    """
    logs: dict[int, list[OffsetsRecord]] = {}
    for one in each_of(records, "records", OffsetsRecord, "read_records yields them"):
        logs.setdefault(one.partition, []).append(one)
    return in_time(
        row
        for _, log in sorted(logs.items())
        for row in _of_partition(sorted(log, key=attrgetter("offset")), None, session_ms)
    )


def in_time(recorded: Iterable[_Row]) -> list[_Row]:
    return sorted(recorded, key=lambda one: (one[0].written_ms, one[0].partition, one[0].offset))


def recorded_in_order(
    records: Iterable[OffsetsRecord],
    group_id: str | None = None,
    *,
    session_ms: int = SESSION_MS,
) -> Iterator[_Row]:
    """Yields the rows of each partition; `records` are in the order of partition and offset.

    Commits are summed up as they come, so the memory is that of one partition's group records. If
    `group_id` is set, only this group's rows are returned.
    """
    for _, log in groupby(records, key=attrgetter("partition")):
        yield from _of_partition(log, group_id, session_ms)


def _of_partition(
    log: Iterable[OffsetsRecord], group_id: str | None, session_ms: int
) -> Iterator[_Row]:
    def wanted(data: bytes) -> str | None:
        try:
            key = read_key(data)
        except WireError:
            return None
        name = key.group_id if isinstance(key, GroupMetadataKey) else group_name(data)
        return name if group_id in (None, name) else None

    read, log = _core.PartitionLog(wanted), iter(log)
    while some := list(islice(log, _AT_ONCE)):
        read.add(some)
    names = read.topic_names()
    for group in read.groups():
        history = GroupHistory(read.whole_from)
        epochs = GroupEpochs(history, names, session_ms)
        for one in group:
            if isinstance(one, dict):
                for tp, times in one.items():
                    epochs.commit(tp, times)
            elif isinstance(key := read_key(one.key), GroupMetadataKey):
                yield from epochs.end()
                yield from read_record(history, key, one)
            else:
                yield from epochs.add(one)
        yield from epochs.end()


def group_of(key: Key) -> str | None:
    """Returns the group id in the key of a classic or consumer group's own record, else None."""
    if isinstance(key, GroupMetadataKey):
        return key.group_id
    if isinstance(key, OtherKey) and key.version == CONSUMER_GROUP_KEY:
        record = decode_record(encode_key(key), None)
        return record and record.key.group_id
    return None


def read_record(group: GroupHistory, key: Key, record: OffsetsRecord) -> Iterator[_Row]:
    """Yields the row of a group's record; a tombstone, which ends the group, has none."""
    if not isinstance(key, GroupMetadataKey):
        name = group_of(key)
        if name is not None and (converted := group.consumer_group(name, record)) is not None:
            yield converted, None
        return
    if record.value is None:
        group.tombstone(record.timestamp_ms)
        return
    try:
        generation = read_generation(key, record)
    except WireError as error:
        place = (record.partition, record.offset, record.timestamp_ms)
        row = RecordedRebalance(key.group_id, *place, record.timestamp_ms, error=str(error))
        yield row, None
    else:
        yield group.record(generation), generation


class WholeFrom:
    """Finds `offset`: from it to the last offset added, the records of a partition have no hole.

    Compaction makes holes. A hole of one offset does not count: it may be a transaction's marker.
    """

    def __init__(self) -> None:
        self.offset = 0
        self._last = -3

    def add(self, offset: int) -> None:
        if offset - self._last > 2:
            self.offset = offset
        self._last = offset


@lru_cache(maxsize=20_000)
def read_key(data: bytes) -> Key:
    """Reads a key. It is cached, because many commits have equal keys. Errors: WireError."""
    return decode_key(data)
