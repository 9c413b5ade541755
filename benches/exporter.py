# SPDX-License-Identifier: Apache-2.0
"""Measures the exporter on made-up groups: memory, and scrapes alone and while the log is read.

    python -m benches.exporter --groups 10000 --members 4 --partitions 24

No broker runs. The process takes records as from `__consumer_offsets` (of each group two
generations from before it began, each with a commit of every partition), and descriptions of all
groups. Then its page is read over HTTP: twice while nothing happens, and again and again while the
log goes on with rebalances and commits, as fast as one thread takes them. Memory is the resident
set, which includes the reader of the pages; CPU is that of the process.
"""

import argparse
import multiprocessing
import resource
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from kafka_rebalance.follow import cluster
from kafka_rebalance.follow.exporter import Exporter
from kafka_rebalance.follow.server import http_server
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.wire import consumer_protocol as wire
from kafka_rebalance.wire.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetsRecord,
    encode_key,
    encode_value,
)

_TOPICS = 500
_BATCH = 500
_SCRAPES = 5
_LOG_PARTITIONS = 50


class Made:
    """Made-up groups: each reads one of 500 topics, and in each generation one member is new."""

    def __init__(self, groups: int, members: int, partitions: int) -> None:
        self.groups, self.members, self.partitions = groups, members, partitions
        self.offsets = [0] * _LOG_PARTITIONS
        self.topics = {
            name: {"name": name, "partitions": partitions}
            for name in (f"topic-{n}" for n in range(_TOPICS))
        }

    def _split(self, number: int, generation: int) -> dict[str, list[int]]:
        """Returns each member's partitions; in each generation another member is new."""
        size, more = divmod(self.partitions, self.members)
        owned, first = {}, 0
        for n in range(self.members):
            age = (generation - 1 + n) // self.members
            last = first + size + (n < more)
            owned[f"consumer-{number}-{n}-{age:08}-0000-0000-000000000000"] = [*range(first, last)]
            first = last
        return owned

    def line(self, number: int, generation: int) -> dict[str, Any]:
        topic = f"topic-{number % _TOPICS}"
        members = [
            {
                "member_id": one,
                "topics": [topic],
                "owned_partitions": [{"topic": topic, "partitions": places}],
            }
            for one, places in self._split(number, generation).items()
        ]
        return {
            "group_id": f"group-{number:05}", "assignor": "range", "members": members,
            "topics": [self.topics[topic]], "leader_library": "java",
        }  # fmt: skip

    def lines(self) -> Iterator[dict[str, Any]]:
        return (self.line(number, 2) for number in range(self.groups))

    def record(self, number: int, generation: int) -> OffsetsRecord:
        topic, owned = f"topic-{number % _TOPICS}", self._split(number, generation)
        sent = wire.encode_subscription(wire.Subscription((topic,)))
        members = tuple(
            MemberMetadata(
                one, None, one.rpartition("-")[0][:20], "/10.0.0.1", 300_000, 45_000, sent,
                wire.encode_assignment(
                    wire.AssignmentData(tuple(TopicPartition(topic, p) for p in places), None, 3)
                ),
            )
            for one, places in owned.items()
        )  # fmt: skip
        now_ms = int(time.time() * 1000)
        value = GroupMetadataValue(
            "consumer", generation, "range", next(iter(owned)), now_ms - 500, members, 3
        )
        key = GroupMetadataKey(f"group-{number:05}")
        return self._next(number, encode_key(key), encode_value(value), now_ms)

    def commits(self, number: int) -> Iterator[OffsetsRecord]:
        now_ms = int(time.time() * 1000)
        for n in range(self.partitions):
            key = OffsetCommitKey(f"group-{number:05}", f"topic-{number % _TOPICS}", n)
            yield self._next(number, encode_key(key), b"\0\0" + b"\0" * 22, now_ms)

    def _next(self, number: int, key: bytes, value: bytes, now_ms: int) -> OffsetsRecord:
        place = number % _LOG_PARTITIONS
        self.offsets[place] += 1
        return OffsetsRecord(place, self.offsets[place] - 1, now_ms, key, value)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--members", type=int, default=4)
    parser.add_argument("--partitions", type=int, default=24)
    parser.add_argument("--busy", type=int, default=0, help="processes that only use the cores")
    args = parser.parse_args()
    made = Made(args.groups, args.members, args.partitions)
    busy = [multiprocessing.Process(target=_spin, daemon=True) for _ in range(args.busy)]
    with (
        patch.object(cluster, "topic_lines", lambda *_, **__: made.topics),
        patch.object(cluster, "snapshot_lines", lambda *_, **__: made.lines()),
    ):
        for one in busy:
            one.start()
        measure(made)
    for one in busy:
        one.kill()


def measure(made: Made) -> None:
    exporter = Exporter("")
    followed = exporter.followed
    followed.by_records = True
    followed.log.old_before |= dict.fromkeys(range(_LOG_PARTITIONS), 1 << 62)
    print(f"begun: {_memory()}")
    read = Counter[str]()
    for generation in (1, 2):
        _take(exporter, made, generation, read)
    followed.log.old_before.clear()
    print(f"{made.groups:,} groups, their log read: {_memory()}; {_rate(read)}")
    used = time.thread_time()
    followed.look()
    print(f"described: {_memory()}; {time.thread_time() - used:.1f} s of CPU")
    server = http_server(exporter, "127.0.0.1", 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/metrics"
    print(f"first scrape: {_scrape(address)}")
    print(f"again: {_scrape(address)}; {_memory()}")
    ended, read = threading.Event(), Counter[str]()
    reader = threading.Thread(target=_take, args=(exporter, made, 3, read, ended), daemon=True)
    reader.start()
    for _ in range(_SCRAPES):
        time.sleep(1)
        print(f"while the log is read: {_scrape(address)}")
    ended.set()
    reader.join()
    print(f"afterwards: {_memory()}; {_rate(read)}")


def _take(
    exporter: Exporter,
    made: Made,
    generation: int,
    read: Counter[str],
    ended: threading.Event | None = None,
) -> None:
    """Lets the exporter take a generation of each group, then commits; counts records and time."""
    for first in range(0, made.groups, _BATCH):
        numbers = range(first, min(first + _BATCH, made.groups))
        batches = {
            "rebalances": [made.record(n, generation) for n in numbers],
            "commits": [one for n in numbers for one in made.commits(n)],
        }
        for kind, batch in batches.items():
            used = time.thread_time_ns()
            exporter.followed.take(batch)
            read[f"{kind} ns"] += time.thread_time_ns() - used
            read[kind] += len(batch)
        if ended is not None and ended.is_set():
            return


def _rate(read: Counter[str]) -> str:
    """Returns the records in a second of the thread's CPU, without the time that made them."""
    each = (
        f"{read[one] / read[f'{one} ns'] * 1e9:,.0f} {one}" for one in ("rebalances", "commits")
    )
    return f"in a second of CPU {' or '.join(each)}"


def _scrape(address: str) -> str:
    began, used = time.perf_counter(), time.process_time()
    with urllib.request.urlopen(address, timeout=60) as answer:
        size = sum(map(len, iter(partial(answer.read, 1 << 16), b"")))
    seconds, cpu = time.perf_counter() - began, time.process_time() - used
    return f"{seconds:.2f} s, {cpu:.2f} s of CPU, {size / 1e6:.1f} MB"


def _memory() -> str:
    status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    [now] = [int(line.split()[1]) for line in status if line.startswith("VmRSS:")]
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return f"{now / 1024:.0f} MB, at most {most / 1024:.0f} MB"


def _spin() -> None:
    while True:
        pass


if __name__ == "__main__":
    main()
