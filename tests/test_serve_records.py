# SPDX-License-Identifier: Apache-2.0
"""The records of `serve`: offsets, producers' sequences, times, bounds, and waiting fetches."""

from __future__ import annotations

import struct
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import kafka_rebalance as kr

pytest.importorskip("kio", reason="kio is not installed: pip install -e '.[serve]'")

from crc32c import crc32c

from kafka_rebalance.errors import WireError
from kafka_rebalance.serve.batches import StoredRecord, new_batch
from kafka_rebalance.testing import Limits, RunningBroker
from tests.parity.wire import Connection
from tests.support.served_broker import REQUESTS, connection

if TYPE_CHECKING:
    from collections.abc import Sequence

LATEST, EARLIEST, LARGEST_TIME = -1, -2, -3
TOPIC = {"name": "t", "topic": "t", "topic_id": None}


def batch(*values: str, times: Sequence[int] = (), **header: Any) -> bytes:
    timed = zip(values, times or range(len(values)), strict=True)
    records = [StoredRecord(0, 0, time, None, value.encode()) for value, time in timed]
    return new_batch(records, **header).data


def produce(one: Connection, data: bytes | None, **more: Any) -> tuple[str, int]:
    """Returns the error and the offset of the answer."""
    topic = {**TOPIC, "partition_data": [{"index": 0, "records": data}]}
    answer = one.ask("produce", 9, **{**REQUESTS["produce"], **more, "topic_data": [topic]})
    (found,) = answer.responses[0].partition_responses
    return found.error_code.name, found.base_offset


def fetch(one: Connection, offset: int, version: int = 12, **more: Any) -> Any:
    """Returns the partition of the answer; `most` bounds its bytes."""
    wanted = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": more.pop("most", 9999)}
    named = {**TOPIC, **more.pop("topic", {}), "partitions": [wanted]}
    asked = {"max_wait": 0, "min_bytes": 1, "max_bytes": 9999, "isolation_level": 0}
    answer = one.ask("fetch", version, **asked | more, topics=[named], forgotten_topics_data=[])
    assert answer.session_id == 0
    return answer.responses[0].partitions[0]


def offset(one: Connection, timestamp: int) -> tuple[int, int]:
    asked = {"partition_index": 0, "timestamp": timestamp, "current_leader_epoch": -1}
    topics = [{"name": "t", "partitions": [asked]}]
    answer = one.ask("list_offsets", 8, **{**REQUESTS["list_offsets"], "topics": topics})
    (found,) = answer.topics[0].partitions
    return found.offset, found.timestamp


def test_offsets_count_the_records_and_a_fetch_begins_with_the_batch_of_its_offset() -> None:
    first, second = batch("a", "b", "c"), batch("d")
    with RunningBroker({"t": 1}) as broker, connection(broker) as one:
        assert produce(one, first) == ("none", 0)
        assert produce(one, second) == ("none", 3)
        for at, begins in {0: 0, 2: 0, 3: 3}.items():
            assert struct.unpack_from(">q", fetch(one, at, most=1).records) == (begins,)
        both = fetch(one, 1)
        assert (both.high_watermark, both.last_stable_offset, both.log_start_offset) == (4, 4, 0)
        assert both.records == first[:12] + bytes(4) + first[16:] + (
            struct.pack(">q", 3) + second[8:12] + bytes(4) + second[16:]
        )
        assert fetch(one, 4).records == b""
        assert fetch(one, 5).error_code.name == "offset_out_of_range"
        assert [record.value for record in broker.records("t")] == [b"a", b"b", b"c", b"d"]


def test_a_topic_is_fetched_by_its_id() -> None:
    with RunningBroker({"t": 1}) as broker, connection(broker) as one:
        broker.produce("t", b"a")
        asked = {**REQUESTS["metadata"], "topics": [{"name": "t", "topic_id": None}]}
        topic_id = one.ask("metadata", 12, **asked).topics[0].topic_id
        assert fetch(one, 0, 13, topic={"topic_id": topic_id}).records
        assert fetch(one, 0, 13).error_code.name == "unknown_topic_id"


GOOD = batch("a")
BAD = {
    "cut": (GOOD[:-1], "corrupt_message"),
    "changed": (GOOD[:-1] + b"?", "corrupt_message"),
    "two batches": (GOOD + GOOD, "invalid_record"),
    "old format": (GOOD[:16] + b"\1" + GOOD[17:], "unsupported_for_message_format"),
    "too long": (batch("a" * 1_048_588), "message_too_large"),
    "a marker": (batch("a", attributes=0x20), "invalid_record"),
    "null": (None, "corrupt_message"),
    "no transaction": (batch("a", attributes=0x10, producer_id=1), "invalid_txn_state"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_batch_is_refused(name: str) -> None:
    data, error = BAD[name]
    with RunningBroker({"t": 1}) as broker, connection(broker) as one:
        assert produce(one, data) == (error, -1)
        assert produce(one, GOOD) == ("none", 0)


def test_a_producer_sends_again_skips_and_is_fenced() -> None:
    def sent(one: Connection, sequence: int, epoch: int = 0) -> tuple[str, int]:
        header: dict[str, Any] = {
            "producer_id": 7,
            "producer_epoch": epoch,
            "base_sequence": sequence,
        }
        return produce(one, batch("a", "b", **header))

    with RunningBroker({"t": 1}) as broker, connection(broker) as one:
        assert [sent(one, at) for at in (0, 2, 4, 6, 8, 10)] == [
            ("none", n) for n in range(0, 12, 2)
        ]
        assert sent(one, 4) == ("none", 4)
        assert sent(one, 0) == ("out_of_order_sequence_number", -1)  # five batches are remembered
        assert sent(one, 14) == ("out_of_order_sequence_number", -1)
        assert sent(one, 2, epoch=1) == ("out_of_order_sequence_number", -1)
        assert sent(one, 0, epoch=1) == ("none", 12)
        assert sent(one, 12) == ("invalid_producer_epoch", -1)
        assert len(broker.records("t")) == 14


def test_sequence_numbers_go_on_at_0_after_the_largest() -> None:
    with RunningBroker({"t": 1}) as broker, connection(broker) as one:
        for at, sequence in enumerate((2**31 - 1, 0)):
            header: dict[str, Any] = {
                "producer_id": 7,
                "producer_epoch": 0,
                "base_sequence": sequence,
            }
            assert produce(one, batch("a", **header)) == ("none", at)


def test_offsets_by_time() -> None:
    with RunningBroker({"t": 1}) as broker, connection(broker) as one:
        assert [offset(one, at) for at in (LATEST, LARGEST_TIME, 0)] == [
            (0, -1),
            (-1, -1),
            (-1, -1),
        ]
        produce(one, batch("a", "b", "c", times=(100, 300, 200)))
        produce(one, batch("d", times=(250,)))
        found = {at: offset(one, at) for at in (0, 101, 300, 301)}
        assert found == {0: (0, 100), 101: (1, 300), 300: (1, 300), 301: (-1, -1)}
        assert offset(one, LARGEST_TIME) == (1, 300)
        assert [offset(one, at) for at in (EARLIEST, LATEST)] == [(0, -1), (4, -1)]


@pytest.mark.parametrize("records", [b"", b"?", b"\xff" * 99], ids=["none", "one", "endless"])
def test_a_batch_whose_bytes_are_not_records_harms_no_reader(records: bytes) -> None:
    """A broker does not read the records of a batch; the fixture's `records` names the batch."""
    header = batch("a", times=(100,))[:61]
    signed = header[21:] + records
    data = header[:8] + struct.pack(">iibI", 49 + len(records), 0, 2, crc32c(signed)) + signed
    with RunningBroker({"t": 1}) as broker, connection(broker) as one:
        assert produce(one, data) == ("none", 0)
        assert offset(one, 50) == (0, 100)
        with pytest.raises(WireError, match="offset 0: no records: "):
            broker.records("t")


def test_deleted_records_move_the_start_of_the_log() -> None:
    def deleted(one: Connection, before: int) -> tuple[str, int]:
        partitions = [{"partition_index": 0, "offset": before}]
        topics = [{"name": "t", "partitions": partitions}]
        (found,) = one.ask("delete_records", 2, timeout=1, topics=topics).topics[0].partitions
        return found.error_code.name, found.low_watermark

    with RunningBroker({"t": 1}) as broker, connection(broker) as one:
        broker.produce("t", b"a", b"b", b"c")
        assert deleted(one, 1) == ("none", 1)
        assert [record.offset for record in broker.records("t")] == [1, 2]
        assert fetch(one, 0).error_code.name == "offset_out_of_range"
        assert deleted(one, 4) == ("offset_out_of_range", -1)
        assert deleted(one, -1) == ("none", 3)
        assert (offset(one, EARLIEST)[0], broker.records("t")) == (3, [])


def test_a_full_partition_drops_its_oldest_batches() -> None:
    with RunningBroker({"t": 2}, limits=Limits(partition_bytes=10_000)) as broker:
        for number in range(100):
            broker.produce("t", b"%d" % number * 100)
        left = broker.records("t")
        assert left[-1].offset == 99
        assert 10_000 * 6 / 8 < sum(len(one.value or b"") + 70 for one in left) < 10_000
        with connection(broker) as one:
            assert offset(one, EARLIEST)[0] == left[0].offset > 0


def test_all_partitions_together_have_a_bound() -> None:
    with RunningBroker({"t": 9}, limits=Limits(records_bytes=10_000)) as broker:
        for number in range(90):
            broker.produce("t", b"a" * 200, partition=number % 9)
        left = broker.records("t")
        assert sum(len(one.value or b"") + 61 for one in left) < 10_000
        assert {one.partition for one in left if one.offset == 9} == set(range(9))


def test_a_fetch_waits_for_records() -> None:
    with (
        RunningBroker({"t": 1}) as broker,
        connection(broker) as one,
        ThreadPoolExecutor() as pool,
    ):
        waiting = pool.submit(fetch, one, 0, max_wait=20_000, min_bytes=100)
        broker.produce("t", b"a")  # 69 bytes, so that the fetch still waits
        assert not waiting.done()
        broker.produce("t", b"b")
        assert len(waiting.result(15).records) == 2 * 69
        assert fetch(one, 2, max_wait=1).records == b""


def test_a_deleted_topic_has_no_records() -> None:
    with RunningBroker({"t": 1}) as broker, connection(broker) as one:
        broker.produce("t", b"a")
        one.ask("delete_topics", 5, topic_names=["t"], timeout=1)
        broker.add_topic("t", 1)
        assert broker.records("t") == []
        with pytest.raises(kr.GroupError, match="t 1 is not a partition"):
            broker.produce("t", b"a", partition=1)


def test_acks_0_has_no_answer() -> None:
    with RunningBroker({"t": 1}) as broker, connection(broker) as one:
        topic = {**TOPIC, "partition_data": [{"index": 0, "records": GOOD}]}
        one.send("produce", 9, **{**REQUESTS["produce"], "acks": 0, "topic_data": [topic]})
        one._sent = None  # the answer to the next request is the first one
        assert fetch(one, 0).records
