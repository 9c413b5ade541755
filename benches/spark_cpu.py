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

    python -m benches.spark_cpu --to-parquet --groups 20000 --rounds 7

compares jobs from Parquet to Parquet in one session on two cores: the identity, `assign_groups` and
`assign_files`, over the same varied groups (1 to 40 members, 1 to 9 topics, each with its own id).
Each round runs each job once; three rounds before the first measured one warm the JVM.
"""

import argparse
import json
import os
import random
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
_WARMING = 3


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


def write_varied(directory: Path, groups: int) -> None:
    """Writes contract rows of groups that differ in size; every sixteenth has no claims."""
    directory.mkdir()
    draw = random.Random(15)
    for first in range(0, groups, GROUPS_A_FILE * 4):
        rows = [varied(draw, n) for n in range(first, min(first + GROUPS_A_FILE * 4, groups))]
        pq.write_table(pa.Table.from_pylist(rows), directory / f"{first:08}.parquet")


def varied(draw: random.Random, n: int) -> dict[str, Any]:
    """Returns a contract row: cooperative-sticky, each partition claimed by some member."""
    topics = [
        {"name": f"team-{n % 97}.events-{n}-{t}", "partitions": draw.choice((3, 6, 12, 24, 48))}
        for t in range(draw.randint(1, 9))
    ]
    names = [topic["name"] for topic in topics]
    count = draw.randint(1, 40)
    owned: list[dict[Any, list[int]]] = [{} for _ in range(count)]
    for topic in topics if n % 16 else ():
        for p in range(int(str(topic["partitions"]))):
            draw.choice(owned).setdefault(topic["name"], []).append(p)
    members = [
        {
            "member_id": f"app-{n}-{m}-{draw.getrandbits(128):032x}",
            "client_id": f"app-{n}-{m}",
            "topics": names,
            "owned_partitions": [
                {"topic": name, "partitions": held} for name, held in owned[m].items()
            ],
            "generation_id": 7,
        }
        for m in range(count)
    ]
    return {
        "group_id": f"group-{n}", "assignor": "cooperative-sticky", "topics": topics,
        "members": members,
    }  # fmt: skip


def to_parquet(directory: Path, groups: int, rounds: int) -> dict[str, list[float]]:
    """Returns the CPU microseconds a group of each job and round, in one session."""
    from kafka_rebalance.spark import assign_files, assign_groups
    from kafka_rebalance.spark.session import session

    source, target = f"{directory}/varied", f"{directory}/out"
    write_varied(Path(source), groups)
    spark = session("spark_cpu", master="local[2]")
    rows: Any = spark.read.parquet(source)

    def identity() -> None:
        same = rows.mapInArrow(lambda batches: batches, rows.schema)
        same.write.mode("overwrite").parquet(target)

    each: dict[str, Callable[[], object]] = {
        "identity": identity,
        "assign_groups": lambda: assign_groups(rows).write.mode("overwrite").parquet(target),
        "assign_files": lambda: assign_files(spark, source, target, overwrite=True),
    }
    found: dict[str, list[float]] = {name: [] for name in each}
    for turn in range(-_WARMING, rounds):
        for name, job in each.items():
            before = cpu_seconds()
            job()
            if turn >= 0:
                found[name].append((cpu_seconds() - before) / groups * 1e6)
            assert spark.read.parquet(target).count() == groups
    spark.stop()
    return found


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


def in_own_processes(directory: Path, groups: int, rounds: int) -> dict[str, list[float]]:
    """Returns the CPU microseconds a group of each job and round, each in a new process."""
    write(directory, groups)
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name in jobs():
            command = [sys.executable, "-m", "benches.spark_cpu", "--groups", str(groups)]
            command += ["--job", name, str(directory)]
            ran = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
            found.setdefault(name, []).append(json.loads(ran.stdout))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--groups", type=int, default=40_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--to-parquet", action="store_true", help="from Parquet to Parquet")
    parser.add_argument("--job", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.job:
        name, directory = args.job
        print(json.dumps(measure(name, directory, args.groups)))
        return
    with tempfile.TemporaryDirectory() as directory:
        if args.to_parquet:
            found = to_parquet(Path(directory), args.groups, args.rounds)
        else:
            found = in_own_processes(Path(directory), args.groups, args.rounds)
    medians = {name: sorted(each)[len(each) // 2] for name, each in found.items()}
    for name, median in medians.items():
        ratio = median / medians["identity"]
        least, most = min(found[name]), max(found[name])
        print(
            f"{name:24} {median:6.0f} us a group ({least:.0f} to {most:.0f}), "
            f"{ratio:.2f} of identity",
            [
                round(one / base, 2)
                for one, base in zip(found[name], found["identity"], strict=True)
            ],
        )


if __name__ == "__main__":
    main()
