# SPDX-License-Identifier: Apache-2.0
"""Measures `kafka-rebalance fleet` on generated groups: groups a second and peak memory.

    python -m tools.fleet_memory --groups 100000

Each group has 5 topics with 100 partitions in all, 19 members that own them, and one new member.
Memory is the largest resident set of the driver's JVM, and of all Python workers together, read
from /proc ten times a second.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_BATCH = 5_000


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--groups", type=int, default=100_000)
    parser.add_argument("--giant", action="store_true", help="add a group of a million partitions")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        source, target = Path(directory, "groups.parquet"), Path(directory, "assigned")
        write(source, args.groups, giant=args.giant)
        command = [sys.executable, "-m", "kafka_rebalance", "fleet", "assign"]
        command += [str(source), str(target), "--assignor", "cooperative-sticky", "--json"]
        run = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        driver, workers = watch(run)
        assert run.stdout is not None
        summary = json.loads(run.stdout.read())
    rate = summary["groups"] / summary["seconds"]
    print(f"{summary['groups']} groups, {summary['errors']} errors, {summary['seconds']:.1f} s")
    print(f"{rate:,.0f} groups a second; peak memory: driver {driver} MB, workers {workers} MB")
    return run.returncode


def write(path: Path, groups: int, *, giant: bool) -> None:
    """Writes the groups as Parquet, in row groups of a few thousand."""
    writer: pq.ParquetWriter | None = None
    for start in range(0, groups, _BATCH):
        rows = [group(n) for n in range(start, min(start + _BATCH, groups))]
        table = pa.Table.from_pylist(rows)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
        if giant and start == 0:
            writer.write_table(pa.Table.from_pylist([group(0, 1000, 200_000)], table.schema))
    assert writer is not None
    writer.close()


def group(n: int, members: int = 20, partitions: int = 20) -> dict[str, Any]:
    """Makes a group with five topics; all members except the last one own their partitions."""
    topics = [f"topic-{n}-{t}" for t in range(5)]
    every = [(topic, p) for topic in topics for p in range(partitions)]
    owners = members - 1
    return {
        "group_id": f"group-{n}",
        "topics": [{"name": topic, "partitions": partitions} for topic in topics],
        "members": [
            {
                "member_id": f"consumer-{n}-{m}",
                "topics": topics,
                "owned_partitions": list(owned(every[m::owners])) if m < owners else None,
                "generation_id": 7 if m < owners else None,
            }
            for m in range(members)
        ],
    }


def owned(partitions: list[tuple[str, int]]) -> Iterator[dict[str, Any]]:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    for topic, numbers in by_topic.items():
        yield {"topic": topic, "partitions": numbers}


def watch(run: "subprocess.Popen[str]") -> tuple[int, int]:
    """Returns the peak megabytes of the run's JVM, and of all its Python workers together."""
    driver = workers = 0
    while run.poll() is None:
        below = [(name, rss) for name, rss in processes(run.pid)]
        driver = max(driver, sum(rss for name, rss in below if name == "java"))
        workers = max(workers, sum(rss for name, rss in below if name.startswith("python")))
        time.sleep(0.1)
    return driver // 1024, workers // 1024


def processes(root: int) -> Iterator[tuple[str, int]]:
    """Yields name and resident kilobytes of all descendants of a process."""
    parents: dict[int, tuple[int, str, int]] = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        except OSError:
            continue  # the process has ended
        rss = int(fields.get("VmRSS", "0 kB").split()[0])
        parents[int(fields["Pid"])] = int(fields["PPid"]), fields["Name"].strip(), rss
    below = {root}
    for _ in parents:
        more = {pid for pid, (parent, _, _) in parents.items() if parent in below} - below
        if not more:
            break
        below |= more
    for pid in below - {root}:
        yield parents[pid][1], parents[pid][2]


if __name__ == "__main__":
    sys.exit(main())
