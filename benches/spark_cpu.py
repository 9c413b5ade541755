# SPDX-License-Identifier: Apache-2.0
"""Measures CPU time a group on Spark: of `assign_groups`, and of a `mapInArrow` that only copies.

    python -m benches.spark_cpu --groups 40000

Each group has 20 members that own 100 partitions under cooperative-sticky. Each job runs twice in
its own process, on one core, with batches of 4 MB. The first run warms up. The second is measured:
the CPU time of the process, the JVM and the Python workers together. No rows are written.
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

import kafka_rebalance as kr

GROUPS_A_FILE = 2_000


def write(directory: Path, groups: int, *, by_place: bool) -> None:
    """Writes one group under many ids; topics are names, or indices in the group's topic list."""
    topics = (kr.Topic("topic-a", 60), kr.Topic("topic-b", 40))
    names = ("topic-a", "topic-b")
    members = [kr.Member(f"consumer-{m}-0b5c2d1e", names) for m in range(20)]
    group = kr.GroupSpec("bench", topics, tuple(members), "cooperative-sticky")
    row = kr.plan(group).final.to_dict()
    if by_place:
        for member in row["members"]:
            member["topics"] = [names.index(name) for name in member["topics"]]
            for owned in member["owned_partitions"]:
                owned["topic"] = names.index(owned["topic"])
    directory.mkdir()
    for first in range(0, groups, GROUPS_A_FILE):
        rows = [row | {"group_id": f"bench-{first + n}"} for n in range(GROUPS_A_FILE)]
        pq.write_table(pa.Table.from_pylist(rows), directory / f"{first:08}.parquet")


def jobs() -> dict[str, Callable[[Any], Any]]:
    """Name of a job -> the function that the job applies to the DataFrame."""
    from kafka_rebalance.spark import assign_groups

    def identity(frame: Any) -> Any:
        return frame.mapInArrow(lambda batches: batches, frame.schema)

    return {
        "scan": lambda frame: frame,
        "identity": identity,
        "assign_groups": assign_groups,
        "assign_groups by place": assign_groups,
    }


def measure(name: str, directory: str, groups: int) -> float:
    """Returns CPU microseconds a group of one job, in this process and its children."""
    from kafka_rebalance.spark.session import session

    spark = session("spark_cpu", master="local[1]")
    frame = spark.read.parquet(directory)
    for turn in range(2):
        before = cpu_seconds()
        jobs()[name](frame).write.format("noop").mode("overwrite").save()
        if turn:
            return (cpu_seconds() - before) / groups * 1e6
    raise AssertionError


def cpu_seconds() -> float:
    """CPU time of this process and all its descendants, including ended ones."""
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
        rich, short = Path(directory, "rich"), Path(directory, "by-place")
        write(rich, args.groups, by_place=False)
        write(short, args.groups, by_place=True)
        found: dict[str, list[float]] = {}
        for _ in range(args.rounds):
            for name in jobs():
                data = short if name.endswith("by place") else rich
                command = [sys.executable, __file__, "--groups", str(args.groups)]
                command += ["--job", name, str(data)]
                ran = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
                found.setdefault(name, []).append(json.loads(ran.stdout))
    medians = {name: sorted(each)[len(each) // 2] for name, each in found.items()}
    for name, median in medians.items():
        ratio = median / medians["identity"]
        print(f"{name:24} {median:6.0f} us a group, {ratio:.2f} of identity")


if __name__ == "__main__":
    main()
