# SPDX-License-Identifier: Apache-2.0
"""The core's sums of commits against sums record by record, on random and malformed records."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import pytest

from kafka_rebalance import _core
from kafka_rebalance.errors import WireError
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.history.all_groups import WholeFrom
from kafka_rebalance.history.departures import CommitsSeen, CommitTimes
from kafka_rebalance.wire.group_records import (
    GroupMetadataKey,
    OffsetCommitKey,
    OffsetCommitValue,
    OffsetsRecord,
    OtherKey,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)


def wanted(key: bytes) -> str | None:
    try:
        read = decode_key(key)
    except WireError:
        return None
    if isinstance(read, GroupMetadataKey):
        return read.group_id
    return "g3" if isinstance(read, OtherKey) and read.version == 3 else None


def record(rng: random.Random, offset: int) -> OffsetsRecord:
    group, topic = f"g{rng.randrange(4)}", rng.choice(("t", "u", "ü"))
    kind = rng.random()
    if kind < 0.7:
        version = rng.choice((0, 1))
        key = encode_key(OffsetCommitKey(group, topic, rng.randrange(-1, 3), version=version))
    elif kind < 0.9:
        key = encode_key(GroupMetadataKey(group))
    else:
        key = encode_key(OtherKey(rng.choice((3, 4, 900)), b"\0\2g3"))
    if rng.random() < 0.1:
        at = rng.randrange(len(key))
        key = key[:at] + rng.choice((b"", b"\xff", b"\0")) + key[at + 1 :]
    return OffsetsRecord(0, offset, rng.randrange(1000), key, value_of(rng, topic))


def value_of(rng: random.Random, topic: str) -> bytes | None:
    """Returns a committed offset: with or without the topic's id, or another tag, or damaged."""
    topic_id = topic.encode().rjust(16, b"\0") if rng.random() < 0.9 else rng.randbytes(16)
    tagged = rng.choice(((), ((0, topic_id),), ((1, topic_id),), ((0, topic_id), (1, b"\0"))))
    version = rng.choice((0, 1, 3, 4, 4))
    value = encode_value(OffsetCommitValue(7, -1, "", 8, 9, version, tagged))
    return rng.choice((None, value, value, value, value, value[:-1], value + b"\0", b"", b"\0\4"))


def _plain(groups: list[list[Any]]) -> list[list[Any]]:
    """Returns the groups' entries, with the times of commits as tuples."""
    return [
        [
            {tp: (t.first_ms, t.last_ms, t.commits) for tp, t in entry.items()}
            if isinstance(entry, dict)
            else entry
            for entry in group
        ]
        for group in groups
    ]


@pytest.mark.parametrize("seed", range(20))
def test_commits_are_summed_between_the_records_of_their_group(seed: int) -> None:
    rng, whole = random.Random(seed), WholeFrom()
    groups: dict[str, list[object]] = {}
    names: dict[object, str] = {}
    records, offset = [], rng.randrange(5)
    for _ in range(300):
        offset += rng.choice((1, 1, 1, 2, 3))
        records.append(record(rng, offset))
    for one in records:
        whole.add(one.offset)
        try:
            key = decode_key(one.key)
        except WireError:
            continue
        if isinstance(key, OffsetCommitKey) and one.value is not None:
            with suppress(WireError):
                value = decode_value(key, one.value)
                assert isinstance(value, OffsetCommitValue)
                if value.topic_id is not None:
                    names.setdefault(value.topic_id, key.topic)
        if not isinstance(key, OffsetCommitKey):
            if (name := wanted(one.key)) is not None:
                groups.setdefault(name, []).append(one)
        elif one.value is not None and (entries := groups.get(key.group_id)) is not None:
            if not isinstance(entries[-1], dict):
                entries.append({})
            sums = entries[-1]
            assert isinstance(sums, dict)
            first, last, count = sums.get(tp := TopicPartition(key.topic, key.partition)) or (
                one.timestamp_ms, one.timestamp_ms, 0,
            )  # fmt: skip
            times = min(first, one.timestamp_ms), max(last, one.timestamp_ms), count + 1
            sums[tp] = times
    log = _core.PartitionLog(wanted)
    for at in range(0, len(records), 70):
        log.add(records[at : at + 70])
        log.add(records[at : at + 70][-1:])  # a record that is read twice counts once
    assert _plain(log.groups()) == list(groups.values())
    assert all(type(tp) is TopicPartition for group in log.groups() for e in group
               if isinstance(e, dict) for tp in e)  # fmt: skip
    assert (log.whole_from, log.topic_names()) == (whole.offset, names)


def test_a_value_that_is_not_bytes_is_no_tombstone() -> None:
    log = _core.PartitionLog(wanted)
    log.add([OffsetsRecord(0, 0, 0, encode_key(GroupMetadataKey("g")), None)])
    with pytest.raises(TypeError):
        log.add([OffsetsRecord(0, 1, 0, encode_key(OffsetCommitKey("g", "t", 0)), bytearray(9))])  # type: ignore[arg-type]


def test_the_times_that_were_added_are_not_changed() -> None:
    one, other = CommitTimes(5, 9, 3), CommitTimes(2, 6)
    both, seen = one + other, CommitsSeen()
    assert (both.first_ms, both.last_ms, both.commits) == (2, 9, 4)
    tp = TopicPartition("t", 0)
    seen.add({tp: one})
    seen.add({tp: other})
    assert (one.first_ms, one.last_ms, one.commits, one.distance_ms) == (5, 9, 3, 2)
    assert seen.since[tp].commits == 4


def test_batches_in_any_order_are_read_partition_by_partition() -> None:
    arrow = pytest.importorskip("pyarrow", reason="no pyarrow: pip install -e '.[arrow]'")
    rng = random.Random(7)
    logs = {
        partition: [record(rng, offset)._replace(partition=partition) for offset in range(200)]
        for partition in (9, 0, 4)
    }
    records = [one for log in logs.values() for one in log]
    records += records[::50]  # read twice
    rng.shuffle(records)
    names = ("partition", "offset", "timestamp", "key", "value")
    batches = [
        arrow.record_batch([arrow.array(column) for column in zip(*some, strict=True)], names)
        for some in (records[:100], records[100:])
    ]
    found = [log.groups() for log in _core.PartitionLogs(batches, wanted)]
    for log, (_, expected) in zip(found, sorted(logs.items()), strict=True):
        alone = _core.PartitionLog(wanted)
        alone.add(expected)
        assert _plain(log) == _plain(alone.groups())


def test_only_the_wanted_group_is_kept() -> None:
    log, rng = _core.PartitionLog(wanted, "g1"), random.Random(3)
    log.add(record(rng, offset) for offset in range(300))
    (entries,) = log.groups()
    assert {decode_key(one.key) for one in entries if isinstance(one, OffsetsRecord)} == {
        GroupMetadataKey("g1")
    }
