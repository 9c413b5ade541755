# SPDX-License-Identifier: Apache-2.0
"""Runs real Connect workers on 127.0.0.1, from the jars of tools/connect-plugin.

    with Broker() as broker, ConnectCluster(broker.bootstrap_server, workers=3) as connect:
        connect.create("files", tasks=4)
        connect.kill(connect.workers[0])

A worker ends when its standard input ends, so no worker outlives the process that started it. If
that process is killed, the directory is not removed.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tests.support.broker import SMALL_JVM, BrokerError
from tests.support.connect_rounds import OFFSETS_TOPIC, LiveRound, group_of, live_round
from tests.support.ports import free_ports
from tests.support.processes import wait_or_kill
from tests.support.waiting import FAR_S

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

LIB = Path(__file__).resolve().parent.parent.parent / "tools" / "connect-plugin" / "target" / "lib"
GROUP_ID = "connect"
SESSION_TIMEOUT_MS = 8000
"""A busy machine holds up a worker for seconds; it must not lose its place by that."""
STOP_TIMEOUT_S = 15.0
LOOK_AGAIN_S = 0.1
_JOINS = "log.org.apache.kafka.connect.runtime.distributed.WorkerCoordinator=info"
_SYNCED = re.compile(
    r"Successfully synced group in generation .*?generationId=(\d+), memberId='(.*?)'"
)

PROPERTIES = {
    "group.id": GROUP_ID,
    "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    "config.storage.topic": "connect-configs",
    "offset.storage.topic": "connect-offsets",
    "status.storage.topic": "connect-status",
    "config.storage.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "status.storage.replication.factor": "1",
    "offset.storage.partitions": "1",
    "status.storage.partitions": "1",
    "plugin.discovery": "service_load",
    "heartbeat.interval.ms": "400",
    "session.timeout.ms": str(SESSION_TIMEOUT_MS),
}


def missing_connect() -> str | None:
    """Returns what is missing and how to get it, or None if a worker can run."""
    if shutil.which("java") is None:
        return "no `java` on PATH: install a Java runtime, 17 or newer"
    if not (LIB / "kafka-rebalance-connect-plugin.jar").exists():
        return f"no jars in {LIB}: run `make judges`"
    return None


class ConnectCluster:
    """Connect workers of one group; `with` starts them and ends them.

    `workers` lists the ids of running and ended workers: `host:port` of the REST interface.
    """

    def __init__(
        self, bootstrap_server: str, *, workers: int = 3, max_delay_ms: int = 5000
    ) -> None:
        self._bootstrap_server = bootstrap_server
        self._max_delay_ms = max_delay_ms
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._log = _GroupLog(bootstrap_server)
        self.directory = Path()
        # Sorted by port, so that the ids are in order.
        self.workers = [f"127.0.0.1:{port}" for port in sorted(free_ports(workers))]

    def __enter__(self) -> Self:
        missing = missing_connect()
        if missing:
            raise BrokerError(missing)
        self.directory = Path(tempfile.mkdtemp(prefix="kafka-rebalance-connect-"))
        try:
            for worker in self.workers:
                self.start(worker)
            self.await_(lambda: all(map(_answers, self.workers)), "all workers answer")
            self.await_(self._complete, "all workers are in the group")
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends every worker (kills it if it does not end in time), and removes the directory."""
        for process in self._processes.values():
            process.terminate()
        for worker in list(self._processes):
            self._reap(worker)
        self._log.close()
        if self.directory != Path():
            shutil.rmtree(self.directory, ignore_errors=True)

    def start(self, worker: str) -> None:
        """Starts a worker (again, if it has ended); it joins when it is ready."""
        config = self.directory / f"{worker.partition(':')[2]}.properties"
        properties = {
            **PROPERTIES,
            "bootstrap.servers": self._bootstrap_server,
            "listeners": f"HTTP://{worker}",
            "scheduled.rebalance.max.delay.ms": str(self._max_delay_ms),
        }
        config.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        levels = [f"-Dorg.slf4j.simpleLogger.{one}" for one in ("defaultLogLevel=warn", _JOINS)]
        command = ["java", *SMALL_JVM, *levels, "-cp", f"{LIB}/*", "connectplugin.Worker"]
        with self._log_file(worker).open("ab") as log:
            self._processes[worker] = subprocess.Popen(
                [*command, str(config)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C must not reach the worker
            )

    def stop(self, worker: str) -> None:
        """Ends a worker normally: it leaves the group."""
        self._processes[worker].terminate()
        self._reap(worker)

    def kill(self, worker: str) -> None:
        """Kills a worker; the group rebalances when the worker's session times out."""
        self._processes[worker].kill()
        self._reap(worker)

    def create(self, connector: str, *, tasks: int) -> None:
        """Creates a connector with this number of tasks, and waits until all of them run and no
        further rebalance is due.
        """
        config = {"connector.class": "connectplugin.IdleSource", "tasks.max": str(tasks)}
        created: list[Any] = []

        def create() -> bool:
            # REST answers 409 during a rebalance, and 404 or 500 while a worker knows no leader.
            try:
                if not created:
                    created.append(self._request("PUT", f"/connectors/{connector}/config", config))
                status = self._request("GET", f"/connectors/{connector}/status")
            except urllib.error.HTTPError as error:
                error.close()
                return False
            states = [status["connector"], *status["tasks"]]
            return len(states) == 1 + tasks and {one["state"] for one in states} == {"RUNNING"}

        self.await_(create, f"connector {connector} runs")
        self.await_(self._at_rest, f"the group rests after connector {connector} was created")

    def rounds(self) -> list[LiveRound]:
        """Returns all rebalances so far, in order."""
        return self._log.read()

    def synced(self) -> set[tuple[int, str]]:
        """Returns each generation and member id of a worker that received its assignment.

        A busy worker misses one if the next rebalance begins before its SyncGroup is answered.
        """
        text = "".join(self._log_file(one).read_text(errors="replace") for one in self.workers)
        return {(int(generation), member) for generation, member in _SYNCED.findall(text)}

    def worker_of(self, member_id: str) -> str:
        """Returns the worker of a member id: `connect-<worker>-<uuid>` without a client.id."""
        return next(worker for worker in self.workers if member_id.startswith(f"connect-{worker}-"))

    def await_(self, condition: Callable[[], object], what: str, within_s: float = FAR_S) -> None:
        """Polls until the condition holds; after `within_s`, raises an error with the text
        `what`.
        """
        deadline = time.monotonic() + within_s
        while not condition():
            if time.monotonic() > deadline:
                raise BrokerError(f"not within {within_s:.0f} s: {what}\n{self._logs()}")
            for worker, process in self._processes.items():
                if process.poll() is not None:
                    raise BrokerError(f"{worker} ended ({process.returncode})\n{self._logs()}")
            time.sleep(LOOK_AGAIN_S)

    @property
    def url(self) -> str:
        """Returns the address of a running worker's REST interface."""
        return f"http://{next(iter(self._processes))}"

    def _complete(self) -> bool:
        return any(len(found.members) == len(self.workers) for found in self.rounds()[-1:])

    def _at_rest(self) -> bool:
        """Returns whether no further rebalance is due.

        A worker that reads the new tasks later than the leader joins once more, although all tasks
        run. Until it has joined, it does not list connectors: REST answers 409, or waits.
        """
        if not all(map(_answers, self._processes)):
            return False
        last = self.rounds()[-1]
        revoked = any(one.revoked_connectors or one.revoked_tasks for one in last.members)
        return not revoked and last.delay_ms == 0

    def _request(self, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.loads(response.read())

    def _reap(self, worker: str) -> None:
        process = self._processes.pop(worker)
        wait_or_kill(process, STOP_TIMEOUT_S)
        if process.stdin:
            process.stdin.close()

    def _log_file(self, worker: str) -> Path:
        return self.directory / f"{worker.partition(':')[2]}.log"

    def _logs(self, lines: int = 15) -> str:
        texts = []
        for worker in self.workers:
            text = self._log_file(worker).read_text(errors="replace")
            texts.append("\n".join([f"{worker}:", *text.splitlines()[-lines:]]))
        return "\n".join(texts)


def _answers(worker: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{worker}/connectors", timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False


class _GroupLog:
    """Reads the group's records from the offsets topic."""

    def __init__(self, bootstrap_server: str) -> None:
        self._bootstrap_server = bootstrap_server
        self._consumer: Any = None
        self._partitions: list[Any] = []
        self._rounds: list[LiveRound] = []

    def read(self) -> list[LiveRound]:
        if self._consumer is None:
            self._open()
        if self._consumer is None:
            return []
        # Reads up to the log's present end, so that a caller does not miss the newest round.
        ends = self._consumer.end_offsets(self._partitions)
        deadline = time.monotonic() + FAR_S
        while any(self._consumer.position(one) < end for one, end in ends.items()):
            for records in self._consumer.poll(timeout_ms=50).values():
                for record in records:
                    self._take(record)
            if time.monotonic() > deadline:
                raise BrokerError(f"{OFFSETS_TOPIC} cannot be read to its end")
        return list(self._rounds)

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()

    def _open(self) -> None:
        from kafka import KafkaConsumer, TopicPartition

        consumer = KafkaConsumer(
            bootstrap_servers=self._bootstrap_server,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        partitions = consumer.partitions_for_topic(OFFSETS_TOPIC)
        if not partitions:  # Kafka creates the topic with the first group
            consumer.close()
            return
        self._partitions = [TopicPartition(OFFSETS_TOPIC, one) for one in sorted(partitions)]
        consumer.assign(self._partitions)
        self._consumer = consumer

    def _take(self, record: Any) -> None:
        if record.value is None or group_of(record.key) != GROUP_ID:
            return
        found = live_round(record.value)
        # A second record of one generation is not a new round: the record was written twice.
        if found and found.generation_id not in [known.generation_id for known in self._rounds]:
            self._rounds.append(found)
