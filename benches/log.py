# SPDX-License-Identifier: Apache-2.0
"""Measures how Spark makes groups from a whole log of `__consumer_offsets`.

    python -m benches.log --records 10000000 --groups 100000
    python -m benches.log --records 5000000 --groups 20000 --history

1. Draws a log from a seed, and writes one Parquet file for each of 50 partitions. About 98% of the
   records are commits. Groups have min(400, int(2 * pareto(1.25))) members; one group has 5,000.
   Each group has at least one record, in value version 3 or 4; a tombstone ends one group in fifty.
   30% of the offsets are followed by a gap, as after compaction.
2. In a separate process with local[2], runs `current_groups` over the log and writes Parquet.
   Measures the wall time and the largest resident sets in /proc.
3. Checks that each group without a tombstone occurs once, with its last generation.

With --history, step 2 runs `rebalance_history`, with each record's offset as its time in ms, and
step 3 checks that there is one row for each record of a group, without tombstones.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from struct import pack

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.wire import consumer_protocol as wire
from kafka_rebalance.wire.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    encode_key,
    encode_value,
)
from tools.fleet_memory import watch

SEED = 20
PARTITIONS = 50
TOPICS = 1_000
PARTITIONS_A_TOPIC = 12
GIANT = 5_000
_BATCH = 50_000
_SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
    ]
)

Record = tuple[bytes, bytes | None]


class Group:
    """A group whose record is encoded once; only the four bytes of its generation change."""

    def __init__(self, n: int, members: int, rng: random.Random) -> None:
        self.group_id = f"group-{n}"
        self.members = members
        topics = sorted(rng.sample(range(TOPICS), rng.randint(1, 3)))
        names = tuple(f"topic-{t}" for t in topics)
        places = [TopicPartition(name, p) for name in names for p in range(PARTITIONS_A_TOPIC)]
        sent = wire.encode_subscription(wire.Subscription(names))
        version = rng.choice((3, 4))
        rows = tuple(
            MemberMetadata(
                f"consumer-{n}-{m}-{rng.getrandbits(64):016x}", None, f"consumer-{n}-{m}",
                "/10.0.0.7", 300_000, 45_000, sent,
                wire.encode_assignment(wire.AssignmentData(tuple(places[m::members]), None, 3)),
            )
            for m in range(members)
        )  # fmt: skip
        value = GroupMetadataValue(
            "consumer", 0, "range", rows[0].member_id, 0, rows, version=version
        )
        self.key = encode_key(GroupMetadataKey(self.group_id))
        self._value = encode_value(value)
        # After the version comes "consumer". Its length takes two bytes; in version 4, one byte.
        self._at = 2 + (1 if version == 4 else 2) + len("consumer")
        self._commit_keys = [
            encode_key(OffsetCommitKey(self.group_id, place.topic, place.partition))
            for place in places
        ]
        self.generation_id = 0

    def record(self) -> Record:
        self.generation_id += 1
        at = self._at
        return self.key, self._value[:at] + pack(">i", self.generation_id) + self._value[at + 4 :]

    def commit(self, rng: random.Random) -> Record:
        key = self._commit_keys[int(rng.random() * len(self._commit_keys))]
        return key, pack(">hqihq", 3, rng.getrandbits(40), 1, 0, 1_700_000_000_000)


def records_of(groups: list[Group], count: int, rng: random.Random) -> Iterator[Record]:
    """Yields the records of one log partition; a group's first record comes before its commits."""
    weights = list(accumulate(group.members for group in groups))
    for group in groups:
        yield group.record()
    for group in rng.choices(groups, cum_weights=weights, k=max(0, count - len(groups))):
        yield rng.choice(groups).record() if rng.random() < 0.02 else group.commit(rng)
    for group in groups[::50]:
        group.generation_id = 0  # ended
        yield group.key, None


def write(directory: Path, count: int, groups: int) -> dict[str, int]:
    """Writes the log; returns the last generation of each group that has no tombstone."""
    rng = random.Random(SEED)
    directory.mkdir()
    sizes = [GIANT] + [min(400, int(2 * rng.paretovariate(1.25))) for _ in range(groups - 1)]
    by_partition: list[list[int]] = [[] for _ in range(PARTITIONS)]
    for n in range(groups):
        by_partition[zlib.crc32(f"group-{n}".encode()) % PARTITIONS].append(n)
    left: dict[str, int] = {}
    for partition, members in enumerate(by_partition):
        there = [Group(n, sizes[n], rng) for n in members]
        offset = 0
        with pq.ParquetWriter(
            directory / f"{partition}.parquet", _SCHEMA, compression="zstd"
        ) as writer:
            records = records_of(there, count // PARTITIONS, rng)
            while some := [record for _, record in zip(range(_BATCH), records, strict=False)]:
                offsets = []
                for _ in some:
                    offsets.append(offset)
                    offset += 1 if rng.random() < 0.7 else rng.randint(2, 50)
                keys, values = zip(*some, strict=True)
                columns = [pa.array(keys, pa.binary()), pa.array(values, pa.binary())]
                columns.append(pa.array([partition] * len(some), pa.int32()))
                columns.append(pa.array(offsets, pa.int64()))
                writer.write_batch(pa.record_batch(columns, schema=_SCHEMA))
        left |= {group.group_id: group.generation_id for group in there if group.generation_id}
    return left


def job(source: str, target: str) -> dict[str, float]:
    """Writes the groups of the log; returns the wall time in seconds."""
    from kafka_rebalance.spark import current_groups
    from kafka_rebalance.spark.session import session

    spark = session("bench", master="local[2]")
    rows = [(f"topic-{n}", PARTITIONS_A_TOPIC) for n in range(TOPICS)]
    topics = spark.createDataFrame(rows, "name string, partitions int")
    start = time.perf_counter()
    current_groups(spark.read.parquet(source), topics).write.parquet(target)
    return {"wall": time.perf_counter() - start}


def history_job(source: str, target: str) -> dict[str, float]:
    """Writes the history of all groups; returns the wall time in seconds."""
    from kafka_rebalance.spark import rebalance_history
    from kafka_rebalance.spark.session import session

    spark = session("bench", master="local[2]")
    start = time.perf_counter()
    records = spark.read.parquet(source).selectExpr("*", "timestamp_millis(offset) as timestamp")
    rebalance_history(records).write.parquet(target)
    return {"wall": time.perf_counter() - start}


def group_records(files: list[Path]) -> int:
    """Counts the records of groups, without tombstones."""
    found = 0
    for path in files:
        table = pq.read_table(path, columns=["key", "value"])
        is_group = pc.equal(pc.binary_slice(table["key"], 0, 2), pa.scalar(b"\0\2", pa.binary()))
        found += pc.sum(pc.and_(is_group, pc.is_valid(table["value"]))).as_py() or 0
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--groups", type=int, default=100_000)
    parser.add_argument("--history", action="store_true", help="of all rebalances, not the last")
    parser.add_argument("--job", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.job:
        print(json.dumps((history_job if args.history else job)(*args.job)))
        return
    with tempfile.TemporaryDirectory() as name:
        source, target = Path(name, "log"), Path(name, "groups")
        left = write(source, args.records, args.groups)
        files = list(source.glob("*.parquet"))
        rows = sum(pq.read_metadata(path).num_rows for path in files)
        size = sum(path.stat().st_size for path in files) / 1e6
        print(f"{rows:,} records, {args.groups:,} groups, {size:,.0f} MB of Parquet")
        command = [sys.executable, "-m", "benches.log", "--job", str(source), str(target)]
        command += ["--history"] if args.history else []
        ran = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        driver, workers = watch(ran)
        assert ran.stdout is not None
        wall = json.loads(ran.stdout.read())["wall"]
        print(f"{wall:.1f} s; peak memory: JVM {driver:,} MB, Python workers {workers:,} MB")
        if args.history:
            rows, expected = len(pq.read_table(target, columns=["cause"])), group_records(files)
            print(f"{rows:,} rows; one for each record of a group: {rows == expected}")
            return
        found = pq.read_table(target, columns=["group_id", "generation_id", "error"])
        good = found.filter(pc.is_null(found["error"]))
        pairs = zip(good["group_id"].to_pylist(), good["generation_id"].to_pylist(), strict=True)
        is_right = len(found) == len(left) and dict(pairs) == left
        print(f"{len(found):,} groups; those that were written, with their generations: {is_right}")


if __name__ == "__main__":
    main()
