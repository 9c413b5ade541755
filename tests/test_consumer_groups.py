# SPDX-License-Identifier: Apache-2.0
"""Consumer groups at the broker: recorded runs of Kafka 4.4.0's own coordinator, and records."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_rebalance._core import xxh3
from kafka_rebalance.errors import WireError
from kafka_rebalance.java.timeline_hash_map import TimelineHashMap
from kafka_rebalance.playback.driver import Driver
from kafka_rebalance.wire.broker_records import (
    BrokerRecord,
    CurrentTopic,
    CurrentValue,
    RecordKey,
    RecordType,
    decode_record,
    encode_record,
)
from tests.support.recorded_runs import assert_played_alike, recorded, types_written_again

RUNS = recorded("consumer_groups.jsonl.gz")


@pytest.mark.parametrize("run", RUNS, ids=lambda run: str(run["name"]))
def test_recorded_run(run: dict[str, Any]) -> None:
    assert_played_alike(run)


def test_a_record_shows_its_type_and_its_fields() -> None:
    driver = Driver()
    driver.command({"op": "init", "at": 1_000_000})
    driver.command({"op": "topics", "topics": {"t": 2}})
    join = {"op": "chb", "m": "A", "epoch": 0, "rt": 1000, "topics": ["t"], "owned": {}}
    joined = driver.command(join)["events"]
    assert [(one["key_version"], one["type"], one["k"]) for one in joined] == [
        (5, "CONSUMER_GROUP_MEMBER_METADATA", {"group_id": "g", "name": "A"}),
        (3, "CONSUMER_GROUP_METADATA", {"group_id": "g"}),
        (7, "CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER", {"group_id": "g", "name": "A"}),
        (6, "CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA", {"group_id": "g"}),
        (8, "CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT", {"group_id": "g", "name": "A"}),
    ]
    target = [{"topic_id": "dAAAAAAAAAAAAAAAAAAAAA", "partitions": [0, 1]}]
    assert joined[2]["value"] == {"topics": target}
    assert joined[0]["value"]["subscribed_topic_names"] == ["t"]
    left = driver.command({"op": "chb", "m": "A", "epoch": -1})["events"]
    assert [one["key_version"] for one in left if one["value"] is None] == [8, 7, 5]


def test_kafkas_records_are_read_and_written_again_with_their_bytes() -> None:
    every = {one for one in RecordType if one.group_type == "consumer"}
    written, buried = types_written_again(RUNS, decode_record, encode_record)
    assert every <= written
    assert every <= buried


def test_a_record_without_assignment_epochs() -> None:
    key = RecordKey(RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT, "g", "A")
    value = CurrentValue(3, 2, 0, (CurrentTopic((1, 2), (0, 5)),), ())
    record = BrokerRecord(key, value)
    assert decode_record(*encode_record(record)) == record


def test_a_value_of_an_unknown_version_is_named() -> None:
    key, value = encode_record(BrokerRecord(RecordKey(RecordType.CONSUMER_GROUP_METADATA, "g")))
    assert value is None
    with pytest.raises(WireError, match=r"value\.version: 1 is not known"):
        decode_record(key, b"\0\1\0")


# The answers of hash4j's Hashing.xxh3_64 for the bytes (31 * i + 7) % 256.
HASHES = {
    0: 3244421341483603138,
    3: 1582743943441612892,
    8: -2394039629164210130,
    16: 9099606716676871632,
    64: -2508381663727503547,
    128: -492175581222641016,
    240: -3690920546649497853,
    241: 809349449570470400,
    1025: -4566685497618039422,
    5000: 6169931020318013678,
}


@pytest.mark.parametrize("size", HASHES)
def test_xxh3_is_that_of_kafkas_library(size: int) -> None:
    found = xxh3(bytes((31 * i + 7) % 256 for i in range(size)))
    assert found - (1 << 64 if found >> 63 else 0) == HASHES[size]


ORDERS = [
    (
        "-m23 -m2 +m6 +m7 +m15 -m14 +m9 +m3 +m8 +m1 -m2 +m6 -m14 +m13 -m21 +m12 +m5",
        "m5 m12 m7 m1 m9 m6 m13 m3 m8 m15",
    ),
    (
        "+m18 -m17 +m14 +m12 +m5 +m6 +m0 +m19 +m10 -m22 +m24 -m18 +m3 +m5",
        "m0 m5 m12 m14 m19 m24 m6 m3 m10",
    ),
    (
        "+m0 -m11 +m14 +m7 -m17 +m8 +m2 +m20 +m2 +m23 -m0 +m19",
        "m20 m2 m7 m14 m19 m23 m8",
    ),
    (
        "+m3 +m23 +m11 -m19 +m15 +m3 +m13 +m19 -m15 -m2 -m7 +m13 +m2 -m21 +m9 -m14 +m23",
        "m2 m19 m9 m11 m13 m3 m23",
    ),
    (
        "+m8 +m16 +m3 +m2 -m23 +m23 +m11 +m18 +m3 +m10 -m20",
        "m2 m11 m16 m18 m3 m10 m23 m8",
    ),
    (
        "-m5 +m4 +m14 +m23 +m10 -m13 +m1 -m1 -m23 +m24 -m10 -m0 +m3 +m7 -m0 -m13 -m5 -m16",
        "m7 m14 m4 m24 m3",
    ),
    (
        "-m5 +m11 +m10 +m18 -m9 +m21 -m10 -m13 +m12 +m8 +m21 +m12 +m1 +m4 -m15",
        "m12 m4 m1 m11 m21 m18 m8",
    ),
    (
        "+m11 -m18 +m16 +m2 +m10 +m10 -m18 +m1 +m8 -m24 +m1",
        "m2 m1 m16 m11 m8 m10",
    ),
    ("+m2 snapshot +m7 +m4 +m2 revert +m4", "m2 m4"),
    ("+m6 snapshot +m10 snapshot +m11 revert -m3", "m6 m10"),
    ("+m11 +m6 -m3 +m12 +m4 +m1 revert +m12 +m14", "m12 m14"),
    ("-m5 +m2 -m1 +m5 +m0 snapshot +m5 revert +m0", "m5 m0 m2"),
    # The snapshot stays after a revert, with the first order of the changes.
    ("+m2 +m0 +m1 snapshot +m2 +m0 revert +m0 +m2 revert", "m0 m2 m1"),
]
"""Changes of a TimelineHashMap, and its keys in Kafka's order after them."""


@pytest.mark.parametrize(("changes", "order"), ORDERS)
def test_the_order_of_a_timeline_hash_map(changes: str, order: str) -> None:
    table = TimelineHashMap[str, int]()
    for number, change in enumerate(changes.split()):
        if change == "snapshot":
            table.snapshot(number)
        elif change == "revert":
            table.revert()
        elif change[0] == "+":
            table.put(change[1:], 0)
        else:
            table.remove(change[1:])
    assert " ".join(table) == order
