# SPDX-License-Identifier: Apache-2.0
"""Compares decoding group records with only reading their columns: one core, no Spark.

    python -m benches.records --groups 50000

The input is a Parquet file (zstd) of `__consumer_offsets` records; each group has 20 members, 5
topics and 100 partitions. Two CPU times are measured: pyarrow's, for reading the columns `key` and
`value`, and the core's, for making groups from these columns.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from kafka_rebalance import _core
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.wire import consumer_protocol as wire
from kafka_rebalance.wire.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    encode_key,
    encode_value,
)

_MEMBERS, TOPICS, PARTITIONS = 20, 5, 20
TOPIC_SETS = 1000
_ROWS = 2_000


def record(n: int, assignor: str = "range") -> tuple[bytes, bytes]:
    """Returns the key and the value of a group's record."""
    topics = [f"topic-{n % TOPIC_SETS}-{t}" for t in range(TOPICS)]
    every = [TopicPartition(topic, p) for topic in topics for p in range(PARTITIONS)]
    held = [wire.AssignmentData(tuple(every[m::_MEMBERS]), None, 3) for m in range(_MEMBERS)]
    sent = wire.encode_subscription(wire.Subscription(tuple(topics)))
    members = tuple(
        MemberMetadata(
            f"consumer-{n}-{m}-0b5c2d1e-7b2f-4c53-9d0e-3f1a2b4c5d6e", None, f"consumer-{n}-{m}",
            "/10.0.0.7", 300_000, 45_000, sent, wire.encode_assignment(held[m]),
        )
        for m in range(_MEMBERS)
    )  # fmt: skip
    value = GroupMetadataValue("consumer", 7, assignor, members[0].member_id, 0, members)
    return encode_key(GroupMetadataKey(f"group-{n}")), encode_value(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--groups", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    names = [f"topic-{n}-{t}" for n in range(TOPIC_SETS) for t in range(TOPICS)]
    counts = pa.array([PARTITIONS] * len(names), pa.int32())
    inventory = _core.TopicInventory(
        pa.record_batch([pa.array(names), counts], ["name", "partitions"])
    )
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "records.parquet")
        schema = pa.schema({"key": pa.binary(), "value": pa.binary()})
        with pq.ParquetWriter(path, schema, compression="zstd") as writer:
            for first in range(0, args.groups, _ROWS):
                pairs = [record(n) for n in range(first, min(first + _ROWS, args.groups))]
                columns = [pa.array(column, pa.binary()) for column in zip(*pairs, strict=True)]
                writer.write_batch(pa.record_batch(columns, schema=schema))
        size = sum(len(value) for _, value in map(record, range(100))) / 100
        reading, decoding = [], []
        for _ in range(args.rounds):
            read = decoded = 0.0
            start = time.process_time()
            for batch in pq.ParquetFile(path).iter_batches(_ROWS, use_threads=False):
                read += time.process_time() - start
                start = time.process_time()
                answers = pa.record_batch(_core.groups_from_records(batch, inventory))
                decoded += time.process_time() - start
                assert answers["error"].null_count == len(batch)
                start = time.process_time()
            reading.append(read / args.groups * 1e6)
            decoding.append(decoded / args.groups * 1e6)
        one, other = statistics.median(reading), statistics.median(decoding)
        print(f"{args.groups:,} groups of {_MEMBERS} members, {size:,.0f} bytes a record")
        print(f"reading {one:.1f} us a group, decoding {other:.1f} us: {other / one:.1f} times")


if __name__ == "__main__":
    main()
