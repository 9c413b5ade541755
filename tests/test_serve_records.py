# SPDX-License-Identifier: Apache-2.0
"""The records of `serve`: offsets, producers' sequences, times, bounds, and waiting fetches."""

from __future__ import annotations

import struct
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import kafka_rebalance as kr

pytest.importorskip("kio", reason="kio is not installed: pip install -e '.[serve]'")

from crc32c import crc32c

from kafka_rebalance.errors import WireError
from kafka_rebalance.serve.batches import Refused, StoredRecord, marker, new_batch, received
from kafka_rebalance.serve.partition_log import PartitionLog
from kafka_rebalance.testing import Limits, RunningBroker
from tests.parity import wire as parity_wire
from tests.parity.wire import Connection, readable
from tests.support.served_broker import REQUESTS, connection
from tests.support.waiting import FAR_S, until

if TYPE_CHECKING:
    from collections.abc import Sequence

LATEST, EARLIEST, LARGEST_TIME = -1, -2, -3
TOPIC = {"name": "t", "topic": "t", "topic_id": None}


def batch(*values: str, times: Sequence[int] = (), **header: Any) -> bytes:
    timed = zip(values, times or range(len(values)), strict=True)
    records = [StoredRecord(0, 0, time, None, value.encode()) for value, time in timed]
    return new_batch(records, **header).data


def produce(one: Connection, data: bytes | None, version: int = 9, **more: Any) -> tuple[str, int]:
    """Returns the error and the offset of the answer."""
    topic = {**TOPIC, "partition_data": [{"index": 0, "records": data}]}
    answer = one.ask("produce", version, **{**REQUESTS["produce"], **more, "topic_data": [topic]})
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


def offset(one: Connection, timestamp: int, **more: Any) -> tuple[int, int]:
    asked = {"partition_index": 0, "timestamp": timestamp, "current_leader_epoch": -1}
    topics = [{"name": "t", "partitions": [asked]}]
    answer = one.ask("list_offsets", 8, **{**REQUESTS["list_offsets"], **more, "topics": topics})
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


def signed(header: bytes, records: bytes) -> bytes:
    """Returns a batch with the fields of another one, and with these bytes for its records."""
    signed = header[21:61] + records
    return header[:8] + struct.pack(">iibI", 49 + len(records), 0, 2, crc32c(signed)) + signed


GOOD = batch("a")
# Name -> bytes, error, version of Produce. Source: LogValidator and ProduceRequest of Kafka.
BAD = {
    "cut": (GOOD[:-1], "invalid_record", 9),
    "changed": (GOOD[:-1] + b"?", "corrupt_message", 9),
    "short length": (GOOD[:8] + struct.pack(">i", 13) + GOOD[12:], "corrupt_message", 9),
    "two batches": (GOOD + GOOD, "invalid_record", 9),
    "old format": (GOOD[:16] + b"\1" + GOOD[17:], "invalid_record", 9),
    "future format": (GOOD[:16] + b"\3" + GOOD[17:], "corrupt_message", 9),
    "too long": (batch("a" * 1_048_588), "message_too_large", 9),
    "a marker": (batch("a", attributes=0x20), "invalid_record", 9),
    "null": (None, "invalid_record", 9),
    "zstd": (batch("a", attributes=4), "unsupported_compression_type", 6),
    "codec 5": (batch("a", attributes=5), "unknown_server_error", 9),
    "first offset": (b"\0\0\0\0\0\0\0\1" + GOOD[8:], "invalid_record", 9),
    "no sequence": (batch("a", producer_id=1, producer_epoch=0), "invalid_record", 9),
    "2^31-1 in 0 bytes": (
        signed(batch("a", record_count=2**31 - 1, last_delta=2**31 - 2), b""), "invalid_record", 9
    ),
    "one too many": (batch("a", record_count=2, last_delta=1), "invalid_record", 9),
    "bytes after it": (signed(GOOD, GOOD[61:] + b"\0"), "invalid_record", 9),
    "endless length": (signed(GOOD, b"\xff" * 99), "invalid_record", 9),
    "no transactional id": (
        batch("a", attributes=0x10, producer_id=1, base_sequence=0),
        "transactional_id_authorization_failed", 9,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_bad_batch_is_refused(name: str) -> None:
    data, error, version = BAD[name]
    with RunningBroker({"t": 1}) as broker, connection(broker) as one:
        assert produce(one, data, version) == (error, -1)
        assert produce(one, GOOD + GOOD[:-1]) == ("none", 0)  # the second one is cut: ignored
        assert len(fetch(one, 0).records) == len(GOOD)


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


FAR = struct.pack(">q", 2**63 - 1)


@pytest.mark.parametrize(
    "data",
    [
        signed(batch("a", times=(100,)), b"\x0c" + b"\xff" * 6),
        signed(batch("a", times=(100,), attributes=1), b"?"),
        # The first record's time is 1 ms after the last one of 64 bits.
        signed(batch("a")[:27] + FAR + FAR + batch("a")[43:], batch("a", times=(1,))[61:]),
    ],
    ids=["no record", "not compressed", "time"],
)
def test_a_batch_whose_bytes_are_not_records_harms_no_reader(data: bytes) -> None:
    """A broker knows only the lengths of records; the fixture's `records` names the batch."""
    with RunningBroker({"t": 1}) as broker, connection(broker) as one:
        data = data.replace(GOOD[61:], b"\x0e\0\2\0\1\2a\0")
        data = signed(data, data[61:])
        assert produce(one, data) == ("none", 0)
        assert offset(one, 50)[0] == 0
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
        assert deleted(one, -2) == ("offset_out_of_range", -1)
        assert deleted(one, 0) == ("none", 1)  # the start never goes back
        assert deleted(one, -1) == ("none", 3)
        assert (offset(one, EARLIEST)[0], broker.records("t")) == (3, [])


def test_a_full_partition_drops_its_oldest_batches() -> None:
    with RunningBroker({"t": 2}, limits=Limits(partition_bytes=10_000)) as broker:
        for number in range(100):
            broker.produce("t", b"%d" % number * 100)
        left = broker.records("t")
        assert left[-1].offset == 99
        assert 10_000 * 6 / 8 < sum(len(one.value or b"") + 270 for one in left) < 10_000
        with connection(broker) as one:
            assert offset(one, EARLIEST)[0] == left[0].offset > 0


def test_all_partitions_together_have_a_bound() -> None:
    with RunningBroker({"t": 9}, limits=Limits(records_bytes=10_000)) as broker:
        for number in range(90):
            broker.produce("t", b"a" * 200, partition=number % 9)
        left = broker.records("t")
        assert 10_000 / 4 < sum(len(one.value or b"") + 270 for one in left) < 10_000
        assert left[-1].offset == 9


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
        assert len(waiting.result(FAR_S).records) == 2 * 69
        assert fetch(one, 2, max_wait=1).records == b""


def test_a_deleted_topic_has_no_records() -> None:
    with RunningBroker({"t": 1}) as broker, connection(broker) as one:
        broker.produce("t", b"a")
        one.ask("delete_topics", 5, topic_names=["t"], timeout=1)
        broker.add_topic("t", 1)
        assert broker.records("t") == []
        with pytest.raises(kr.GroupError, match="t 1 is not a partition"):
            broker.produce("t", b"a", partition=1)


def test_the_newest_batch_is_kept_even_if_it_is_larger_than_the_bound() -> None:
    for limits in (Limits(partition_bytes=100), Limits(records_bytes=100)):
        with RunningBroker({"t": 2}, limits=limits) as broker:
            broker.produce("t", b"a" * 200)
            broker.produce("t", b"b" * 200)
            assert [one.offset for one in broker.records("t")] == [1]


def test_producers_of_dropped_batches_are_forgotten() -> None:
    log = PartitionLog(10_000)
    for number in range(1_000):
        header: dict[str, Any] = {"producer_id": number, "producer_epoch": 0, "base_sequence": 0}
        log.append(received(batch("a", **header), 9))
    assert len(log._producers) == len(log.batches()) < 40
    again: dict[str, Any] = {"producer_id": 999, "producer_epoch": 0, "base_sequence": 0}
    assert log.append(received(batch("a", **again), 9)) == 999


def test_a_deletion_of_the_topic_ends_the_wait_of_a_fetch() -> None:
    with (
        RunningBroker({"t": 1}) as broker,
        connection(broker) as one,
        connection(broker) as other,
        ThreadPoolExecutor() as pool,
    ):
        waiting = pool.submit(fetch, one, 0, max_wait=20_000)
        until("a Fetch that waits", lambda: bool(broker._server.records.log("t", 0).waiting))
        other.ask("delete_topics", 5, topic_names=["t"], timeout=1)
        assert waiting.result(FAR_S).error_code.name == "unknown_topic_or_partition"


def test_a_fetch_waits_no_longer_than_the_server_allows() -> None:
    with (
        RunningBroker({"t": 1}, limits=Limits(request_s=0.5)) as broker,
        connection(broker) as one,
    ):
        assert fetch(one, 0, max_wait=2**31 - 1).records == b""


def test_others_have_answers_while_a_huge_fetch_is_read() -> None:
    """A fetch of 262,144 partitions took 5.75 s, and nobody else had an answer meanwhile."""
    wanted = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1}
    with (
        RunningBroker({"t": 1}) as broker,
        connection(broker) as one,
        connection(broker) as other,
    ):
        one.send(
            "fetch", 4, replica_id=-1, max_wait=0, min_bytes=1, max_bytes=1, isolation_level=0,
            topics=[{"topic": "t", "partitions": [wanted] * 50_000}],
        )  # fmt: skip
        answers = 0
        while not readable([one], 0):
            fetch(other, 0)
            answers += 1
        assert answers > 5


def test_a_read_committed_fetch_and_offset_by_time_stay_below_the_open_transaction() -> None:
    with RunningBroker({"t": 1}) as broker, connection(broker) as one:
        log = broker._server.records.log("t", 0)
        broker.produce("t", b"a")
        open_one: dict[str, Any] = {
            "attributes": 0x10,
            "producer_id": 7,
            "producer_epoch": 0,
            "base_sequence": 0,
        }
        log.append(received(batch("b", times=(2**60,), **open_one), 9))
        assert [offset(one, 2**59, isolation_level=level) for level in (0, 1)] == [
            (1, 2**60), (-1, -1)
        ]  # fmt: skip
        assert [offset(one, LARGEST_TIME, isolation_level=level)[0] for level in (0, 1)] == [1, -1]
        assert offset(one, LATEST, isolation_level=1)[0] == 1
        # Aborted transactions are those of the bytes in the answer, not of all that follow.
        log.end_transaction(marker(7, 0, False, 0), False)
        assert [
            len(fetch(one, at, isolation_level=1, most=1).aborted_transactions)
            for at in (0, 1, 2, 3)
        ] == [0, 1, 1, 0]


def test_a_producer_in_a_transaction_and_after_its_marker() -> None:
    def sent(log: PartitionLog, epoch: int, sequence: int, attributes: int = 0) -> str:
        header: dict[str, Any] = {
            "producer_id": 7,
            "producer_epoch": epoch,
            "base_sequence": sequence,
        }
        try:
            log.append(received(batch("a", **header, attributes=attributes), 9))
        except Refused as refused:
            return refused.error.name
        return "none"

    log = PartitionLog(10_000)
    assert sent(log, 0, 0, attributes=0x10) == "none"
    assert sent(log, 0, 1) == "invalid_txn_state"
    log.end_transaction(marker(7, 0, True, 0), True)
    assert sent(log, 0, 1) == "none"
    log.end_transaction(marker(7, 1, False, 0), False)  # fenced: a marker with a new epoch
    assert [sent(log, *one) for one in ((0, 2), (1, 2), (1, 0))] == [
        "invalid_producer_epoch", "out_of_order_sequence_number", "none"
    ]  # fmt: skip


def test_other_acks_are_refused_and_an_error_without_an_answer_ends_the_connection() -> None:
    with RunningBroker({"t": 1}) as broker, connection(broker) as one:
        assert produce(one, GOOD, acks=2) == ("invalid_required_acks", -1)
        assert produce(one, GOOD, acks=1) == ("none", 0)
        with pytest.raises(parity_wire.WireError, match="closed the connection"):
            produce(one, GOOD[:-1], acks=0)


def test_acks_0_has_no_answer() -> None:
    with RunningBroker({"t": 1}) as broker, connection(broker) as one:
        topic = {**TOPIC, "partition_data": [{"index": 0, "records": GOOD}]}
        one.send("produce", 9, **{**REQUESTS["produce"], "acks": 0, "topic_data": [topic]})
        one._sent = None  # the answer to the next request is the first one
        assert fetch(one, 0).records


def test_a_new_producer_counts_as_what_it_takes() -> None:
    """Else a client with a producer for each record could fill the memory beyond the bound."""
    log, several = PartitionLog(2**30), 2_000
    batches = [new_batch([StoredRecord(0, 0, 0, None, b"v")], producer_id=one, producer_epoch=0,
                         base_sequence=0) for one in range(several)]  # fmt: skip
    tracemalloc.start()
    try:
        for one in batches:
            log.append(one)
        assert tracemalloc.get_traced_memory()[0] < 1.2 * log.size
    finally:
        tracemalloc.stop()
    log.delete_before(log.end)
    assert log.size == 0
