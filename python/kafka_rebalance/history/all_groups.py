# SPDX-License-Identifier: Apache-2.0
"""The history of all groups in records of `__consumer_offsets`, on one machine.

To save time, only the key of a commit is decoded, and decoded keys are cached.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from operator import attrgetter

from kafka_rebalance.errors import WireError
from kafka_rebalance.group.field_paths import each_of
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.wire.broker_records import decode_record
from kafka_rebalance.wire.group_records import (
    GroupMetadataKey,
    Key,
    OffsetCommitKey,
    OtherKey,
    decode_key,
    encode_key,
)

from .departures import CommitTimes
from .group_epochs import SESSION_MS, GroupEpochs, group_name
from .group_history import GroupHistory
from .group_log import RecordedGeneration, read_generation
from .recorded import RecordedRebalance
from .records import OffsetsRecord

_UUID = struct.Struct(">qq")
_WITH_ID = b"\0\4"  # the version of committed offsets with topic ids
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
    checked = each_of(records, "records", OffsetsRecord, "read_records yields them")
    ordered = sorted(checked, key=attrgetter("partition", "offset"))
    return in_time(recorded_in_order(ordered, session_ms=session_ms))


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
    groups: dict[str, list[OffsetsRecord | dict[TopicPartition, CommitTimes]]] = {}
    names: dict[Uuid, str] = {}
    whole = WholeFrom()
    for record in log:
        whole.add(record.offset)
        try:
            key = read_key(record.key)
        except WireError:
            continue
        if isinstance(key, OffsetCommitKey):
            # A commit before the group's first record shows nothing.
            if record.value is not None and (group := groups.get(key.group_id)):
                _add_commit(group, TopicPartition(key.topic, key.partition), record.timestamp_ms)
                _name_topic(names, key, record.value)
            continue
        name = key.group_id if isinstance(key, GroupMetadataKey) else group_name(record.key)
        if name is not None and group_id in (None, name):
            groups.setdefault(name, []).append(record)
    for group in groups.values():
        history = GroupHistory(whole.offset)
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


def _name_topic(names: dict[Uuid, str], key: OffsetCommitKey, value: bytes) -> None:
    """Stores the topic's id, which brokers of Kafka 4.4 write at the end of a committed offset."""
    if value[:2] == _WITH_ID and len(value) > _UUID.size:
        names[_UUID.unpack(value[-_UUID.size :])] = key.topic


def _add_commit(
    group: list[OffsetsRecord | dict[TopicPartition, CommitTimes]], tp: TopicPartition, time_ms: int
) -> None:
    """Adds a commit to the commits since the group's last record."""
    commits = group[-1]
    if not isinstance(commits, dict):
        commits = {}
        group.append(commits)
    if known := commits.get(tp):
        known.add(CommitTimes(time_ms, time_ms))
    else:
        commits[tp] = CommitTimes(time_ms, time_ms)


def is_consumer_group(one: OffsetsRecord | dict[TopicPartition, CommitTimes]) -> bool:
    """Returns whether this is a record of a group in the consumer protocol, one for each epoch."""
    return not isinstance(one, dict) and one.key[:2] == CONSUMER_GROUP_KEY.to_bytes(2)


def group_of(key: Key) -> str | None:
    """Returns the group id if the key is that of a group's own record; None for other records.

    These are records of the classic protocol and of the consumer protocol (KIP-848).
    """
    if isinstance(key, GroupMetadataKey):
        return key.group_id
    if isinstance(key, OtherKey) and key.version == CONSUMER_GROUP_KEY:
        record = decode_record(encode_key(key), None)
        return record and record.key.group_id
    return None


def read_record(group: GroupHistory, key: Key, record: OffsetsRecord) -> Iterator[_Row]:
    """Yields the row of a group's record, if it has one.

    A tombstone ends the group, and has no row. A record of the consumer protocol has a row if it
    converts the group.
    """
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
