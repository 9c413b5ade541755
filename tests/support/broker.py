# SPDX-License-Identifier: Apache-2.0
"""Runs a real Apache Kafka in a temporary directory, on 127.0.0.1, from the jars of tools/broker.

    with Broker() as broker:                    # one node, which is controller and broker
        use(broker.bootstrap_server)
    with Broker(brokers=3) as broker:           # three brokers, in racks a, b and c
        use(broker.bootstrap_server)

`python -m tests.support.broker` starts a broker in a terminal. A node ends when its standard input
ends, so no node outlives the process that started it. If that process is killed, the directory is
not removed.
"""

from __future__ import annotations

import argparse
import base64
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tests.support.ports import free_ports
from tests.support.processes import wait_or_kill
from tests.support.waiting import FAR_S

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

LIB = Path(__file__).resolve().parent.parent.parent / "tools" / "broker" / "target" / "lib"
BALANCED = LIB.parent.parent.parent / "balanced-assignor" / "target"
"""The directory of the jar with `balanced` as a plug-in of the brokers."""

LIB_STREAMS = LIB.parent / "lib-streams"
"""Kafka Streams with the clients of its version: the first jars of a JVM with an application."""

LIB_CONFIGS = LIB.parent / "lib-configs"
"""The class of `kafka-configs.sh`, which Maven Central has in no newer version."""

STOP_TIMEOUT_S = 15.0
LOG_TIMES = ("showDateTime=true", "dateTimeFormat=yyyy-MM-dd HH:mm:ss,SSS")
SMALL_JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")

PROPERTIES = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "100",
    "group.min.session.timeout.ms": "1000",
    "auto.create.topics.enable": "false",
    "controlled.shutdown.enable": "false",
    "log.cleaner.dedupe.buffer.size": "4194304",
    "log.index.size.max.bytes": "65536",
    "num.network.threads": "2",
    "num.io.threads": "4",
}


class BrokerError(RuntimeError):
    """A broker or worker failed, or was too slow; the message states the problem."""


def java(
    main: str,
    *arguments: str,
    log: str = "warn",
    loggers: Sequence[str] = (),
    first: Sequence[Path] = (),
) -> list[str]:
    """Returns the command line of a Java class in tools/broker; `log` is the log level.

    The lines of `loggers` are written from INFO on; then each line shows its time. The classes in
    the jars of the directories `first` replace classes of equal names.

    Errors: `BrokerError` if Java or the jars are missing.
    """
    missing = missing_tools()
    if missing:
        raise BrokerError(missing)
    settings = [f"defaultLogLevel={log}", *(f"log.{name}=info" for name in loggers)]
    settings += LOG_TIMES if loggers else ()
    levels = [f"-Dorg.slf4j.simpleLogger.{setting}" for setting in settings]
    path = ":".join(f"{directory}/*" for directory in (*first, LIB))
    return ["java", *SMALL_JVM, *levels, "-cp", path, main, *arguments]


def missing_tools() -> str | None:
    """Returns what is missing and how to get it, or None if a broker can run."""
    if shutil.which("java") is None:
        return "no `java` on PATH: install a Java runtime, 17 or newer"
    if not (LIB / "kafka-rebalance-broker.jar").exists():
        return f"no jars in {LIB}: run `make judges`"
    return None


class Broker:
    """A Kafka cluster of one or more nodes; `with` starts it and removes it at the end.

    `properties` are added to the configuration of every node. `listeners` are further listeners of
    node 0, each with its security protocol. `bootstrap_server` is the plaintext address for
    clients; `addresses` lists those of `listeners`. A node's log contains warnings, and the lines
    of `loggers` from INFO on. `directory` contains node-N/ with configuration, data and log. The
    jars in the directories `first` are on the class path, too.
    """

    def __init__(
        self,
        *,
        brokers: int = 1,
        properties: Mapping[str, str] | None = None,
        listeners: Mapping[str, str] | None = None,
        loggers: Sequence[str] = (),
        first: Sequence[Path] = (),
    ) -> None:
        if not 1 <= brokers <= 26:
            raise ValueError(f"brokers: {brokers} is not in 1..26")
        self.brokers = brokers
        self.properties = dict(properties or {})
        self.listeners = dict(listeners or {})
        self.loggers = tuple(loggers)
        self.first = tuple(first)
        self.bootstrap_server = ""
        self.addresses: dict[str, str] = {}
        self.directory = Path()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._cluster = ""

    def __enter__(self) -> Self:
        java("kafka.Kafka")  # raises if Java is missing, before a directory is made
        self.directory = Path(tempfile.mkdtemp(prefix="kafka-rebalance-broker-"))
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends every node (kills it if it does not end in time), and removes the directory."""
        for process in self._processes:
            process.terminate()
        deadline = time.monotonic() + STOP_TIMEOUT_S
        for process in self._processes:
            wait_or_kill(process, max(0.0, deadline - time.monotonic()))
            if process.stdin:
                process.stdin.close()
        self._processes.clear()
        if self.directory != Path():
            shutil.rmtree(self.directory, ignore_errors=True)

    def kill(self, node: int) -> None:
        """Kills a node; node 0 is the controller, so the cluster does not go on without it."""
        self._processes[node].kill()
        self._processes[node].wait()

    def _start(self) -> None:
        controller, *ports = free_ports(1 + self.brokers + len(self.listeners))
        ports, more = ports[: self.brokers], ports[self.brokers :]
        self.addresses = {
            name: f"127.0.0.1:{port}" for name, port in zip(self.listeners, more, strict=True)
        }
        for node, port in enumerate(ports):
            self._configure(node, port, controller)
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").lstrip("-")
        self._cluster = cluster.ljust(22, "A")
        self._processes += map(self._run, range(self.brokers))
        self.bootstrap_server = f"127.0.0.1:{ports[0]}"
        self._wait_until_ready(ports)

    def restart(self, properties: Mapping[str, str], first: Sequence[Path] = ()) -> None:
        """Stops the only node and starts it again, with other properties and jars.

        The groups and topics stay. Errors: `BrokerError` if the node does not start.
        """
        self._processes[0].terminate()
        wait_or_kill(self._processes[0], STOP_TIMEOUT_S)
        port = int(self.bootstrap_server.rpartition(":")[2])
        lines = self._config(0).read_text().splitlines()
        kept = [line for line in lines if line.partition("=")[0] not in self.properties]
        more = [f"{key}={value}" for key, value in properties.items()]
        self._config(0).write_text("".join(f"{line}\n" for line in (*kept, *more)))
        self.properties, self.first = dict(properties), tuple(first)
        self._processes[0] = self._run(0)
        self._wait_until_ready([port])

    def _run(self, node: int) -> subprocess.Popen[bytes]:
        voter = "--standalone" if node == 0 else "--no-initial-controllers"
        options = (str(self._config(node)), self._cluster, voter)
        with (self.directory / f"node-{node}" / "log").open("ab") as log:
            return subprocess.Popen(
                java("kafkarebalance.Node", *options, loggers=self.loggers, first=self.first),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C must not reach the node
            )

    def _config(self, node: int) -> Path:
        return self.directory / f"node-{node}" / "server.properties"

    def _configure(self, node: int, port: int, controller: int) -> None:
        protocols = {"PLAINTEXT": "PLAINTEXT"} | (self.listeners if node == 0 else {})
        listeners = ",".join(
            f"{name}://{self.addresses.get(name, f'127.0.0.1:{port}')}" for name in protocols
        )
        advertised = listeners
        if node == 0:
            listeners += f",CONTROLLER://127.0.0.1:{controller}"
        protocols["CONTROLLER"] = "PLAINTEXT"
        config = self._config(node)
        config.parent.mkdir()
        properties = {
            **PROPERTIES,
            "node.id": str(node),
            "process.roles": "broker,controller" if node == 0 else "broker",
            "listeners": listeners,
            "advertised.listeners": advertised,
            "listener.security.protocol.map": ",".join(
                f"{name}:{protocol}" for name, protocol in protocols.items()
            ),
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
            "log.dirs": str(config.parent / "data"),
        }
        if self.brokers > 1:
            properties["broker.rack"] = chr(ord("a") + node)
        properties.update(self.properties)
        config.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))

    def _wait_until_ready(self, ports: list[int]) -> None:
        """Waits until an admin request lists every broker; an open port is not enough."""
        from kafka import KafkaAdminClient
        from kafka.errors import KafkaError

        deadline = time.monotonic() + FAR_S
        while time.monotonic() < deadline:
            for node, process in enumerate(self._processes):
                if process.poll() is not None:
                    raise BrokerError(
                        f"node {node} ended ({process.returncode}):\n{self.log(node)}"
                    )
            if all(map(_answers, ports)):
                try:
                    with KafkaAdminClient(
                        bootstrap_servers=self.bootstrap_server, bootstrap_timeout_ms=5000
                    ) as admin:
                        if len(admin.describe_cluster()["brokers"]) == self.brokers:
                            return
                except KafkaError:
                    pass
            time.sleep(0.1)
        raise BrokerError(f"not ready after {FAR_S:.0f} s:\n{self.log(0)}")

    def log(self, node: int, lines: int = 30) -> str:
        """Returns the last lines of a node's log."""
        text = (self.directory / f"node-{node}" / "log").read_text(errors="replace")
        return "\n".join(text.splitlines()[-lines:])


def _answers(port: int) -> bool:
    with socket.socket() as one:
        one.settimeout(1)
        return one.connect_ex(("127.0.0.1", port)) == 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Starts Apache Kafka until Ctrl-C.")
    parser.add_argument("--brokers", type=int, default=1, help="nodes, in racks a, b, c, ...")
    arguments = parser.parse_args()
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    try:
        with Broker(brokers=arguments.brokers) as broker:
            print(broker.bootstrap_server, flush=True)
            print("Ctrl-C stops it.", file=sys.stderr, flush=True)
            ended.wait()
    except BrokerError as error:
        print(f"broker: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
