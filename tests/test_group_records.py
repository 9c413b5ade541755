# SPDX-License-Identifier: Apache-2.0
"""`__consumer_offsets` records: bytes of Kafka's own serializers, and malformed bytes."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_rebalance.coordinator.coordinator import Coordinator
from kafka_rebalance.coordinator.machine.events import Loaded, LogEntry, Unreadable
from kafka_rebalance.errors import WireError
from kafka_rebalance.wire.broker_records import RecordType
from kafka_rebalance.wire.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    Key,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    OtherKey,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)


def _hex(text: str) -> bytes:
    return bytes.fromhex(text.replace(" ", ""))


KEYS: dict[str, Key] = {
    "0000 00026731 00027431 00000003": OffsetCommitKey("g1", "t1", 3, version=0),
    "0001 00026731 00027431 00000003": OffsetCommitKey("g1", "t1", 3),
    "0002 00026731": GroupMetadataKey("g1"),
    "0003 00026731": OtherKey(3, _hex("00026731")),
}


@pytest.mark.parametrize("text", KEYS)
def test_keys(text: str) -> None:
    assert decode_key(_hex(text)) == KEYS[text]
    assert encode_key(KEYS[text]) == _hex(text)


OFFSETS = [
    "0000 000000000000002a 00026d64 00000000000003e8",
    "0001 000000000000002a 00026d64 00000000000003e8 00000000000007d0",
    "0002 000000000000002a 00026d64 00000000000003e8",
    "0003 000000000000002a 00000007 00026d64 00000000000003e8",
    "0004 000000000000002a 00000007 036d64 00000000000003e8 00",
]


@pytest.mark.parametrize("version", range(5))
def test_offsets(version: int) -> None:
    value = decode_value(OffsetCommitKey("g1", "t1", 3), _hex(OFFSETS[version]))
    epoch, expires = (7 if version >= 3 else -1), (2000 if version == 1 else -1)
    assert value == OffsetCommitValue(42, epoch, "md", 1000, expires, version)
    assert encode_value(value) == _hex(OFFSETS[version])


_HEAD = "0008636f6e73756d6572 00000005 000572616e6765 00026d31"
_V0 = "00026d31 000163 00022f68 0000afc8 000000020102 0000000103"
_V1 = "00026d31 000163 00022f68 000493e0 0000afc8 000000020102 0000000103"
_V3 = "00026d31 00026931 000163 00022f68 000493e0 0000afc8 000000020102 0000000103"
_FLEXIBLE_HEAD = "09636f6e73756d6572 00000005 0672616e6765 036d31 00000000000003e8"
GROUPS = [
    f"0000 {_HEAD} 00000001 {_V0}",
    f"0001 {_HEAD} 00000001 {_V1}",
    f"0002 {_HEAD} 00000000000003e8 00000001 {_V1}",
    f"0003 {_HEAD} 00000000000003e8 00000001 {_V3}",
    f"0004 {_FLEXIBLE_HEAD} 02 036d31 036931 0263 032f68 000493e0 0000afc8 030102 0203 00 00",
]


@pytest.mark.parametrize("version", range(5))
def test_groups(version: int) -> None:
    value = decode_value(GroupMetadataKey("g1"), _hex(GROUPS[version]))
    instance, timeout = ("i1" if version >= 3 else None), (300_000 if version >= 1 else -1)
    member = MemberMetadata("m1", instance, "c", "/h", timeout, 45_000, b"\1\2", b"\3")
    stamp = 1000 if version >= 2 else -1
    assert value == GroupMetadataValue("consumer", 5, "range", "m1", stamp, (member,), version)
    assert encode_value(value) == _hex(GROUPS[version])


def test_an_empty_group() -> None:
    text = "0003 0008636f6e73756d6572 00000006 ffff ffff 00000000000003e8 00000000"
    value = decode_value(GroupMetadataKey("g1"), _hex(text))
    assert value == GroupMetadataValue("consumer", 6, None, None, 1000)
    assert encode_value(value) == _hex(text)


def test_a_tombstone_has_no_value() -> None:
    assert decode_value(GroupMetadataKey("g1"), None) is None


def test_tagged_fields_are_kept() -> None:
    data = _hex("0004 000000000000002a 00000007 036d64 00000000000003e8 01 05 02 abcd")
    value = decode_value(OffsetCommitKey("g", "t", 0), data)
    assert isinstance(value, OffsetCommitValue)
    assert value.tagged == ((5, b"\xab\xcd"),)
    assert encode_value(value) == data


@pytest.mark.parametrize("version", range(5))
def test_every_cut_names_a_field(version: int) -> None:
    for key, whole in (
        (OffsetCommitKey("g", "t", 0), _hex(OFFSETS[version])),
        (GroupMetadataKey("g"), _hex(GROUPS[version])),
    ):
        for length in range(len(whole)):
            with pytest.raises(WireError, match=r"^value\.[\w\[\]. ]+: .+"):
                decode_value(key, whole[:length])
        with pytest.raises(WireError, match=r"value\.end: 1 bytes too many"):
            decode_value(key, whole + b"\0")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("0005", r"value\.version: 5 is not known"),
        ("0003 ffff", r"value\.protocolType: is null"),
        ("0003 0001ff 00000000", r"value\.protocolType: is not UTF-8"),
        ("0003 0000 00000000 ffff ffff 0000000000000000 7fffffff", r"2147483647 entries"),
    ],
)
def test_values_that_no_group_record_can_have(data: str, problem: str) -> None:
    with pytest.raises(WireError, match=problem):
        decode_value(GroupMetadataKey("g"), _hex(data))


@given(st.binary(max_size=200), st.booleans())
def test_hostile_bytes_raise_or_round_trip(data: bytes, is_group: bool) -> None:
    key = GroupMetadataKey("g") if is_group else OffsetCommitKey("g", "t", 0)
    try:
        value = decode_value(key, data)
    except WireError:
        return
    assert value is not None
    # Values are compared, not bytes, because any negative length means null.
    assert decode_value(key, encode_value(value)) == value


CAPTURED = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "consumer_offsets.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
]


def test_a_brokers_records_come_back_byte_for_byte() -> None:
    kinds: Counter[tuple[str, int | None]] = Counter()
    for record in CAPTURED:
        if record["control"] is not None:
            continue
        data = bytes.fromhex(record["key"])
        key = decode_key(data)
        assert encode_key(key) == data
        value = None if record["value"] is None else bytes.fromhex(record["value"])
        read = decode_value(key, value)
        kinds[type(key).__name__, getattr(read, "version", None)] += 1
        if read is not None:
            assert encode_value(read) == value
    assert kinds["OffsetCommitKey", 4] > 100
    assert kinds["GroupMetadataKey", 3] > 20
    assert {("OffsetCommitKey", None), ("GroupMetadataKey", None), ("OtherKey", None)} <= set(kinds)


def test_a_damaged_log_is_refused_at_its_first_damaged_record() -> None:
    entries = [
        LogEntry(place, bytes.fromhex(one["key"]), one["value"] and bytes.fromhex(one["value"]))
        for place, one in enumerate(CAPTURED)
        if one["control"] is None and one["pid"] is None
    ]
    whole = Coordinator()
    assert whole.handle(Loaded(tuple(entries)), 0) == []
    read = (0, 1, 2, *RecordType)
    changed = 0
    for at, entry in enumerate(entries):
        if not entry.value or at % 7 or entry.key[1] not in read:
            continue
        hurt = [*entries[:at], entry._replace(value=entry.value[:-3]), *entries[at + 1 :]]
        coordinator = Coordinator()
        [told] = coordinator.handle(Loaded(tuple(hurt)), 0)
        assert isinstance(told, Unreadable)
        assert told.position == entry.position
        assert re.match(r"value\.[\w\[\]. ]+: .+", told.problem)
        assert not coordinator.groups()
        changed += 1
    assert changed > 10
