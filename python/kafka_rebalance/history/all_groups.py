# SPDX-License-Identifier: Apache-2.0
"""The history of all groups in records of `__consumer_offsets`, on one machine.

Nearly all records are commits: the core decodes their keys, and passes only a summary to Python.
"""

from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from functools import lru_cache
from itertools import groupby
from operator import attrgetter

import kafka_rebalance._core as _core
from kafka_rebalance.errors import WireError
from kafka_rebalance.group.field_paths import each_of
from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.wire.group_records import GroupMetadataKey, Key, OffsetCommitKey, decode_key

from .group_epochs import SESSION_MS, GroupEpochs, Sessions, read_group_key
from .group_history import GroupHistory
from .group_log import RecordedGeneration, read_generation
from .recorded import RecordedRebalance
from .records import OffsetsRecord, is_parquet, read_columns, read_records

_Row = tuple[RecordedRebalance, RecordedGeneration | None]

Recorded = Sequence[_Row]
"""A row with its record's generation, or with None if that is unreadable or not needed later."""


def rebalance_history(
    records: Iterable[OffsetsRecord], *, session_ms: Sessions = SESSION_MS
) -> list[RecordedRebalance]:
    """Returns a row for each metadata record of a classic group, and for each epoch of a consumer,
    share or streams group, in order of time.

    The records may come in any order; tombstones and records of other kinds have no row. No record
    contains the session timeouts of broker-assigned groups. `session_ms` is one timeout for
    all of them, or group -> timeout, as `group_sessions` reads them; its default is Kafka's. A
    record whose value cannot be read becomes a row with an `error`.

    Errors   TypeError at `records` for anything but records.
    """
    return [row for row, _ in recorded_generations(records, session_ms=session_ms)]


def recorded_generations(
    records: Iterable[OffsetsRecord], *, session_ms: Sessions = SESSION_MS
) -> list[_Row]:
    """Returns each row of `rebalance_history` with the generation in its record, or None.

    Errors   TypeError at `records` for anything but records.
    """
    return in_time(_of_records(records, session_ms))


def _of_records(records: Iterable[OffsetsRecord], session_ms: Sessions) -> Iterator[_Row]:
    logs: dict[int, list[OffsetsRecord]] = {}
    for one in each_of(records, "records", OffsetsRecord, "read_records yields them"):
        logs.setdefault(one.partition, []).append(one)
    for _, log in sorted(logs.items()):
        yield from _of_partition(sorted(log, key=attrgetter("offset")), None, session_ms)


def recorded_in_files(*paths: str) -> Iterator[_Row]:
    """Yields the rows of files, by partition; commits in Parquet never become Python objects."""
    if not all(map(is_parquet, paths)):
        yield from _of_records(read_records(*paths), SESSION_MS)
        return
    batches = [batch for path in paths for batch in read_columns(path)]
    for log in _core.PartitionLogs(batches, _name_of):
        yield from _of_log(log, SESSION_MS)


def in_time(recorded: Iterable[_Row]) -> list[_Row]:
    return sorted(recorded, key=lambda one: (one[0].written_ms, one[0].partition, one[0].offset))


def recorded_in_order(
    records: Iterable[OffsetsRecord],
    group_id: str | None = None,
    *,
    session_ms: Sessions = SESSION_MS,
) -> Iterator[_Row]:
    """Yields the rows of each partition; `records` are in the order of partition and offset.

    Commits are summed up as they come, so memory holds one partition's group records at a time. If
    `group_id` is set, only this group's rows are yielded.
    """
    for _, log in groupby(records, key=attrgetter("partition")):
        yield from _of_partition(log, group_id, session_ms)


def _of_partition(
    log: Iterable[OffsetsRecord], group_id: str | None, session_ms: Sessions
) -> Iterator[_Row]:
    read = _core.PartitionLog(_name_of, group_id)
    read.add(log)
    yield from _of_log(read, session_ms)


def _name_of(data: bytes) -> str | None:
    read = read_group_key(data)
    return read and read.group_id


def _of_log(read: _core.PartitionLog, session_ms: Sessions) -> Iterator[_Row]:
    names = read.topic_names()
    for group in read.groups():
        reader = GroupReader(read.whole_from, names, session_ms)
        for one in group:
            if isinstance(one, dict):
                reader.commit(one)
            else:
                yield from reader.add(one)
        yield from reader.end()


class GroupReader:
    """Reads the records and commits of one group, whatever its type, in the order of the log."""

    def __init__(
        self, whole_from: int, names: MutableMapping[Uuid, str], session_ms: Sessions = SESSION_MS
    ) -> None:
        self._history = GroupHistory(whole_from)
        self._epochs = GroupEpochs(self._history, names, session_ms)
        self.commit = self._epochs.commit
        self.end = self._epochs.end

    def add(self, record: OffsetsRecord) -> Iterator[_Row]:
        """Yields the rows that this record completes. Errors: WireError: its key is unreadable."""
        key = read_key(record.key)
        if isinstance(key, GroupMetadataKey):
            yield from self._epochs.end()
            yield from read_record(self._history, key, record)
        else:
            yield from self._epochs.add(record)


def group_of(key: Key, data: bytes) -> str | None:
    """Returns the group id in the key of a group's own record; None for other keys."""
    if isinstance(key, GroupMetadataKey):
        return key.group_id
    return None if isinstance(key, OffsetCommitKey) else _name_of(data)


def read_record(group: GroupHistory, key: Key, record: OffsetsRecord) -> Iterator[_Row]:
    """Yields the row of a classic group's record; a tombstone deletes the group and has no row."""
    if not isinstance(key, GroupMetadataKey):
        read = read_group_key(record.key)
        if read is None or read.type.role != "METADATA":
            return
        if (converted := group.broker_group(read, record)) is not None:
            yield converted, None
        return
    if record.value is None:
        group.tombstone(record.timestamp_ms)
        return
    try:
        generation = read_generation(key, record, group.members)
    except WireError as error:
        place = (record.partition, record.offset, record.timestamp_ms)
        row = RecordedRebalance(key.group_id, *place, record.timestamp_ms, error=str(error))
        yield row, None
    else:
        yield group.record(generation), generation


class WholeFrom:
    """Computes `offset`: from there to the last offset added, no record is missing.

    Compaction removes records. One missing offset does not count: it may be a transaction's marker.
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
    """Returns a decoded key, from a cache: many commits have equal keys. Errors: WireError."""
    return decode_key(data)
