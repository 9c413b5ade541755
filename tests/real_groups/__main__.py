# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.real_groups`: Spark reads thirty real groups while some change.

1. Start a broker; groups of Java, kafka-python, aiokafka and librdkafka members with all assignors,
   dynamic and static; a Connect cluster; a group of the new protocol. All consumers commit.
2. Members join and leave while a batch job reads `__consumer_offsets`. If a group's snapshots from
   before and after the job are equal, the group in the job's result must equal them.
3. When all groups are quiet, every group of a snapshot must be equal in the result of a second job.

It takes about three minutes. The exit code is 0 if all of this holds, else 1.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka_rebalance.live import snapshot_lines
from kafka_rebalance.spark import count_records, current_groups, read_consumer_offsets
from kafka_rebalance.spark.session import session
from tests.support.broker import Broker
from tests.support.connect_cluster import ConnectCluster
from tests.support.live_members import JavaMembers, PythonMembers, await_coordinators, await_stable

from .librdkafka_members import LibrdkafkaMembers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TOPICS = {"t": 6, "u": 3}
ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
PYTHON = {
    "kafka-python": ("range", "roundrobin", "cooperative-sticky"),
    "aiokafka": ("range", "roundrobin", "sticky"),
}
LIBRDKAFKA = ("range", "roundrobin", "cooperative-sticky")
LEADERS = {
    "java": "java",
    "kafka-python": "python",
    "aiokafka": "python",
    "librdkafka": "librdkafka",
}
"""The expected `leader_library`, by the beginning of the group's name."""

Line = dict[str, Any]


def main() -> int:
    spark = session("real groups", master="local[2]")
    spark.conf.set("spark.sql.shuffle.partitions", "4")
    with (
        tempfile.TemporaryDirectory(prefix="kafka-rebalance-groups-") as directory,
        Broker() as broker,
        JavaMembers(broker.bootstrap_server, Path(directory, "java.log")) as java,
        PythonMembers(broker.bootstrap_server) as python,
        LibrdkafkaMembers(broker.bootstrap_server) as librdkafka,
        ConnectCluster(broker.bootstrap_server, workers=1),
    ):
        server = broker.bootstrap_server
        sizes = _start(server, java, python, librdkafka)
        await_stable(server, sizes)
        wrong = _read_while_groups_change(spark, server, java)
        await_stable(server, sizes)
        wrong += _read_when_all_is_quiet(spark, server)
    for problem in wrong:
        print("wrong:", problem)
    return 1 if wrong else 0


def _start(
    server: str, java: JavaMembers, python: PythonMembers, librdkafka: LibrdkafkaMembers
) -> dict[str, int]:
    """Starts two members of each classic group, and one member of the new protocol."""
    from kafka import KafkaAdminClient

    with KafkaAdminClient(bootstrap_servers=server) as admin:
        topics = {n: {"num_partitions": p, "replication_factor": 1} for n, p in TOPICS.items()}
        admin.create_topics(topics, wait_for_metadata=True)
    sizes: dict[str, int] = {}
    for n in range(16):
        group_id = f"java-{n}-{ASSIGNORS[n % 4]}"
        sizes[group_id] = 2
        java.send(add=[_java(group_id, m, is_static=n % 3 == 0) for m in range(2)])
    librdkafka.add("new-protocol", "new", None, ["t"])
    names = [f"{library}-{a}" for library, assignors in PYTHON.items() for a in assignors]
    await_coordinators(server, names)
    for library, assignors in PYTHON.items():
        for assignor in assignors:
            sizes[f"{library}-{assignor}"] = 2
            for m in range(2):
                python.add(library, f"{library}-{assignor}", f"{library}-{m}", assignor, ["t"])
    for n, assignor in enumerate((*LIBRDKAFKA, *LIBRDKAFKA)):
        group_id = f"librdkafka-{n}-{assignor}"
        sizes[group_id] = 2
        for m in range(2):
            librdkafka.add(group_id, f"r-{m}", assignor, ["t", "u"], is_static=n > 2)
    return sizes


def _java(group_id: str, m: int, *, is_static: bool) -> Line:
    configs = {"enable.auto.commit": "true", "auto.commit.interval.ms": "1000"}
    if is_static:
        configs["group.instance.id"] = f"i-{m}"
    return {
        "group_id": group_id,
        "client_id": f"{group_id}-{m}",
        "assignors": [group_id.partition("-")[2].partition("-")[2]],
        "topics": ["t", "u"] if m else ["t"],
        "configs": configs,
    }


def _read_while_groups_change(spark: SparkSession, server: str, java: JavaMembers) -> list[str]:
    ended, turns = threading.Event(), [0]
    changing = [f"java-{n}-{ASSIGNORS[n % 4]}" for n in (1, 2, 4, 7)]

    def change() -> None:
        while not ended.is_set():
            java.tell(add=[_java(group_id, 9, is_static=False) for group_id in changing])
            java.tell(close=[f"{group_id}-9" for group_id in changing])
            turns[0] += 1

    changes = threading.Thread(target=change)
    changes.start()
    try:
        before = _described(server)
        read = _groups(spark, server)
        after = _described(server)
    finally:
        ended.set()
        changes.join()
    same = {name: line for name, line in before.items() if line == after.get(name)}
    wrong = _differences(same, read)
    print(
        f"while members joined and left ({2 * turns[0]} rebalances of {len(changing)} groups): "
        f"{len(read)} groups read, {len(same)} of {len(before)} did not change meanwhile, "
        f"{len(wrong)} of them differ"
    )
    return wrong


def _read_when_all_is_quiet(spark: SparkSession, server: str) -> list[str]:
    read = _groups(spark, server)
    described = _described(server)
    wrong = _differences(described, read)
    kinds: dict[str, int] = {}
    for row in read.values():
        kinds[row["kind"]] = kinds.get(row["kind"], 0) + 1
    print(f"when all was quiet: {len(described)} groups described, {len(wrong)} differ")
    print("kinds of groups:", kinds, "errors:", [r["error"] for r in read.values() if r["error"]])
    records = count_records(read_consumer_offsets(spark, bootstrap_servers=server)).collect()
    print("records:", {row["kind"]: row["records"] for row in records})
    for name, row in read.items():
        leads = next(
            (library for start, library in LEADERS.items() if name.startswith(start)), None
        )
        if row["leader_library"] != leads:
            wrong.append(f"{name}: led by {row['leader_library']} in place of {leads}")
    if kinds.get("connect") != 1 or any(row["error"] for row in read.values()):
        wrong.append(f"kinds and errors: {kinds}")
    if not any("KIP-848" in row["kind"] for row in records):
        wrong.append("no record of the new protocol was counted")
    return wrong


def _described(server: str) -> dict[str, Line]:
    lines = {line["group_id"]: line for line in snapshot_lines(server)}
    return {name: line for name, line in lines.items() if "error" not in line}


def _groups(spark: SparkSession, server: str) -> dict[str, Line]:
    topics: DataFrame = spark.createDataFrame(list(TOPICS.items()), "name string, partitions int")
    records = read_consumer_offsets(spark, bootstrap_servers=server)
    rows = current_groups(records, topics).collect()
    return {row["group_id"]: row.asDict(recursive=True) for row in rows}


def _differences(described: dict[str, Line], read: dict[str, Line]) -> list[str]:
    wrong = []
    for name, line in described.items():
        row = read.get(name)
        if row is None or _compared(row) != _compared(line):
            wrong.append(f"{name}: {row and _compared(row)} in place of {_compared(line)}")
    return wrong


def _compared(group: Line) -> Line:
    """Returns the fields to compare; a member's partitions have no order."""
    members = {
        member["member_id"]: (
            member.get("group_instance_id"),
            member["client_id"],
            sorted(member["topics"]),
            sorted(
                (run["topic"], partition)
                for run in member["owned_partitions"]
                for partition in run["partitions"]
            ),
        )
        for member in group["members"]
    }
    return {name: group[name] for name in ("assignor", "leader_library")} | {"members": members}


if __name__ == "__main__":
    sys.exit(main())
