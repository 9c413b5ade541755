# SPDX-License-Identifier: Apache-2.0
"""How fast `kafka-rebalance serve` is: its start, heartbeats, records produced and fetched.

    python -m benches.serve

Each figure has the CPU seconds of the server's process beside it: one core can do no more than one
a second. The clients are in this process, or in librdkafka's threads, on the other cores.
"""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka import Consumer, Producer

from tests.parity.wire import Connection
from tests.support.served_broker import running

MEMBERS = 1_000
CONNECTIONS = 8
ROUNDS = 5
PARTITIONS = 6
RECORD = os.urandom(1_000)
RECORDS = 250_000
_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_s(process_id: int) -> float:
    """Returns the CPU seconds that a process has used."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def start_ms() -> tuple[float, float]:
    """Returns the time from the start of the process to its first answer, and its CPU time."""
    began = time.perf_counter()
    with (
        running("--topic", "orders=6") as (process, host, port),
        Connection(host, port, "c") as one,
    ):
        one.ask("api_versions", 3, client_software_name="bench", client_software_version="1")
        return (time.perf_counter() - began) * 1000, cpu_s(process.pid) * 1000


def heartbeats() -> tuple[float, float, list[float]]:
    """Returns heartbeats of a consumer group's members a second, and a CPU second of the server;
    then the ms to each answer while half of the members send one each second, in ascending order.
    """
    with running("--topic", f"orders={MEMBERS}") as (process, host, port), ExitStack() as stack:
        several = [stack.enter_context(Connection(host, port, "c")) for _ in range(CONNECTIONS)]

        def beat(member: int, epoch: int, **more: object) -> int:
            one = several[member % CONNECTIONS]
            asked = {"group_id": "g", "member_id": f"member-{member:04}", "member_epoch": epoch}
            answer = one.ask("consumer_group_heartbeat", 1, **asked, **more)
            assert answer.error_code.name == "none", answer
            return int(answer.member_epoch)

        unchanged = {"topic_partitions": None, "subscribed_topic_names": None}
        joins = {"rebalance_timeout": 60_000, "subscribed_topic_names": ["orders"]}
        epochs = {one: beat(one, 0, **joins, topic_partitions=[]) for one in range(MEMBERS)}
        for _ in range(3):  # until all have their targets
            time.sleep(1.1)
            epochs = {
                one: beat(one, epoch, **{**unchanged, "topic_partitions": []})
                for one, epoch in epochs.items()
            }
        began, used = time.perf_counter(), cpu_s(process.pid)
        for _ in range(ROUNDS):
            for one, epoch in epochs.items():
                beat(one, epoch, **unchanged)
        number = ROUNDS * MEMBERS
        rates = number / (time.perf_counter() - began), number / (cpu_s(process.pid) - used)
        waits, began, paced = [], time.perf_counter(), list(epochs.items())[: MEMBERS // 2]
        for place, (one, epoch) in enumerate(ROUNDS * paced):
            time.sleep(max(0.0, began + place / len(paced) - time.perf_counter()))
            sent = time.perf_counter()
            beat(one, epoch, **unchanged)
            waits.append((time.perf_counter() - sent) * 1000)
        return *rates, sorted(waits)


def records() -> dict[str, tuple[float, float]]:
    """Returns MB a second of records produced and fetched, and MB a CPU second of the server."""
    megabytes = RECORDS * len(RECORD) / 1e6
    found = {}
    with running("--topic", f"orders={PARTITIONS}") as (process, host, port):
        servers = {"bootstrap.servers": f"{host}:{port}"}
        producer = Producer(
            {
                **servers,
                "linger.ms": 50,
                "batch.size": 1_000_000,
                "queue.buffering.max.kbytes": 10**6,
            }
        )
        began, used = time.perf_counter(), cpu_s(process.pid)
        for number in range(RECORDS):
            while True:
                try:
                    producer.produce("orders", RECORD, partition=number % PARTITIONS)
                    break
                except BufferError:
                    producer.poll(0.01)
        assert producer.flush(60) == 0
        found["produced"] = (
            megabytes / (time.perf_counter() - began),
            megabytes / (cpu_s(process.pid) - used),
        )
        consumer = Consumer({**servers, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        got = 0
        while not (first := consumer.consume(1, 1.0)):
            pass
        began, used, got = time.perf_counter(), cpu_s(process.pid), len(first)
        while got < RECORDS:
            got += len(consumer.consume(10_000, 1.0))
        found["fetched"] = (
            megabytes / (time.perf_counter() - began),
            megabytes / (cpu_s(process.pid) - used),
        )
        consumer.close()
    return found


def main() -> None:
    wall_ms, cpu_ms = map(sorted, zip(*(start_ms() for _ in range(9)), strict=True))
    print(f"start to first answer: median {wall_ms[4]:.0f} ms, least {wall_ms[0]:.0f} ms; "
          f"CPU time median {cpu_ms[4]:.0f} ms")  # fmt: skip
    a_second, a_cpu_second, waits = heartbeats()
    print(f"heartbeats of {MEMBERS} members: {a_second:.0f} a second with one client, "
          f"{a_cpu_second:.0f} a CPU second of serve")  # fmt: skip
    half, almost = waits[len(waits) // 2], waits[len(waits) * 99 // 100]
    print(f"{MEMBERS // 2} members with a heartbeat a second: "
          f"median {half:.1f} ms, p99 {almost:.1f} ms, slowest {waits[-1]:.1f} ms")  # fmt: skip
    for name, (wall, cpu) in records().items():
        print(f"records {name}: {wall:.0f} MB a second, {cpu:.0f} MB a CPU second of serve")


if __name__ == "__main__":
    main()
