# SPDX-License-Identifier: Apache-2.0
"""Runs a coordinator behind a TCP port: connections, the clock and the log.

A connection has one request in flight, as in Kafka: the next one is read when the answer is sent.
The log is a list in memory, so an append is durable at once.

    async with Server([ServedTopic("orders", 6)]) as server:
        consumer = KafkaConsumer("orders", bootstrap_servers=server.address, …)
"""

import asyncio
import contextlib
import struct
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any, Self

from kafka_rebalance.coordinator import (
    Append,
    Appended,
    Coordinator,
    CoordinatorConfig,
    CoordinatorEvent,
    Drop,
    LogEntry,
    Received,
    Respond,
)
from kafka_rebalance.errors import WireError
from kafka_rebalance.protocol import Tick

from .frames import Asked, decoded, encoded
from .groups import fields_of, request_of
from .metadata import Cluster, ServedTopic

MOST_BYTES = 10 * 1024 * 1024
"""The longest request that is read."""
MOST_CONNECTIONS = 1000
MOST_IDLE_S = 600.0
"""How long the server waits for a whole request, as Kafka's `connections.max.idle.ms`."""

_ENDS = (
    asyncio.IncompleteReadError,
    asyncio.CancelledError,
    ConnectionError,
    TimeoutError,
    WireError,
)


class Server:
    """A broker with one coordinator; see the module. By default it listens on loopback."""

    def __init__(
        self,
        topics: Iterable[ServedTopic],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        config: CoordinatorConfig | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.cluster = Cluster(topics)
        self.coordinator = Coordinator(config, lambda: str(uuid.uuid4()))
        self.log: list[LogEntry] = []
        self._host, self._port, self._clock = host, port, clock
        self._request_ids = count(1)
        self._parked: dict[int, asyncio.Future[Any]] = {}
        self._connections: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._listening: asyncio.Server | None = None

    @property
    def address(self) -> str:
        return f"{self.cluster.host}:{self.cluster.port}"

    async def __aenter__(self) -> Self:
        self._listening = await asyncio.start_server(self._connected, self._host, self._port)
        self.cluster.host, self.cluster.port = self._listening.sockets[0].getsockname()[:2]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._listening is not None:
            self._listening.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    # Connections ----------------------------------------------------------------------------------

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._connections) >= MOST_CONNECTIONS:
            writer.close()
            return
        self._connections.add(task)
        try:
            # A client that disappears, or that sends no request, ends only its own connection.
            with contextlib.suppress(*_ENDS):
                await self._serve(reader, writer)
        finally:
            self._connections.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host = f"/{writer.get_extra_info('peername')[0]}"
        while True:
            async with asyncio.timeout(MOST_IDLE_S):
                (length,) = struct.unpack(">i", await reader.readexactly(4))
                if not 8 <= length <= MOST_BYTES:
                    raise WireError(f"a request of {length} bytes")
                frame = await reader.readexactly(length)
            asked = decoded(frame)
            fields = self.cluster.answer(asked)
            if asked.api == "fetch":
                await asyncio.sleep(asked.body.max_wait.total_seconds())
            if fields is None:
                response = await self._ask(asked, host)
                if response is None:
                    continue
                fields = fields_of(asked, response)
            writer.write(encoded(asked, fields))
            await writer.drain()

    async def _ask(self, asked: Asked, host: str) -> Any:
        request_id = next(self._request_ids)
        answer = self._parked[request_id] = asyncio.get_running_loop().create_future()
        request = request_of(asked)
        self._handle(Received(request_id, request, asked.version, asked.client_id, host))
        return await answer

    # The coordinator ------------------------------------------------------------------------------

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)

    def _handle(self, event: CoordinatorEvent) -> None:
        events = deque([event])
        while events:
            for effect in self.coordinator.handle(events.popleft(), self._now_ms()):
                match effect:
                    case Respond(request_id, response):
                        self._answer(request_id, response)
                    case Drop(request_id):
                        self._answer(request_id, None)
                    case Append():
                        events.append(self._append(effect))
        self._wake()

    def _answer(self, request_id: int, response: Any) -> None:
        answer = self._parked.pop(request_id)
        if not answer.done():
            answer.set_result(response)

    def _append(self, append: Append) -> Appended:
        first = len(self.log)
        for record in append.records:
            self.log.append(LogEntry(len(self.log), record.key, record.value))
        return Appended(append.append_id, first)

    def _wake(self) -> None:
        """Sets the timer for the next deadline."""
        if self._timer is not None:
            self._timer.cancel()
        due = self.coordinator.next_deadline_ms()
        if due is not None:
            # A deadline that is armed for the present again and again must let time pass.
            delay = max(1, due - self._now_ms()) / 1000
            self._timer = asyncio.get_running_loop().call_later(delay, self._tick)

    def _tick(self) -> None:
        self._handle(Tick())
