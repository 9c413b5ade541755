# SPDX-License-Identifier: Apache-2.0
"""Groups that Rust reads from records in bulk equal those of the Python reader, for any bytes."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from kafka_rebalance import _core
from kafka_rebalance.errors import GroupError, WireError
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.live.classic_groups import described_line
from kafka_rebalance.wire import consumer_protocol as wire
from kafka_rebalance.wire.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)

DATA = Path(__file__).parent / "data"
TOPICS = {"orders": 2, "refunds": 2, "t": 6, "u": 3}
RACKS = {"t": [["a", "b"]] * 6}

Row = dict[str, Any]


def inventory(
    topics: dict[str, int] = TOPICS, *, assume_assigned: bool = False
) -> _core.TopicInventory:
    rows = [{"name": n, "partitions": p, "racks": RACKS.get(n)} for n, p in topics.items()]
    schema = pa.schema(
        [
            ("name", pa.string()),
            ("partitions", pa.int32()),
            ("racks", pa.list_(pa.list_(pa.string()))),
        ]
    )
    return _core.TopicInventory(pa.RecordBatch.from_pylist(rows, schema=schema), assume_assigned)


def read(
    records: list[tuple[bytes | None, bytes | None]],
    topics: _core.TopicInventory | None = None,
    *,
    assume_assigned: bool = False,
) -> list[Row]:
    keys, values = zip(*records, strict=True)
    batch = pa.record_batch(
        {"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())}
    )
    known = topics or inventory(assume_assigned=assume_assigned)
    answer = _core.groups_from_records(batch, known)
    rows: list[Row] = pa.record_batch(answer).to_pylist()
    return rows


def reference(key: bytes, value: bytes) -> Row:
    """Returns the row that the Python reader and then the code of `snapshot` make of a record."""
    read_key = decode_key(key)
    assert isinstance(read_key, GroupMetadataKey)
    group = decode_value(read_key, value)
    assert isinstance(group, GroupMetadataValue)
    members = [
        SimpleNamespace(
            member_id=one.member_id,
            group_instance_id=one.group_instance_id,
            client_id=one.client_id,
            client_host=one.client_host,
            member_metadata=one.subscription,
            member_assignment=one.assignment,
        )
        for one in group.members
        if group.protocol_type == "consumer"  # other protocols have other formats
    ]
    described = SimpleNamespace(
        group_id=read_key.group_id, protocol_data=group.protocol or "", members=members
    )
    line = described_line(described)
    for member in line["members"]:
        member["generation_id"] = group.generation_id
        member.setdefault("subscription_version", None)
        member.setdefault("user_data", None)
        member.pop("client_library")  # rows of Spark have no such column
    line.pop("rebalance_protocol", None)  # nor a column for the rebalance protocol
    names = dict.fromkeys(topic for member in line["members"] for topic in member["topics"])
    topics = [{"name": n, "partitions": TOPICS[n], "racks": RACKS.get(n)} for n in names]
    return {
        **line,
        "kind": group.protocol_type,
        "state": "Stable" if group.members else "Empty",
        "generation_id": group.generation_id,
        "assignor": group.protocol,
        "topics": topics,
        "error": None,
    }


def captured() -> list[tuple[bytes, bytes | None]]:
    """Returns the group records of a real log, in order."""
    rows = [json.loads(line) for line in (DATA / "consumer_offsets.jsonl").open(encoding="utf-8")]
    return [
        (bytes.fromhex(row["key"]), None if row["value"] is None else bytes.fromhex(row["value"]))
        for row in rows
        if row["key"] is not None and row["key"].startswith("0002") and row["control"] is None
    ]


def test_groups_of_a_real_log_equal_their_brokers_descriptions() -> None:
    described = json.loads((DATA / "consumer_offsets_groups.json").read_text(encoding="utf-8"))
    last = {key: value for key, value in captured() if value is not None}
    rows = {row["group_id"]: row for row in read(list(last.items()))}
    asked = 0
    for group in described:
        said = group["described"]
        if group["listed"]["group_type"] != "classic" or said["state"] != "Stable":
            continue
        row = rows[group["group_id"]]
        if row["error"] is not None:  # a test member joined with arbitrary bytes
            assert re.match(r"members\[0\]\.(subscription|assignment): at byte", row["error"])
            continue
        assert (row["kind"], row["state"]) == (said["protocol_type"], "Stable")
        if row["kind"] != "consumer":
            continue
        assert row["assignor"] == said["protocol"]
        held = {
            one["member_id"]: wire.decode_assignment(bytes.fromhex(one["assignment"])).partitions
            for one in said["members"]
            if one["assignment"]
        }
        for member in row["members"]:
            owned = [
                (run["topic"], p) for run in member["owned_partitions"] for p in run["partitions"]
            ]
            assert owned == [tuple(tp) for tp in held.get(member["member_id"], ())]
            asked += len(owned)
    assert asked >= 16


def test_a_real_log_as_the_reference_reads_it() -> None:
    records = [(key, value) for key, value in captured() if value is not None]
    assert len(records) > 30
    for row, (key, value) in zip(read(list(records)), records, strict=True):
        try:
            expected = reference(key, value)
        except GroupError as error:
            assert row["error"] == re.sub(r"\b(\w+: )\1", r"\1", str(error))  # noqa: PT017
        else:
            assert row == expected


def drawn(rng: random.Random) -> tuple[bytes, bytes]:
    """Makes a random group record of any version, with members of any version and library."""
    assignor = rng.choice(("range", "sticky", "cooperative-sticky"))
    members = []
    for n in range(rng.randrange(4)):
        held = [TopicPartition(t, p) for t in ("t", "u") for p in range(3) if rng.random() < 0.4]
        user_data = rng.choice(
            (None, b"", b"\0\0\0\1", wire.encode_sticky_user_data(held, rng.choice((-1, 5))))
        )
        sent = wire.Subscription(
            topics=tuple(rng.sample(("t", "u"), rng.randint(1, 2))),
            user_data=user_data,
            owned_partitions=tuple(held),
            generation_id=rng.choice((None, 4)),
            rack_id=rng.choice((None, "a")),
            version=rng.randrange(4),
        )
        given = wire.AssignmentData(
            partitions=tuple(held),
            user_data=rng.choice((None, b"", b"x")),
            version=rng.randrange(4),
        )
        members.append(
            MemberMetadata(
                f"m{n}",
                rng.choice((None, f"i{n}")),
                rng.choice(("c", "kafka-python-3")),
                "/h",
                60_000,
                45_000,
                wire.encode_subscription(sent),
                rng.choice((b"", wire.encode_assignment(given))),
            )
        )
    version = rng.randrange(5)
    if version < 3:
        members = [_without_instance(one) for one in members]
    value = GroupMetadataValue("consumer", 7, assignor, "m0", -1, tuple(members), version)
    return encode_key(GroupMetadataKey("g")), encode_value(value)


def _without_instance(member: MemberMetadata) -> MemberMetadata:
    from dataclasses import replace

    return replace(member, group_instance_id=None)


def test_two_thousand_random_records() -> None:
    rng = random.Random(19)
    records = [drawn(rng) for _ in range(2_000)]
    for row, (key, value) in zip(read(list(records)), records, strict=True):
        assert row == reference(key, value)


def test_corrupt_records_have_the_error_texts_of_the_reference() -> None:
    """If a damaged record cannot be decoded, both readers report the same error."""
    rng = random.Random(20)
    records: list[tuple[bytes, bytes]] = []
    for _ in range(3_000):
        key, value = drawn(rng)
        data = bytearray(value)
        match rng.randrange(4):
            case 0:
                del data[rng.randrange(len(data)) :]
            case 1:
                data[rng.randrange(len(data))] = rng.randrange(256)
            case 2:
                at = rng.randrange(len(data))
                data[at : at + 4] = rng.randbytes(4)
            case 3:
                data += rng.randbytes(rng.randint(1, 3))
        records.append((key, bytes(data)))
    errors = 0
    for row, (key, value) in zip(read(list(records), assume_assigned=True), records, strict=True):
        try:
            decode_value(decode_key(key), value)
        except WireError as error:
            assert row["error"] == str(error)  # noqa: PT017
            assert row["members"] is None
            errors += 1
    assert errors > 1_000


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        (None, "key.version: needs 2 bytes, 0 are left"),
        (b"\0", "key.version: needs 2 bytes, 1 are left"),
        (b"\0\2\0\5ab", "key.group: needs 5 bytes, 2 are left"),
        (b"\0\2\0\1\xff", "key.group: is not UTF-8"),
        (b"\0\2\0\1gg", "key.end: 1 bytes too many"),
        (b"\0\3\0\1g", "key: not that of a classic group"),
    ],
)
def test_bytes_that_are_no_key(key: bytes | None, problem: str) -> None:
    good = drawn(random.Random(1))
    bad, row = read([(key, b""), good])
    assert (bad["error"], bad["group_id"], bad["kind"]) == (problem, None, None)
    assert row == reference(*good)


def _group(protocol_type: str, *topics: str, held: tuple[tuple[str, int], ...] = ()) -> bytes:
    sent = wire.encode_subscription(wire.Subscription(topics))
    given = wire.AssignmentData(tuple(TopicPartition(*tp) for tp in held), None, 3)
    member = MemberMetadata("m", None, "c", "/h", 1, 1, sent, wire.encode_assignment(given))
    return encode_value(GroupMetadataValue(protocol_type, 1, "range", "m", -1, (member,)))


def test_a_topic_that_the_inventory_lacks() -> None:
    record = encode_key(GroupMetadataKey("g")), _group("consumer", "t", "new", held=(("new", 4),))
    [row] = read([record])
    wanted = 'topics: the inventory has no topic "new"; add it, or set assume_assigned'
    assert (row["error"], row["group_id"], row["topics"]) == (wanted, "g", None)
    [row] = read([record], assume_assigned=True)
    assert [(t["name"], t["partitions"]) for t in row["topics"]] == [("new", 5), ("t", 6)]


def test_other_protocols_are_a_kind_of_their_own() -> None:
    key = encode_key(GroupMetadataKey("g"))
    for protocol_type in ("connect", "sr", ""):
        [row] = read([(key, _group(protocol_type, "t"))])
        assert (row["kind"], row["state"], row["error"]) == (protocol_type, "Stable", None)
        assert (row["members"], row["topics"]) == ([], [])


def test_wrong_columns_are_named() -> None:
    with pytest.raises(TypeError, match="value: the column is missing"):
        _core.groups_from_records(pa.record_batch({"key": pa.array([b""])}), inventory())
    text = pa.record_batch({"key": pa.array([b""]), "value": pa.array([""])})
    with pytest.raises(TypeError, match="value: Utf8 is not binary"):
        _core.groups_from_records(text, inventory())
    with pytest.raises(TypeError, match="partitions: the column is missing"):
        _core.TopicInventory(pa.record_batch({"name": pa.array(["t"])}))
