# SPDX-License-Identifier: Apache-2.0
"""Messages are read and written by the annotations of their classes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pytest

from kafka_rebalance.errors import WireError
from kafka_rebalance.wire.broker_records import (
    BrokerRecord,
    CurrentTopic,
    CurrentValue,
    EpochValue,
    RecordKey,
    RecordType,
    decode_record,
    encode_record,
)
from kafka_rebalance.wire.group_records import decode_key, decode_value, encode_key, encode_value
from kafka_rebalance.wire.layout import Boxed, Int32, Since, Tag, Tagged, layout_of

DATA = Path(__file__).parent / "data"


class _Inner(NamedTuple):
    number: Int32
    names: tuple[str | None, ...] | None = None


class _Message(NamedTuple):
    inner: _Inner | None
    boxed: Annotated[tuple[_Inner, ...] | None, Boxed()]
    late: Annotated[Int32, Since(2)] = -1
    tagged: Tagged = ()


MESSAGES = [
    _Message(None, None),
    _Message(_Inner(7, ("a", None)), ()),
    _Message(_Inner(-1), (_Inner(1, ()), _Inner(2)), 5, ((3, b"new"), (9, b""))),
]


@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize("version", [1, 2])
def test_messages_come_back(message: _Message, version: int) -> None:
    layout = layout_of(_Message, version)
    expected = message if version > 1 else message._replace(late=-1)
    assert layout.read(layout.written(message), "message") == expected


@pytest.mark.parametrize("message", MESSAGES)
def test_cut_bytes_name_a_field(message: _Message) -> None:
    layout = layout_of(_Message, 2)
    data = layout.written(message)
    for length in range(len(data)):
        with pytest.raises(WireError, match=r"^message\.(inner|boxed|late|tagged field)"):
            layout.read(data[:length], "message")
    with pytest.raises(WireError, match=r"^message\.end: 1 bytes too many"):
        layout.read(data + b"\0", "message")


def test_an_error_has_the_path_of_its_field() -> None:
    value = CurrentValue(1, 0, 1, (CurrentTopic((1, 2), (0, 1), (5, 6)),), ())
    _, data = encode_record(
        BrokerRecord(
            RecordKey(RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT, "g", "m"), value
        )
    )
    key, _ = encode_record(
        BrokerRecord(RecordKey(RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT, "g", "m"))
    )
    assert data is not None
    epochs = data.index(b"\0\0\0\5\0\0\0\6")
    wrong = data[: epochs - 1] + b"\x09" + data[epochs:]  # the count of the epochs
    path = r"value\.assignedPartitions\[0\]\.assignmentEpochs\[2\]: needs 4 bytes, 0 are left"
    with pytest.raises(WireError, match=path):
        decode_record(key, wrong)


def test_a_tagged_field_is_added_by_one_line() -> None:
    class NewEpochValue(EpochValue):
        owner: Annotated[str | None, Tag(1)] = None

    new: Any = NewEpochValue
    before, after = layout_of(EpochValue), layout_of(new)
    written = after.written(new(3, 9, "team-a"))
    assert after.read(written, "value") == new(3, 9, "team-a")
    assert before.read(written, "value") == EpochValue(3, 9)  # an older reader skips the new field
    assert after.read(before.written(EpochValue(3, 9)), "value") == new(3, 9)
    assert after.written(new(3, 9)) == before.written(EpochValue(3, 9))  # a default is not written


def test_every_record_of_a_real_log_has_its_bytes_when_it_is_written_again() -> None:
    rows = map(json.loads, (DATA / "consumer_offsets.jsonl").open(encoding="utf-8"))
    seen = 0
    for row in rows:
        if row["key"] is None or row["control"] is not None:
            continue
        key, value = (
            None if one is None else bytes.fromhex(one) for one in (row["key"], row["value"])
        )
        assert key is not None
        record = decode_record(key, value)
        if record is not None:
            assert encode_record(record) == (key, value)
        else:
            read_key = decode_key(key)
            assert encode_key(read_key) == key
            read = decode_value(read_key, value)
            assert value is None or read is None or encode_value(read) == value
        seen += 1
    assert seen > 100
