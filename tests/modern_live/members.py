# SPDX-License-Identifier: Apache-2.0
"""Runs the members: Kafka's Java consumers in one JVM, librdkafka's as threads of this process."""

from __future__ import annotations

import itertools
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from kafka.admin import ConfigResource

from kafka_rebalance.live.cluster import admin_client
from tests.support.live_members import JavaMembers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

JAVA, LIBRDKAFKA = LIBRARIES = ("java", "librdkafka")
_POLL_S = 0.05

OFTEN_MS, SELDOM_MS = 300, 10_000
LEARNT_S = 1.5
"""The time in which each member learns a new interval; its next heartbeat comes after SELDOM_MS."""


@dataclass(frozen=True)
class Client:
    """The configuration of one client. `assignor` is its classic or its remote assignor, or None.

    A topic of a librdkafka client that begins with ^ is a pattern.
    """

    name: str
    group_id: str
    library: str
    topics: tuple[str, ...]
    protocol: str = "consumer"
    assignor: str | None = None
    instance_id: str | None = None
    rack: str | None = None

    @property
    def configs(self) -> dict[str, str]:
        configs = {"group.protocol": self.protocol}
        if self.protocol == "classic":
            configs |= {"session.timeout.ms": "45000", "heartbeat.interval.ms": "300"}
        elif self.assignor:
            configs["group.remote.assignor"] = self.assignor
        return configs


class Members:
    """All clients of a run, and the cluster's admin client."""

    def __init__(self, bootstrap_server: str, directory: Path) -> None:
        self.server = bootstrap_server
        self._java = JavaMembers(bootstrap_server, directory / "java.log")
        self._threads: dict[str, Librdkafka] = {}
        self._running: dict[str, str] = {}
        self.numbers = itertools.count()

    def start(self, client: Client) -> None:
        if client.library == LIBRDKAFKA:
            self._threads[client.name] = Librdkafka(client, self.server)
        else:
            self._java.send(add=[for_java(client)], wait=False)

    def close(self, client: Client) -> None:
        """Lets the client leave; returns when it has left."""
        if client.library == LIBRDKAFKA:
            self._threads.pop(client.name).close()
        else:
            self._java.send(close=[client.name], wait=False)

    def kill(self, client: Client) -> None:
        """Ends a Java client without a leave request."""
        self._java.send(kill=[client.name], wait=False)

    def failures(self) -> dict[str, str]:
        """Returns the error of each client that has ended with one."""
        java: dict[str, str] = self._java.send(wait=False)["failures"]
        ended = {name: one.failure for name, one in self._threads.items() if one.failure}
        return java | ended

    def subscribe(self, client: Client) -> None:
        if client.library == LIBRDKAFKA:
            self._threads[client.name].subscribe(client.topics)
        else:
            self._java.send(subscribe={client.name: client.topics}, wait=False)

    def create(self, topics: dict[str, int]) -> None:
        with admin_client(self.server, None) as admin:
            admin.create_topics({t: {"num_partitions": n} for t, n in topics.items()})

    def set_heartbeats(self, kind: str, group_id: str, ms: int) -> None:
        """Sets how often the members of a group send heartbeats; they learn the interval from the
        next heartbeat.
        """
        value = {f"{kind}.heartbeat.interval.ms": str(ms), f"{kind}.session.timeout.ms": "45000"}
        with admin_client(self.server, None) as admin:
            admin.alter_configs([ConfigResource("GROUP", group_id, value)], incremental=True)

    @contextmanager
    def between_heartbeats(self, kind: str, group_id: str) -> Iterator[None]:
        """Lets a group's members send heartbeats seldom; begins with a pause without heartbeats."""
        self.set_heartbeats(kind, group_id, SELDOM_MS)
        time.sleep(LEARNT_S)
        yield
        self.set_heartbeats(kind, group_id, OFTEN_MS)

    def grow(self, topic: str, partitions: int) -> None:
        with admin_client(self.server, None) as admin:
            admin.create_partitions({topic: partitions})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for thread in self._threads.values():
            thread.close()
        self._java.close()


def for_java(client: Client) -> dict[str, Any]:
    classic = client.protocol == "classic" and client.assignor
    return {
        "name": client.name,
        "client_id": client.name,
        "group_id": client.group_id,
        "group_instance_id": client.instance_id,
        "assignors": [client.assignor] if classic else [],
        "client_rack": client.rack,
        "topics": client.topics,
        "configs": {"heartbeat.interval.ms": None, **client.configs},
    }


class Librdkafka:
    """A consumer that polls in its own thread, which alone may use it."""

    def __init__(self, client: Client, server: str) -> None:
        from confluent_kafka import Consumer

        configs: dict[str, Any] = {
            "bootstrap.servers": server,
            "group.id": client.group_id,
            "client.id": client.name,
            "auto.offset.reset": "earliest",
            **client.configs,
        }
        if client.protocol == "classic" and client.assignor:
            configs["partition.assignment.strategy"] = client.assignor
        if client.instance_id is not None:
            configs["group.instance.id"] = client.instance_id
        if client.rack is not None:
            configs["client.rack"] = client.rack
        self.failure = ""
        self._consumer = Consumer(configs)
        self._topics = client.topics
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._thread.start()

    def subscribe(self, topics: tuple[str, ...]) -> None:
        self._topics = topics

    def close(self) -> None:
        self._ended.set()
        self._thread.join(20)

    def _poll(self) -> None:
        subscribed: tuple[str, ...] = ()
        while not self._ended.is_set():
            if subscribed != self._topics:
                subscribed = self._topics
                self._consumer.subscribe(list(subscribed))
            message = self._consumer.poll(_POLL_S)
            error = None if message is None else message.error()
            if error is not None and (error.fatal() or error.code() == error._FATAL):
                self.failure = str(error)
        self._consumer.close()
