# SPDX-License-Identifier: Apache-2.0
"""Committed offsets that Rust reads in bulk equal those of the Python reader."""

from __future__ import annotations

import base64
import datetime as dt
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kafka_rebalance import _core
from kafka_rebalance.errors import WireError
from kafka_rebalance.wire.group_records import (
    OffsetCommitKey,
    OffsetCommitValue,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)

LOG = Path(__file__).parent / "data" / "consumer_offsets.jsonl"
UTC = dt.timezone.utc  # noqa: UP017 -- Arrow returns this object
EPOCH = dt.datetime(1970, 1, 1, tzinfo=UTC)

Row = dict[str, Any]


def read(records: list[tuple[bytes | None, bytes | None]]) -> list[Row]:
    keys, values = zip(*records, strict=True)
    batch = pa.record_batch(
        {"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())}
    )
    rows: list[Row] = pa.record_batch(_core.commits_from_records(batch)).to_pylist()
    return rows


def time(ms: int) -> dt.datetime:
    return EPOCH + dt.timedelta(milliseconds=ms)


def reference(key: bytes, value: bytes) -> Row:
    """Returns the row that the Python reader makes of a record."""
    place, commit = decode_key(key), decode_value(decode_key(key), value)
    assert isinstance(place, OffsetCommitKey)
    assert isinstance(commit, OffsetCommitValue)
    ids = [data for tag, data in commit.tagged if tag == 0]
    text = base64.urlsafe_b64encode(ids[-1]).decode().rstrip("=") if ids else None
    expires = commit.expire_timestamp_ms
    return {
        "group_id": place.group_id,
        "topic": place.topic,
        "partition": place.partition,
        "offset": commit.offset,
        "leader_epoch": commit.leader_epoch if commit.leader_epoch >= 0 else None,
        "metadata": commit.metadata,
        "commit_timestamp": time(commit.commit_timestamp_ms),
        "expire_timestamp": None if expires == -1 else time(expires),
        "topic_id": text,
        "error": None,
    }


def captured() -> list[tuple[bytes, bytes]]:
    """Returns the commits of a real log."""
    rows = [json.loads(line) for line in LOG.open(encoding="utf-8")]
    return [
        (bytes.fromhex(row["key"]), bytes.fromhex(row["value"]))
        for row in rows
        if row["control"] is None and row["key"][:4] in ("0000", "0001") and row["value"]
    ]


def test_the_commits_of_a_real_log() -> None:
    records = captured()
    assert len(records) > 10
    for row, record in zip(read(list(records)), records, strict=True):
        assert row == reference(*record)


def drawn(rng: random.Random) -> tuple[bytes, bytes]:
    key = OffsetCommitKey(rng.choice("abc"), "topic-ü", rng.randrange(50), rng.randrange(2))
    version = rng.randrange(5)
    value = OffsetCommitValue(
        offset=rng.randrange(2**40),
        metadata=rng.choice(("", "meta")),
        commit_timestamp_ms=rng.randrange(2**41),
        leader_epoch=rng.choice((-1, 5)) if version >= 3 else -1,
        expire_timestamp_ms=rng.choice((-1, 2**40)) if version == 1 else -1,
        version=version,
        tagged=((0, rng.randbytes(16)), (3, b"x")) if version == 4 and rng.random() < 0.7 else (),
    )
    return encode_key(key), encode_value(value)


def test_two_thousand_random_commits() -> None:
    rng = random.Random(19)
    records = [drawn(rng) for _ in range(2_000)]
    for row, record in zip(read(list(records)), records, strict=True):
        assert row == reference(*record)


def test_corrupt_commits_have_the_error_texts_of_the_reference() -> None:
    rng = random.Random(20)
    records = []
    for _ in range(3_000):
        key, value = drawn(rng)
        data = bytearray(value)
        match rng.randrange(3):
            case 0:
                del data[rng.randrange(len(data)) :]
            case 1:
                data[rng.randrange(len(data))] = rng.randrange(256)
            case 2:
                data += rng.randbytes(rng.randint(1, 3))
        records.append((key, bytes(data)))
    errors = 0
    for row, (key, value) in zip(read(list(records)), records, strict=True):
        try:
            decode_value(decode_key(key), value)
        except WireError as error:
            assert row["error"] == str(error)  # noqa: PT017
            assert (row["group_id"], row["offset"]) == (decode_key(key).group_id, None)  # type: ignore[union-attr]
            errors += 1
        else:
            fits = row["error"] is None or row["error"].startswith(
                ("value.commitTimestamp: ", "value.expireTimestamp: ", "value.topicId: ")
            )
            assert fits, row["error"]
    assert errors > 1_000


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        (None, b"", "key.version: needs 2 bytes, 0 are left"),
        (b"\0\2\0\1g", b"", "key: not that of an offset commit"),
        (b"\0\1\0\1g\0\1t\0\0\0\0", None, "value: a tombstone"),
        (b"\0\1\0\1g\0\1t\0\0", b"", "key.partition: needs 4 bytes, 2 are left"),
        (b"\0\1\0\1g\0\1t\0\0\0\0", b"\0\5", "value.version: 5 is not known (0 to 4 are)"),
    ],
)
def test_records_that_are_no_commits(key: bytes | None, value: bytes | None, problem: str) -> None:
    good = drawn(random.Random(1))
    bad, row = read([(key, value), good])
    assert (bad["error"], bad["offset"]) == (problem, None)
    assert row == reference(*good)


@pytest.mark.parametrize("ms", [2**62, -(2**63), 253_402_300_800_000, -62_135_596_800_001])
def test_a_time_that_nobody_can_show(ms: int) -> None:
    key, value = encode_key(OffsetCommitKey("g", "t", 1)), OffsetCommitValue(1, -1, "", ms)
    [row] = read([(key, encode_value(value))])
    problem = f"value.commitTimestamp: {ms} ms is not in the years 1 to 9999"
    assert (row["group_id"], row["offset"], row["error"]) == ("g", None, problem)


def test_the_first_and_the_last_time() -> None:
    key = encode_key(OffsetCommitKey("g", "t", 1))
    for ms, year in ((253_402_300_799_999, 9999), (-62_135_596_800_000, 1)):
        [row] = read([(key, encode_value(OffsetCommitValue(1, -1, "", ms)))])
        assert row["commit_timestamp"].year == year


def test_an_id_of_another_length() -> None:
    key = encode_key(OffsetCommitKey("g", "t", 1))
    short = OffsetCommitValue(1, -1, "", 5, version=4, tagged=((0, b"abc"),))
    [row] = read([(key, encode_value(short))])
    assert row["error"] == "value.topicId: has 3 bytes, and an id has 16"
