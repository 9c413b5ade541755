# SPDX-License-Identifier: Apache-2.0
"""The core's sums of commits against sums record by record, on random and malformed records."""

from __future__ import annotations

import random
import struct

import pytest

from kafka_rebalance import _core
from kafka_rebalance.errors import WireError
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.history.all_groups import WholeFrom
from kafka_rebalance.wire.group_records import (
    GroupMetadataKey,
    OffsetCommitKey,
    OffsetsRecord,
    OtherKey,
    decode_key,
    encode_key,
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
    value = rng.choice((None, b"", b"\0\3", b"\0\4" + rng.randbytes(rng.choice((3, 15, 40)))))
    return OffsetsRecord(0, offset, rng.randrange(1000), key, value)


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
            if one.value[:2] == b"\0\4" and len(one.value) > 16:
                names[struct.unpack(">qq", one.value[-16:])] = key.topic
    log = _core.PartitionLog(wanted)
    for at in range(0, len(records), 70):
        log.add(records[at : at + 70])
    read = [
        [
            {tp: (t.first_ms, t.last_ms, t.commits) for tp, t in entry.items()}
            if isinstance(entry, dict)
            else entry
            for entry in group
        ]
        for group in log.groups()
    ]
    assert read == list(groups.values())
    assert all(type(tp) is TopicPartition for group in log.groups() for e in group
               if isinstance(e, dict) for tp in e)  # fmt: skip
    assert (log.whole_from, log.topic_names()) == (whole.offset, names)
