# SPDX-License-Identifier: Apache-2.0
"""Measures CPU time for each group on Spark: assigning rows and records, compared with an identity.

    python -m benches.spark_cpu --groups 40000

Each group has 20 members that own 100 partitions under cooperative-sticky, with ids of its own; its
topics occur again in every thousandth group. It is written in three forms: as a contract row, as a
row with indexes into the group's topics in place of topic names, and as a record of
`__consumer_offsets`. The identity is a `mapInArrow` that returns the contract rows unchanged. Each
job runs twice in its own process, on one core, with batches of 4 MB; only the second run is
measured. Its CPU time is that of the process, the JVM and the Python workers together. No rows are
written.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benches.records import PARTITIONS, TOPIC_SETS, TOPICS, record
from kafka_rebalance import _core

GROUPS_A_FILE = 2_000


def write(directory: Path, groups: int) -> None:
    """Writes groups as `rows`, `places` and `records`, and the inventory of their topics."""
    for form in ("rows", "places", "records", "topics"):
        (directory / form).mkdir()
    names = [f"topic-{n}-{t}" for n in range(TOPIC_SETS) for t in range(TOPICS)]
    counts = pa.array([PARTITIONS] * len(names), pa.int32())
    topics = pa.record_batch({"name": pa.array(names), "partitions": counts})
    pq.write_table(pa.table(topics), directory / "topics" / "topics.parquet")
    inventory = _core.TopicInventory(topics)
    for first in range(0, groups, GROUPS_A_FILE):
        pairs = [record(n, "cooperative-sticky") for n in range(first, first + GROUPS_A_FILE)]
        keys, values = (pa.array(column, pa.binary()) for column in zip(*pairs, strict=True))
        records = pa.record_batch({"key": keys, "value": values})
        name = f"{first:08}.parquet"
        pq.write_table(pa.table(records), directory / "records" / name)
        rows = pa.record_batch(_core.groups_from_records(records, inventory)).to_pylist()
        for form in ("rows", "places"):
            table = pa.Table.from_pylist([contract_row(row, form) for row in rows])
            pq.write_table(table, directory / form / name)


def contract_row(row: dict[str, Any], form: str) -> dict[str, Any]:
    """Returns only the contract's fields; in the form `places`, indices replace topic names."""
    places = {topic["name"]: place for place, topic in enumerate(row["topics"])}
    topic = places.__getitem__ if form == "places" else str
    members = [
        {
            "member_id": one["member_id"],
            "client_id": one["client_id"],
            "generation_id": one["generation_id"],
            "topics": [topic(name) for name in one["topics"]],
            "owned_partitions": [
                {"topic": topic(run["topic"]), "partitions": run["partitions"]}
                for run in one["owned_partitions"]
            ],
        }
        for one in row["members"]
    ]
    topics = [{"name": one["name"], "partitions": one["partitions"]} for one in row["topics"]]
    return {
        "group_id": row["group_id"], "assignor": row["assignor"], "topics": topics,
        "members": members,
    }  # fmt: skip


def jobs() -> dict[str, tuple[str, Callable[[Any], Any]]]:
    """Returns job name -> the form of its groups, and the function applied to the frame."""
    from kafka_rebalance.spark import GroupRecords, assign_groups, assign_owners

    class Compacted(GroupRecords):
        def latest(self) -> Any:
            return self.records.select("key", "value")

    def records(frame: Any) -> GroupRecords:
        topics = frame.sparkSession.read.parquet(f"{Path(frame.inputFiles()[0]).parent}/../topics")
        full = frame.selectExpr("key", "value", "0 as partition", "0L as offset")
        return Compacted(full, topics)

    def identity(frame: Any) -> Any:
        return frame.mapInArrow(lambda batches: batches, frame.schema)

    return {
        "scan": ("rows", lambda frame: frame),
        "identity": ("rows", identity),
        "assign_groups": ("rows", assign_groups),
        "assign_groups by place": ("places", assign_groups),
        "records, nested answers": ("records", lambda frame: assign_groups(records(frame))),
        "records, flat owners": ("records", lambda frame: assign_owners(records(frame))),
    }


def measure(name: str, directory: str, groups: int) -> float:
    """Returns the CPU microseconds of a job for each group, in this process and its children."""
    from kafka_rebalance.spark.session import session

    spark = session("spark_cpu", master="local[1]")
    form, job = jobs()[name]
    frame = spark.read.parquet(f"{directory}/{form}")
    for turn in range(2):
        before = cpu_seconds()
        job(frame).write.format("noop").mode("overwrite").save()
        if turn:
            return (cpu_seconds() - before) / groups * 1e6
    raise AssertionError


def cpu_seconds() -> float:
    """Returns the CPU seconds of this process and all its descendants, including ended ones."""
    ticks = os.sysconf("SC_CLK_TCK")
    parents, times = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # the process has ended since the listing
        pid = int(path.parent.name)
        parents[pid] = int(fields[1])
        times[pid] = sum(int(field) for field in fields[11:15]) / ticks
    mine = {os.getpid()}
    while grown := {pid for pid, parent in parents.items() if parent in mine} - mine:
        mine |= grown
    return sum(times.get(pid, 0.0) for pid in mine)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--groups", type=int, default=40_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--job", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.job:
        name, directory = args.job
        print(json.dumps(measure(name, directory, args.groups)))
        return
    with tempfile.TemporaryDirectory() as directory:
        write(Path(directory), args.groups)
        found: dict[str, list[float]] = {}
        for _ in range(args.rounds):
            for name in jobs():
                command = [sys.executable, "-m", "benches.spark_cpu", "--groups", str(args.groups)]
                command += ["--job", name, directory]
                ran = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
                found.setdefault(name, []).append(json.loads(ran.stdout))
    medians = {name: sorted(each)[len(each) // 2] for name, each in found.items()}
    for name, median in medians.items():
        ratio = median / medians["identity"]
        least, most = min(found[name]), max(found[name])
        print(
            f"{name:24} {median:6.0f} us a group ({least:.0f} to {most:.0f}), "
            f"{ratio:.2f} of identity"
        )


if __name__ == "__main__":
    main()
