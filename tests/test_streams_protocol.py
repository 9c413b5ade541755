# SPDX-License-Identifier: Apache-2.0
"""The user data of classic Kafka Streams groups is read and written as in Kafka's classes.

`data/streams_classic_live.jsonl.gz` has the bytes of two real applications (kafka-streams 4.3.1 on
a broker 4.4.0), from DescribeGroups: one with dynamic members, one with static members and tags.
"""

from __future__ import annotations

import base64
import gzip
import json
import random
import tracemalloc
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_rebalance.errors import WireError
from kafka_rebalance.wire.consumer_protocol import decode_assignment, decode_subscription
from kafka_rebalance.wire.streams_protocol import (
    LATEST_VERSION,
    AssignedTask,
    AssignmentInfo,
    HostPartitions,
    NamedPartition,
    NumberedPartition,
    NumberedTopic,
    StandbyTask,
    SubscriptionInfo,
    TaskId,
    TaskOffsetSum,
    decode_assignment_info,
    decode_subscription_info,
    encode_assignment_info,
    encode_subscription_info,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

LIVE = Path(__file__).parent / "data" / "streams_classic_live.jsonl.gz"
VERSIONS = range(1, LATEST_VERSION + 1)
TASK = AssignedTask(2, 7, "n\U00010000")
ASSIGNMENT = AssignmentInfo(
    active_tasks=(TASK,),
    standby_tasks=(StandbyTask(TASK, (NamedPartition("a\0\U00010000é", 7),)),),
    topics=(NumberedTopic(0, "t"),),
    partitions_by_host=(HostPartitions("h", 80, numbered=(NumberedPartition(0, 3),)),),
)


def _live() -> Iterator[tuple[bytes, bytes]]:
    with gzip.open(LIVE, "rt", encoding="utf-8") as lines:
        for line in lines:
            for member in json.loads(line)["group"]["members"]:
                if member["member_metadata"]:
                    sent, given = member["member_metadata"], member["member_assignment"]
                    yield base64.b64decode(sent), base64.b64decode(given)


def test_the_bytes_of_real_applications_come_back() -> None:
    count = 0
    for sent, assigned in _live():
        data = decode_subscription(sent).user_data or b""
        assert encode_subscription_info(decode_subscription_info(data)) == data
        assignment = decode_assignment(assigned)
        data = assignment.user_data or b""
        info = decode_assignment_info(data)
        assert encode_assignment_info(info) == data
        assert len(info.active_tasks) == len(assignment.partitions)
        count += 1
    assert count == 131


@pytest.mark.parametrize("version", VERSIONS)
def test_each_version_comes_back(version: int) -> None:
    tasks = (TaskId(0, 1), TaskId(2, 3))
    info = SubscriptionInfo(
        version,
        LATEST_VERSION if version >= 3 else -1,
        (-1, 2),
        prev_tasks=tasks if version < 7 else (),
        standby_tasks=tasks[1:] if version < 7 else (),
        user_end_point=b"h:80" if version >= 2 else b"",
        task_offset_sums=(TaskOffsetSum(0, 1, 99),) if version >= 10 else (),
    )
    assert decode_subscription_info(encode_subscription_info(info)) == info
    assert decode_assignment_info(encode_assignment_info(ASSIGNMENT._replace(version=version)))


def test_java_strings_by_hand() -> None:
    data = encode_assignment_info(ASSIGNMENT)
    assert b"\0\x0b" + b"a\xc0\x80" + b"\xed\xa0\x80\xed\xb0\x80" + b"\xc3\xa9" in data
    assert b"\0\0\0\x03\0n\xd8\x00\xdc\x00" in data
    assert decode_assignment_info(data) == ASSIGNMENT


def test_old_versions_report_sentinels() -> None:
    info = SubscriptionInfo(6, prev_tasks=(TaskId(0, 1),), standby_tasks=(TaskId(2, 3),))
    assert info.offset_sums() == {TaskId(0, 1): -2, TaskId(2, 3): -3}


def test_of_a_future_version_only_the_versions_are_read() -> None:
    info = decode_subscription_info(b"\0\0\0\x0c\0\0\0\x0d any bytes")
    assert (info.version, info.latest_supported_version) == (12, 13)
    assert encode_subscription_info(info) == b"\0\0\0\x0c\0\0\0\x0d"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"\0\0", "assignment.version: needs 4 bytes, 2 are left"),
        (b"\0\0\0\x0c", r"assignment.version: 12 is not known \(1 to 11 are\)"),
        (
            b"\0\0\0\x02\x7f\xff\xff\xff",
            "assignment.activeTasks: 2147483647 entries are not in the data",
        ),
        (
            b"\0\0\0\x02" + b"\0\0\0\0" + b"\0\0\0\1" + bytes(8) + b"\0\0\0\1\0\1\xff\0\0\0\0",
            r"assignment.standbyTasks\[0\].partitions\[0\].topic: is not Java's modified UTF-8",
        ),
        (
            b"\0\0\0\x0a\0\0\0\x0a\0\0\0\1" + bytes(8) + b"\xff\xff\xff\xff",
            r"assignment.activeTasks\[0\].namedTopology: has a length of -1",
        ),
    ],
)
def test_an_error_has_the_path_of_the_field(data: bytes, problem: str) -> None:
    with pytest.raises(WireError, match=problem):
        decode_assignment_info(data)


@given(st.binary(max_size=200), st.integers(0, 13))
def test_any_bytes_are_read_or_refused(data: bytes, version: int) -> None:
    for decode in (decode_subscription_info, decode_assignment_info):
        for each in (data, version.to_bytes(4) + data):
            with suppress(WireError):
                decode(each)


def test_hostile_bytes_are_read_or_refused_within_memory() -> None:
    """Bytes of a message are changed at random, which often makes a length field enormous."""
    rng = random.Random(1)
    written = encode_assignment_info(ASSIGNMENT)
    refused = 0
    tracemalloc.start()
    for _ in range(3_000):
        mutant = bytearray(written)
        for _ in range(rng.randint(1, 4)):
            mutant[rng.randrange(len(mutant))] = rng.choice((0, 0x7F, 0xFF, rng.randrange(256)))
        try:
            decode_assignment_info(bytes(mutant))
        except WireError:
            refused += 1
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert refused > 1_000
    assert peak < 1_000_000
