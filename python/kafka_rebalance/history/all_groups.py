# SPDX-License-Identifier: Apache-2.0
"""The history of all groups in records of `__consumer_offsets`, on one machine.

`rebalance_history` reads a whole log. Nearly all its records are commits: the core decodes their
keys, and passes only a summary to Python.

`FollowedHistory` reads a log that is still being written, record by record. For classic groups and
conversions, its rows are those of `rebalance_history`, except for `gap_reason`: compaction may have
removed later records, which only a reader of the whole log notices. `rebalance_history` then
reports "compacted", and `FollowedHistory` "never recorded". It skips other records of
broker-assigned groups, so if one is damaged, the row of a conversion can differ, too.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from functools import lru_cache, partial
from itertools import groupby
from operator import attrgetter
from sys import intern
from typing import NamedTuple

import kafka_rebalance._core as _core
from kafka_rebalance.errors import WireError
from kafka_rebalance.group.field_paths import each_of
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.wire.group_records import GroupMetadataKey, Key, OffsetCommitKey, decode_key

from .departures import CommitTimes
from .group_epochs import SESSION_MS, GroupEpochs, Row, Sessions, read_group_key
from .group_history import BACK_WITHIN_MS, GroupHistory
from .group_log import RecordedGeneration, read_generation
from .recorded import RecordedRebalance
from .records import OffsetsRecord, is_parquet, read_columns, read_records

Recorded = Sequence[Row]


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
) -> list[Row]:
    """Returns each row of `rebalance_history` with the generation in its record, or None.

    Errors   TypeError at `records` for anything but records.
    """
    return in_time(_of_records(records, session_ms))


def _of_records(records: Iterable[OffsetsRecord], session_ms: Sessions) -> Iterator[Row]:
    logs: dict[int, list[OffsetsRecord]] = defaultdict(list)
    for one in each_of(records, "records", OffsetsRecord, "read_records yields them"):
        logs[one.partition].append(one)
    for _, log in sorted(logs.items()):
        yield from recorded_in_order(sorted(log, key=attrgetter("offset")), session_ms=session_ms)


def recorded_in_files(*paths: str) -> Iterator[Row]:
    """Yields the rows of files, by partition; if all are Parquet, commits stay in the core."""
    if not all(map(is_parquet, paths)):
        yield from _of_records(read_records(*paths), SESSION_MS)
        return
    batches = [batch for path in paths for batch in read_columns(path)]
    for log in _core.PartitionLogs(batches, _name_of):
        yield from _of_log(log, SESSION_MS)


def in_time(recorded: Iterable[Row]) -> list[Row]:
    return sorted(recorded, key=lambda one: (one[0].written_ms, one[0].partition, one[0].offset))


def recorded_in_order(
    records: Iterable[OffsetsRecord],
    group_id: str | None = None,
    *,
    session_ms: Sessions = SESSION_MS,
) -> Iterator[Row]:
    """Yields the rows of each partition; `records` are in the order of partition and offset.

    Commits are summed up as they come, so memory holds one partition's group records at a time. If
    `group_id` is set, only this group's rows are yielded.
    """
    for _, log in groupby(records, key=attrgetter("partition")):
        read = _core.PartitionLog(_name_of, group_id)
        read.add(log)
        yield from _of_log(read, session_ms)


def _name_of(data: bytes) -> str | None:
    read = read_group_key(data)
    return read and read.group_id


def _of_log(read: _core.PartitionLog, session_ms: Sessions) -> Iterator[Row]:
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

    def add(self, record: OffsetsRecord) -> Iterator[Row]:
        """Yields the rows that this record completes. Errors: WireError for an unreadable key."""
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


def read_record(group: GroupHistory, key: Key, record: OffsetsRecord) -> Iterator[Row]:
    """Yields the row of a classic group's record, or of a conversion to a broker-assigned group.

    A tombstone, which ends the group, has no row.
    """
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
    """Computes `offset`: no record is missing between it and the last offset that was added.

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


# A log that is still being written ---------------------------------------------------------------

_SWEEP_RECORDS = 100_000


class FollowedRow(NamedTuple):
    """A row, with the generations of the group's record before it and of its own, if any."""

    row: RecordedRebalance
    before: RecordedGeneration | None
    after: RecordedGeneration | None


class FollowedHistory:
    """The histories of the groups that `is_wanted` accepts; only the last generation of each is
    kept in memory.

    A deleted group is forgotten when none of its members can come back any more.
    """

    def __init__(self, is_wanted: Callable[[str], bool] = lambda _: True) -> None:
        self._is_wanted = is_wanted
        self._groups: dict[str, GroupHistory] = {}
        self._changed_ms: dict[str, int] = {}
        self._whole: dict[int, WholeFrom] = defaultdict(WholeFrom)
        self.records = 0

    def add(self, record: OffsetsRecord) -> Iterator[FollowedRow]:
        """Yields the record's row, if any. A partition's records must come in order of offset."""
        self.records += 1
        self._whole[record.partition].add(record.offset)
        try:
            key = read_key(record.key)
            name = group_of(key, record.key)
        except WireError:
            return
        if isinstance(key, OffsetCommitKey):
            known = self._groups.get(key.group_id)
            if record.value is not None and known is not None and known.has_record:
                times = CommitTimes(record.timestamp_ms, record.timestamp_ms)
                tp = TopicPartition(intern(key.topic), key.partition)
                known.commits.add({tp: times})
        elif name is not None and self._is_wanted(name):
            history = self._groups.setdefault(name, GroupHistory(0))
            history.whole_from = self._whole[record.partition].offset
            self._changed_ms[name] = record.timestamp_ms
            before = history.newest
            for row, after in read_record(history, key, record):
                yield FollowedRow(row, before, after)
                if after is not None:  # the undecoded record takes a sixth of the memory
                    history.rest(partial(read_generation, key, record))
        if self.records % _SWEEP_RECORDS == 0:
            self._forget(record.timestamp_ms - BACK_WITHIN_MS)

    def _forget(self, before_ms: int) -> None:
        for name in [one for one, at_ms in self._changed_ms.items() if at_ms < before_ms]:
            if self._groups[name].newest is None:
                del self._groups[name], self._changed_ms[name]
