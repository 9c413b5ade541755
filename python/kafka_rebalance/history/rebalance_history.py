# SPDX-License-Identifier: Apache-2.0
"""The history of all groups in records of `__consumer_offsets`, on one machine.

To save time, only the key of a commit is decoded, and equal keys are decoded once.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from operator import attrgetter

from kafka_rebalance.errors import WireError
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.wire.group_records import GroupMetadataKey, Key, OffsetCommitKey, decode_key

from .departures import CommitTimes
from .group_history import GroupHistory
from .group_log import RecordedGeneration, read_generation
from .recorded import RecordedRebalance
from .records import OffsetsRecord

Recorded = Sequence[tuple[RecordedRebalance, RecordedGeneration | None]]
"""Rows with the generations that they were made from; None if a record cannot be read."""


def rebalance_history(records: Iterable[OffsetsRecord]) -> list[RecordedRebalance]:
    """Returns a row for each record of each classic group, in the order of time.

    The records may come in any order; those of other kinds of groups have no row. A record that
    cannot be read becomes a row with an `error`.
    """
    return [row for row, _ in recorded_generations(records)]


def recorded_generations(
    records: Iterable[OffsetsRecord],
) -> list[tuple[RecordedRebalance, RecordedGeneration | None]]:
    """Returns each row of `rebalance_history` with the generation that it was made from."""
    log = sorted(records, key=attrgetter("partition", "offset"))
    starts = whole_from(log)
    groups: dict[tuple[int, str], GroupHistory] = {}
    found: list[tuple[RecordedRebalance, RecordedGeneration | None]] = []
    for record in log:
        try:
            key = read_key(record.key)
        except WireError:
            continue
        if isinstance(key, OffsetCommitKey) and record.value is not None:
            if group := groups.get((record.partition, key.group_id)):
                times = CommitTimes(record.timestamp_ms, record.timestamp_ms)
                group.commit(TopicPartition(key.topic, key.partition), times)
        elif isinstance(key, GroupMetadataKey):
            place = (record.partition, key.group_id)
            if place not in groups:
                groups[place] = GroupHistory(starts[record.partition])
            found += read_record(groups[place], key, record)
    return sorted(found, key=lambda one: (one[0].written_ms, one[0].partition, one[0].offset))


def read_record(
    group: GroupHistory, key: GroupMetadataKey, record: OffsetsRecord
) -> Iterator[tuple[RecordedRebalance, RecordedGeneration | None]]:
    """Yields the row of a group's record; none for a tombstone, which ends the group."""
    if record.value is None:
        group.tombstone()
        return
    place = (record.partition, record.offset, record.timestamp_ms)
    try:
        generation = read_generation(key, record.value, *place)
    except WireError as error:
        row = RecordedRebalance(key.group_id, *place, record.timestamp_ms, error=str(error))
        yield row, None
    else:
        yield group.record(generation), generation


def whole_from(log: Iterable[OffsetsRecord]) -> dict[int, int]:
    """Returns for each partition the first offset after its last hole. The log must be sorted.

    Compaction leaves holes. A hole of one offset does not count, because a transaction's marker
    leaves one, too.
    """
    starts: dict[int, int] = {}
    last: dict[int, int] = {}
    for record in log:
        if record.offset - last.get(record.partition, -3) > 2:
            starts[record.partition] = record.offset
        last[record.partition] = record.offset
    return starts


@lru_cache(maxsize=100_000)
def read_key(data: bytes) -> Key:
    """Reads a key. It is cached, because many commits have equal keys. Errors: WireError."""
    return decode_key(data)
