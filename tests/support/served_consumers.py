# SPDX-License-Identifier: Apache-2.0
"""Unmodified consumers of the Python libraries, for tests of the broker of `serve`.

Each consumer runs in its own thread, which polls until `close`.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from abc import ABC, abstractmethod
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from tests.support.long_polls import POLL_MS
from tests.support.waiting import FAR_S, until

if TYPE_CHECKING:
    from collections.abc import Callable

TOPIC = "orders"
GROUP = "billing"
POLL_S = 0.05
HEARTBEAT_MS = 300

T = TypeVar("T")


class Consumer(ABC):
    """A consumer of TOPIC in GROUP. `run` calls a function in the consumer's own thread.

    `received` is a list of all records that it got: partition, offset, value. `errors` are those
    that librdkafka returns from a poll; `close` asserts that they are `expected_errors`.
    """

    isolation = "read_uncommitted"
    expected_errors: ClassVar[list[str]] = []

    def __init__(self, address: str, client_id: str, instance_id: str | None = None) -> None:
        for library in ("kafka", "aiokafka"):
            logging.getLogger(library).setLevel(logging.CRITICAL)
        self.address, self.client_id, self.instance_id = address, client_id, instance_id
        self._got: list[tuple[int, int, str]] = []
        self.errors: list[str] = []
        self._calls: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._live, name=client_id, daemon=True)
        self._thread.start()

    def _live(self) -> None:
        self.open()
        while not self._ended.is_set():
            while not self._calls.empty():
                function, future = self._calls.get()
                try:
                    future.set_result(function())
                except Exception as error:
                    future.set_exception(error)
            self.poll()
        self.shut()

    def run(self, function: Callable[[], T]) -> T:
        future: Future[T] = Future()
        self._calls.put((function, future))
        return future.result(FAR_S)

    def close(self) -> None:
        self._ended.set()
        self._thread.join(FAR_S)
        assert not self._thread.is_alive(), self.client_id
        assert self.errors == self.expected_errors

    def commit(self, partition: int, offset: int) -> None:
        """Commits; tries again after an error, for example while the consumer rebalances."""
        deadline = time.monotonic() + FAR_S
        while True:
            try:
                return self.run(lambda: self.do_commit(partition, offset))
            except Exception:
                if time.monotonic() > deadline:
                    raise

    @property
    def received(self) -> list[tuple[int, int, str]]:
        return list(self._got)

    def committed(self, partition: int) -> int:
        """Waits until the consumer owns the partition; returns the offset that is committed."""
        until(f"{self.client_id} owns {partition}", lambda: partition in self.owned())
        return self.run(lambda: self.last_committed(partition))

    def goes_on_at(self, partition: int) -> int:
        """Waits for a record of the partition; returns the offset of the first one."""

        def offsets() -> list[int]:
            return [offset for p, offset, _ in self.received if p == partition]

        until(f"{self.client_id} reads {partition}", offsets)
        return offsets()[0]

    def owned(self) -> set[int]:
        return self.run(self.assignment)

    @abstractmethod
    def open(self) -> None: ...
    @abstractmethod
    def poll(self) -> None: ...
    @abstractmethod
    def shut(self) -> None: ...
    @abstractmethod
    def assignment(self) -> set[int]: ...
    @abstractmethod
    def do_commit(self, partition: int, offset: int) -> None: ...
    @abstractmethod
    def last_committed(self, partition: int) -> int: ...


class KafkaPython(Consumer):
    """kafka-python with its own range assignor; its polls are long (`long_polls.py`).

    So functions run in the thread that calls `run`, beside a poll.
    """

    assignor = "range"

    def run(self, function: Callable[[], T]) -> T:
        until(f"{self.client_id} is open", lambda: hasattr(self, "_consumer"))
        return function()

    def close(self) -> None:
        self._ended.set()
        self.run(self.shut)
        super().close()

    def open(self) -> None:
        import kafka
        from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
        from kafka.coordinator.assignors.range import RangePartitionAssignor

        own = {"range": RangePartitionAssignor, "cooperative-sticky": CooperativeStickyAssignor}
        self._kafka = kafka
        self._consumer = kafka.KafkaConsumer(
            TOPIC,
            bootstrap_servers=self.address,
            group_id=GROUP,
            client_id=self.client_id,
            group_instance_id=self.instance_id,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level=self.isolation,
            heartbeat_interval_ms=HEARTBEAT_MS,
            reconnect_backoff_max_ms=200,  # by default 30 s, after some failures
            partition_assignment_strategy=[own[self.assignor]],
        )

    def poll(self) -> None:
        try:
            for records in self._consumer.poll(POLL_MS).values():
                self._got += [(one.partition, one.offset, one.value.decode()) for one in records]
        except self._kafka.errors.KafkaConnectionError:
            pass  # when a connection ends; the application polls again
        except Exception:  # when it is closed meanwhile
            if not self._ended.is_set():
                raise

    def shut(self) -> None:
        self._consumer.close(autocommit=False)

    def assignment(self) -> set[int]:
        return {tp.partition for tp in self._consumer.assignment()}

    def do_commit(self, partition: int, offset: int) -> None:
        from kafka.structs import OffsetAndMetadata

        tp = self._kafka.TopicPartition(TOPIC, partition)
        self._consumer.commit({tp: OffsetAndMetadata(offset, "", -1)})

    def last_committed(self, partition: int) -> int:
        return self._consumer.committed(self._kafka.TopicPartition(TOPIC, partition)) or -1


class KafkaPythonCooperative(KafkaPython):
    assignor = "cooperative-sticky"


class Confluent(Consumer):
    """librdkafka's consumer."""

    assignor = "range"
    settings: ClassVar[dict[str, Any]] = {}

    def protocol(self) -> dict[str, Any]:
        """Returns the settings of the group protocol."""
        return {
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "partition.assignment.strategy": self.assignor,
        }

    def open(self) -> None:
        import confluent_kafka

        static = {} if self.instance_id is None else {"group.instance.id": self.instance_id}
        self._confluent = confluent_kafka
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self.address,
                "group.id": GROUP,
                "client.id": self.client_id,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": self.isolation,
                **self.protocol(),
                **static,
                **self.settings,
            }
        )
        self._consumer.subscribe([TOPIC])

    def poll(self) -> None:
        message = self._consumer.poll(POLL_S)
        if message is not None and message.error() is not None:
            self.errors.append(message.error().name())
        elif message is not None:
            self._got.append((message.partition(), message.offset(), message.value().decode()))

    def shut(self) -> None:
        self._consumer.close()

    def assignment(self) -> set[int]:
        return {tp.partition for tp in self._consumer.assignment()}

    def do_commit(self, partition: int, offset: int) -> None:
        tp = self._confluent.TopicPartition(TOPIC, partition, offset)
        (done,) = self._consumer.commit(offsets=[tp], asynchronous=False)
        assert done.error is None

    def last_committed(self, partition: int) -> int:
        tp = self._confluent.TopicPartition(TOPIC, partition)
        return int(self._consumer.committed([tp], FAR_S)[0].offset)


class ConfluentCooperative(Confluent):
    assignor = "cooperative-sticky"


class ConfluentByBroker(Confluent):
    """A member of a consumer group (KIP-848), whose broker assigns."""

    def protocol(self) -> dict[str, Any]:
        return {"group.protocol": "consumer"}


class Aiokafka(Consumer):
    """aiokafka with its own range assignor, in an event loop of its own."""

    session_ms = 10_000  # aiokafka's default

    def open(self) -> None:
        import aiokafka
        from aiokafka.coordinator.assignors.range import RangePartitionAssignor

        self._aiokafka = aiokafka
        self._loop = asyncio.new_event_loop()

        async def start() -> None:
            self._consumer = aiokafka.AIOKafkaConsumer(
                TOPIC,
                bootstrap_servers=self.address,
                group_id=GROUP,
                client_id=self.client_id,
                group_instance_id=self.instance_id,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                isolation_level=self.isolation,
                session_timeout_ms=self.session_ms,
                heartbeat_interval_ms=HEARTBEAT_MS,
                partition_assignment_strategy=(RangePartitionAssignor,),
            )
            await self._consumer.start()

        self._loop.run_until_complete(start())

    def poll(self) -> None:
        polled = self._consumer.getmany(timeout_ms=int(POLL_S * 1000))
        for records in self._loop.run_until_complete(polled).values():
            self._got += [(one.partition, one.offset, one.value.decode()) for one in records]

    def shut(self) -> None:
        self._loop.run_until_complete(self._consumer.stop())
        self._loop.close()

    def assignment(self) -> set[int]:
        return {tp.partition for tp in self._consumer.assignment()}

    def do_commit(self, partition: int, offset: int) -> None:
        tp = self._aiokafka.TopicPartition(TOPIC, partition)
        self._loop.run_until_complete(self._consumer.commit({tp: offset}))

    def last_committed(self, partition: int) -> int:
        tp = self._aiokafka.TopicPartition(TOPIC, partition)
        return self._loop.run_until_complete(self._consumer.committed(tp)) or -1


LIBRARIES: tuple[type[Consumer], ...] = (KafkaPython, Confluent, Aiokafka)
CONSUMERS: tuple[type[Consumer], ...] = (
    KafkaPython,
    KafkaPythonCooperative,
    Confluent,
    ConfluentCooperative,
    ConfluentByBroker,
    Aiokafka,
)
