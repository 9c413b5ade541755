# SPDX-License-Identifier: Apache-2.0
"""Kills a Spark driver repeatedly while it keeps a table of groups up to date.

1. Groups of Java members rebalance: members join and leave; one group is created and deleted.
2. Meanwhile the driver is started and killed with SIGKILL, at a random time: the first, third, …
   time after it has replaced the pointer (`current.json`), the other times after its start.
3. At the end, a driver reads the remaining records. Its table must equal that of a batch job.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql.functions import broadcast

from kafka_rebalance.live.topic_log import open_log
from kafka_rebalance.spark import kept_records, read_consumer_offsets
from kafka_rebalance.spark.consumer_offsets import COMMIT_KEYS, GROUP_KEYS, last_records
from kafka_rebalance.wire.group_records import GroupMetadataValue, decode_key, decode_value
from tests.support.broker import Broker
from tests.support.live_members import JavaMembers

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from kafka_rebalance.live.topic_log import TopicLog

GROUPS = 8
ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
COLUMNS = ("partition", "offset", "key", "value")
START_TIMEOUT_S = 600.0

Row = tuple[Any, ...]


@dataclass
class Outcome:
    """The counts of a run, and the rows that only the kept table or only the batch job contains."""

    rebalances: int = 0
    records: int = 0
    kills: list[str] = field(default_factory=list)
    tables: int = 0
    kept: int = 0
    only_kept: set[Row] = field(default_factory=set)
    only_batch: set[Row] = field(default_factory=set)

    def __str__(self) -> str:
        kills = "".join(f"\n  killed {one}" for one in self.kills)
        return (
            f"{self.rebalances} rebalances, {self.records} records; {len(self.kills)} kills:{kills}"
            f"\n  tables written: {self.tables}; rows of the last one: {self.kept}"
            f"\n  rows only in the table: {len(self.only_kept)}, "
            f"only in the batch run: {len(self.only_batch)}"
        )


def run(
    start_session: Callable[[], SparkSession],
    directory: Path,
    *,
    rebalances: int,
    kills: int,
    seed: int,
) -> Outcome:
    """Runs a broker, its members and the drivers; then compares in a Spark session."""
    outcome = Outcome()
    path = directory / "groups"
    with Broker() as broker:
        server = broker.bootstrap_server
        _rebalance_and_kill(server, directory, path, rebalances, kills, seed, outcome)
        end = {n: bounds.last_stable for n, bounds in _log(server).bounds().items()}
        with _driver(server, path, "--once") as last:
            if last.wait(START_TIMEOUT_S):
                raise RuntimeError(f"the last driver ended with {last.returncode}")
        _compare(start_session(), server, path, end, outcome)
    return outcome


def _rebalance_and_kill(
    server: str,
    directory: Path,
    path: Path,
    rebalances: int,
    kills: int,
    seed: int,
    outcome: Outcome,
) -> None:
    """Rebalances groups and kills drivers, until there are enough of both; ends the members."""
    killer = _Killer(server, path, kills, seed, outcome)
    _create_topic(server)
    with JavaMembers(server, directory / "java-members.log") as members:
        try:
            _rebalance(server, members, 1, killer.start)
            made = 2
            while (outcome.rebalances < rebalances or killer.is_alive()) and killer.failure is None:
                _rebalance(server, members, made)
                made += 1
                outcome.rebalances, outcome.records = _generations(server)
            killer.join()
        finally:
            killer.stop()  # a Spark driver has its own process session, so it would survive
    if killer.failure is not None:
        raise killer.failure


def _rebalance(
    server: str, members: JavaMembers, made: int, meanwhile: Callable[[], None] | None = None
) -> None:
    """If `made` is odd, a member joins each group; else (from 4 on) the oldest member leaves."""
    if made % 2:
        members.tell(
            add=[_member(f"g{n}", made, ASSIGNORS[n % len(ASSIGNORS)]) for n in range(GROUPS)]
        )
    elif made > 2:
        members.tell(close=[f"g{n}-{made - 3}" for n in range(GROUPS)])
    if made % 5 == 0:  # the group "gone" is created and deleted
        members.tell(add=[_member("gone", made, "range")])
        members.tell(close=[f"gone-{made}"])
        _delete_group(server, "gone")
    if meanwhile is not None:
        meanwhile()


def _member(group_id: str, made: int, assignor: str) -> dict[str, Any]:
    configs = {"enable.auto.commit": "true", "auto.commit.interval.ms": "2000"}
    return {
        "group_id": group_id,
        "client_id": f"{group_id}-{made}",
        "assignors": [assignor],
        "topics": ["t"],
        "configs": configs,
    }


def _create_topic(server: str) -> None:
    from kafka import KafkaAdminClient

    with KafkaAdminClient(bootstrap_servers=server) as admin:
        topic = {"num_partitions": 12, "replication_factor": 1}
        admin.create_topics({"t": topic}, wait_for_metadata=True)


def _delete_group(server: str, group_id: str) -> None:
    from kafka import KafkaAdminClient

    with KafkaAdminClient(bootstrap_servers=server) as admin:
        admin.delete_groups([group_id])


def _generations(server: str) -> tuple[int, int]:
    """Returns the numbers of generations with members, and of records."""
    log = _log(server)
    seen, records = set(), 0
    for partition, bounds in log.bounds().items():
        for batch in log.records(partition, bounds.earliest, bounds.last_stable):
            records += batch.num_rows
            columns = (batch["key"].to_pylist(), batch["value"].to_pylist())
            for key, data in zip(*columns, strict=True):
                value = decode_value(decode_key(key), data)
                if isinstance(value, GroupMetadataValue) and value.members:
                    seen.add((key, value.generation_id, value.current_state_timestamp_ms))
    return len(seen), records


def _log(server: str) -> TopicLog:
    return open_log({"bootstrap.servers": server}, "__consumer_offsets")


class _Killer(threading.Thread):
    """Starts Spark drivers and kills them, one after another."""

    def __init__(self, server: str, path: Path, kills: int, seed: int, outcome: Outcome) -> None:
        super().__init__(daemon=True)
        self._server, self._path, self._kills = server, path, kills
        self._rng = random.Random(seed)
        self._outcome = outcome
        self.failure: Exception | None = None
        self._driver: _driver | None = None
        self._first_table_s = 0.0

    def stop(self) -> None:
        """Kills the running Spark driver; the thread starts no more drivers."""
        self._kills = 0
        if self._driver is not None:
            self._driver.kill()

    def run(self) -> None:
        try:
            while (made := len(self._outcome.kills)) < self._kills:
                self._kill(after_pointer=made % 2 == 0)
        except Exception as failure:
            self.failure = failure

    def _kill(self, *, after_pointer: bool) -> None:
        begun = time.monotonic()
        self._driver = _driver(self._server, self._path)
        with self._driver as driver:
            if after_pointer:
                before = _version(self._path)
                while _version(self._path) == before:
                    if driver.poll() is not None:
                        raise RuntimeError(f"the driver ended with {driver.returncode}")
                    if time.monotonic() > begun + START_TIMEOUT_S:
                        raise TimeoutError("the driver replaces no pointer")
                    time.sleep(0.01)
                self._first_table_s = time.monotonic() - begun
                time.sleep(self._rng.choice((0.0, self._rng.uniform(0, 6))))
            else:
                time.sleep(self._first_table_s * self._rng.uniform(0.1, 1.5))
        self._outcome.kills.append(
            f"{time.monotonic() - begun:.1f} s after its start, table {_version(self._path)}"
        )


class _driver:  # noqa: N801 -- used like a function
    """A Spark driver; at the end of the `with` block, all its processes are killed."""

    def __init__(self, server: str, path: Path, *options: str) -> None:
        self._command = [sys.executable, "-m", "tests.kills.driver", server, str(path), *options]
        self._log = path.with_name("driver.log")

    def __enter__(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdout=log, stderr=log, start_new_session=True
            )
        return self._process

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def _version(path: Path) -> int:
    try:
        version: int = _pointer(path)["version"]
    except FileNotFoundError:
        return 0
    return version


def _pointer(path: Path) -> dict[str, Any]:
    pointer: dict[str, Any] = json.loads((path / "current.json").read_text(encoding="utf-8"))
    return pointer


def _compare(
    spark: SparkSession, server: str, path: Path, end: dict[int, int], outcome: Outcome
) -> None:
    """Compares the table with a batch job over the records that the table has read.

    The table must have read all records before the offsets in `end`. It may have read later
    records, because a member that has not left may time out later.
    """
    held = {int(n): offset for n, offset in _pointer(path)["next"].items()}
    behind = {n for n, offset in end.items() if offset > held.get(n, 0)}
    if behind:
        raise AssertionError(f"the table has not read the partitions {sorted(behind)} to their end")
    read = spark.createDataFrame(list(held.items()), "partition int, next long")
    records = read_consumer_offsets(spark, bootstrap_servers=server)
    records = records.join(broadcast(read), "partition").where("offset < next")
    batch = last_records(records, (*GROUP_KEYS, *COMMIT_KEYS), [])
    kept, expected = _rows(kept_records(spark, str(path))), _rows(batch)
    outcome.tables, outcome.kept = _version(path), len(kept)
    outcome.only_kept, outcome.only_batch = set(kept) - set(expected), set(expected) - set(kept)
    if len(set(kept)) < len(kept):
        raise AssertionError("a row is there twice")


def _rows(frame: DataFrame) -> list[Row]:
    return [
        tuple(bytes(value) if isinstance(value, bytearray) else value for value in row)
        for row in frame.select(*COLUMNS).collect()
    ]
