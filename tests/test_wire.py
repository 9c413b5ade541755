# SPDX-License-Identifier: Apache-2.0
"""Our codec writes the bytes that Kafka's classes write, and reads bytes as these classes do.

`vectors/wire.jsonl` contains some answers of Kafka's classes, for machines without Java.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_rebalance import TopicPartition
from kafka_rebalance.errors import WireError
from kafka_rebalance.wire import consumer_protocol as wire
from tests.support.wire_requests import Request, encodings, hostile, malformed

if TYPE_CHECKING:
    from tests.support.oracle import Oracle

FROZEN = Path(__file__).resolve().parent / "vectors" / "wire.jsonl"
Answer = dict[str, Any]


# Our answers in the oracle's form -----------------------------------------------------------------


def _pairs(request: Request, name: str) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(*pair) for pair in request.get(name, ()))


def _user_data(request: Request) -> bytes | None:
    user_data = request.get("user_data")
    return None if user_data is None else bytes.fromhex(user_data)


def ours(request: Request) -> Answer:
    """Returns our answer to a request such as the oracle (Kafka's classes) gets."""
    try:
        return ANSWERS[request["wire"]](request)
    except WireError as error:
        return {"error": str(error)}


def _encode_subscription(request: Request) -> Answer:
    subscription = wire.Subscription(
        tuple(request["topics"]),
        _user_data(request),
        _pairs(request, "owned_partitions"),
        request.get("generation_id"),
        request.get("rack_id"),
        request["version"],
    )
    return {"bytes": wire.encode_subscription(subscription).hex()}


def _decode_subscription(request: Request) -> Answer:
    read = wire.decode_subscription(bytes.fromhex(request["bytes"]))
    return {
        "version": read.version,
        "topics": list(read.topics),
        "user_data": None if read.user_data is None else read.user_data.hex(),
        "owned_partitions": [list(tp) for tp in read.owned_partitions],
        "generation_id": read.generation_id,
        "rack_id": read.rack_id or None,  # Java reads an empty rack as no rack; librdkafka does not
    }


def _encode_assignment(request: Request) -> Answer:
    data = wire.AssignmentData(
        _pairs(request, "partitions"), _user_data(request), request["version"]
    )
    return {"bytes": wire.encode_assignment(data).hex()}


def _decode_assignment(request: Request) -> Answer:
    read = wire.decode_assignment(bytes.fromhex(request["bytes"]))
    return {
        "version": read.version,
        "partitions": [list(tp) for tp in read.partitions],
        "user_data": None if read.user_data is None else read.user_data.hex(),
    }


def _encode_sticky(request: Request) -> Answer:
    partitions = _pairs(request, "partitions")
    return {"bytes": wire.encode_sticky_user_data(partitions, request["generation_id"]).hex()}


def _decode_sticky(request: Request) -> Answer:
    read = wire.decode_sticky_user_data(bytes.fromhex(request["bytes"]))
    owned = [list(tp) for tp in read.owned_partitions]
    return {"owned_partitions": owned, "generation_id": read.generation_id}


def _encode_cooperative(request: Request) -> Answer:
    return {"bytes": wire.encode_cooperative_user_data(request["generation_id"]).hex()}


def _decode_cooperative(request: Request) -> Answer:
    generation_id = wire.decode_cooperative_user_data(bytes.fromhex(request["bytes"]))
    return {"owned_partitions": [], "generation_id": generation_id}


ANSWERS = {
    "encode_subscription": _encode_subscription,
    "decode_subscription": _decode_subscription,
    "encode_assignment": _encode_assignment,
    "decode_assignment": _decode_assignment,
    "encode_sticky": _encode_sticky,
    "decode_sticky": _decode_sticky,
    "encode_cooperative": _encode_cooperative,
    "decode_cooperative": _decode_cooperative,
}


def difference(request: Request, kafkas: Answer) -> str | None:
    """Returns the difference from Kafka's answer as a string; None if they agree.

    Two errors agree whatever their messages.
    """
    got = ours(request)
    if "error" in kafkas:
        if "error" in got:
            return None
        return f"{request}: ours {got}, Kafka refuses: {kafkas['error']}"
    expected = dict(kafkas)
    if "version" in expected:
        expected["version"] = min(expected["version"], 3)  # newer versions are read as 3
    return None if got == expected else f"{request}: ours {got}, Kafka {expected}"


def _decode(kind: str, data: bytes) -> Request:
    return {"wire": kind.replace("encode", "decode"), "bytes": data.hex()}


# Against Kafka ------------------------------------------------------------------------------------


def _disagreements(oracle: Oracle, requests: list[Request]) -> list[str]:
    answers = list(oracle.ask_many(requests))
    compared = (difference(*pair) for pair in zip(requests, answers, strict=True))
    return [what for what in compared if what is not None][:5]


@pytest.mark.oracle
def test_bytes_are_kafkas_and_are_read_as_kafka_reads_them(oracle: Oracle) -> None:
    requests = list(encodings(1, 4_000))
    assert _disagreements(oracle, requests) == []
    messages = [(request["wire"], bytes.fromhex(ours(request)["bytes"])) for request in requests]
    assert _disagreements(oracle, [_decode(*message) for message in messages]) == []


@pytest.mark.oracle
def test_truncated_at_every_byte(oracle: Oracle) -> None:
    requests: list[Request] = []
    for request in encodings(2, 400):
        data = bytes.fromhex(ours(request)["bytes"])
        if len(data) < 150:
            requests += [_decode(request["wire"], data[:end]) for end in range(len(data))]
    assert len(requests) > 5_000
    assert _disagreements(oracle, requests) == []


@pytest.mark.oracle
def test_hostile_bytes(oracle: Oracle) -> None:
    requests = [
        _decode(request["wire"], mutant)
        for request in encodings(3, 2_000)
        for mutant in hostile(3, bytes.fromhex(ours(request)["bytes"]))
    ]
    answers = [ours(request) for request in requests]
    refused = sum("error" in answer for answer in answers)
    assert 1_000 < refused < len(requests) - 1_000  # both outcomes occur often
    assert _disagreements(oracle, requests) == []


@pytest.mark.oracle
def test_names_that_are_not_utf8(oracle: Oracle) -> None:
    """Each malformed sequence becomes one U+FFFD; Java's decoder decides the sequence's length."""
    requests = list(malformed(4, 30_000))
    answers = [ours(request) for request in requests]
    assert sum("\ufffd" in json.dumps(each, ensure_ascii=False) for each in answers) > 20_000
    assert _disagreements(oracle, requests) == []


# Without Java -------------------------------------------------------------------------------------


def test_frozen_answers() -> None:
    lines = [json.loads(line) for line in FROZEN.read_text(encoding="utf-8").splitlines()]
    assert {line["request"]["wire"] for line in lines} == set(ANSWERS)
    differences = [difference(line["request"], line["answer"]) for line in lines]
    assert [what for what in differences if what is not None] == []


TOPICS_AND_DATA = "00000002 000161 000162 00000001 ff"
OWNED = "00000001 000161 00000002 00000000 00000003"
GOLDEN = {
    0: f"0000 {TOPICS_AND_DATA}",
    1: f"0001 {TOPICS_AND_DATA} {OWNED}",
    2: f"0002 {TOPICS_AND_DATA} {OWNED} 00000007",
    3: f"0003 {TOPICS_AND_DATA} {OWNED} 00000007 000172",
}


@pytest.mark.parametrize("version", GOLDEN)
def test_a_subscription_by_hand(version: int) -> None:
    owned = (TopicPartition("a", 3), TopicPartition("a", 0))
    sent = wire.Subscription(("b", "a"), b"\xff", owned, 7, "r", version)
    assert wire.encode_subscription(sent) == bytes.fromhex(GOLDEN[version])
    read = wire.decode_subscription(bytes.fromhex(GOLDEN[version]))
    assert read == wire.Subscription(
        ("a", "b"),
        b"\xff",
        owned[::-1] if version >= 1 else (),
        7 if version >= 2 else None,
        "r" if version >= 3 else None,
        version,
    )


def test_an_assignment_by_hand() -> None:
    sent = wire.AssignmentData((TopicPartition("t", 1), TopicPartition("t", 0)))
    data = bytes.fromhex("0003 00000001 000174 00000002 00000001 00000000 ffffffff")
    assert wire.encode_assignment(sent) == data
    assert wire.decode_assignment(data) == sent


TP = (TopicPartition("t", 5),)
STICKY = {
    "version 1": ("00000001 000174 00000001 00000005 00000007", (TP, 7)),
    "version 0": ("00000001 000174 00000001 00000005", (TP, None)),
    "half a generation": ("00000001 000174 00000001 00000005 0000", (TP, None)),
    "more than version 1": ("00000001 000174 00000001 00000005 00000007 ff", (TP, 7)),
    "nothing": ("", ((), None)),
    "unreadable, no bytes for the name": ("00000001 0009 74", ((), -1)),
    "unreadable, a huge count": ("7fffffff", ((), -1)),
    "unreadable, a negative count": ("ffffffff 00000007", ((), -1)),
    "unreadable, one byte": ("00", ((), -1)),
}


@pytest.mark.parametrize("name", STICKY)
def test_sticky_user_data_by_hand(name: str) -> None:
    """User data of sticky that cannot be decoded are read as no partitions and generation -1."""
    data, (owned, generation_id) = STICKY[name]
    read = wire.decode_sticky_user_data(bytes.fromhex(data))
    assert read == wire.StickyUserData(owned, generation_id)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("", "subscription: 0 bytes are too few for a version"),
        ("00", "subscription: 1 bytes are too few for a version"),
        ("ffff", "subscription: -1 is not a version"),
        ("0000 7fffffff", "subscription: at byte 4 of 4 it announces more than is there"),
        ("0000 00000001 7fff 61", "subscription: at byte 6 of 7 it announces more than is there"),
    ],
)
def test_errors_name_the_problem_and_the_field(data: str, problem: str) -> None:
    with pytest.raises(WireError, match=f"^{re.escape(problem)}$"):
        wire.decode_subscription(bytes.fromhex(data))


TOPICS = st.text(st.characters(codec="utf-8"), max_size=5)
PARTITIONS = st.lists(
    st.tuples(TOPICS, st.integers(-(2**31), 2**31 - 1)).map(lambda tp: TopicPartition(*tp))
).map(tuple)


@given(PARTITIONS, st.none() | st.binary(), st.integers(0, 3))
def test_assignments_come_back(
    partitions: tuple[TopicPartition, ...], user_data: bytes | None, version: int
) -> None:
    read = wire.decode_assignment(
        wire.encode_assignment(wire.AssignmentData(partitions, user_data, version))
    )
    topics = list(dict.fromkeys(tp.topic for tp in partitions))
    grouped = sorted(partitions, key=lambda tp: topics.index(tp.topic))
    assert read == wire.AssignmentData(tuple(grouped), user_data, version)


@given(PARTITIONS, st.integers(-(2**31), 2**31 - 1))
def test_sticky_user_data_comes_back(
    partitions: tuple[TopicPartition, ...], generation_id: int
) -> None:
    read = wire.decode_sticky_user_data(wire.encode_sticky_user_data(partitions, generation_id))
    assert read.generation_id == generation_id
    assert _by_topic(read.owned_partitions) == _by_topic(partitions)


def _by_topic(partitions: tuple[TopicPartition, ...]) -> dict[str, list[int]]:
    topics = {tp.topic for tp in partitions}
    return {topic: [p for name, p in partitions if name == topic] for topic in topics}


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for kind in ("decode_subscription", "decode_assignment"):
        answer = ours({"wire": kind, "bytes": data.hex()})
        assert "error" in answer or 0 <= answer["version"] <= 3
    assert "error" not in ours({"wire": "decode_sticky", "bytes": data.hex()})
    assert "error" not in ours({"wire": "decode_cooperative", "bytes": data.hex()})


MIB = 2**20
MEMORY = f"""
import resource, struct
from kafka_rebalance.wire import consumer_protocol as wire
from kafka_rebalance.errors import WireError

# Once as a warm-up, then with little room: room for what these bytes hold, not for what they say.
wire.encode_assignment(wire.AssignmentData(()))
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 160 * {MIB}, resource.RLIM_INFINITY))

huge = struct.pack(">i", 2**31 - 1)
name = b"\\x7f\\xff" + b"t" * 32767
many = 200_000
entry = struct.pack(">i", 1) + name + struct.pack(">i", many) + bytes(4 * many)
null = b"\\xff" * 4
one = struct.pack(">i", 1) + b"\\0\\1t"
for data in (huge, one + huge, one + struct.pack(">i", 10**9) + bytes({MIB}), huge + bytes({MIB})):
    for version in (b"\\0\\0", b"\\0\\1", b"\\0\\3"):
        for decode in (wire.decode_subscription, wire.decode_assignment):
            for body in (data, bytes(4) + null + data):
                try:
                    decode(version + body)
                except WireError:
                    pass
    assert wire.decode_sticky_user_data(data).generation_id == -1
# A long name before many partitions is held once, not for each.
assert len(wire.decode_sticky_user_data(entry + bytes(4)).owned_partitions) == many
assert len(wire.decode_assignment(b"\\0\\3" + entry + null).partitions) == many
assert len(wire.decode_subscription(b"\\0\\1" + bytes(4) + null + entry).owned_partitions) == many
print("bounded")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: it reads /proc")
def test_memory_is_bounded_by_the_bytes_that_are_there() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", MEMORY], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, "bounded\n"), ran.stderr[-2000:]


def test_an_empty_rack_is_kept() -> None:
    """Java reads it as no rack; librdkafka, whose default it is, does not in cooperative-sticky."""
    for rack_id in ("", None):
        sent = wire.encode_subscription(wire.Subscription(("t",), rack_id=rack_id))
        assert wire.decode_subscription(sent).rack_id == rack_id
