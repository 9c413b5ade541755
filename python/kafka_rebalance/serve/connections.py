# SPDX-License-Identifier: Apache-2.0
"""Listens on a port, reads requests within bounds, and writes the answers of a handler.

A connection has one request in flight, as in Kafka. It is closed if a frame is not a request, is
too long, or does not arrive in time, or if the large frames of all connections together exceed
`large_bytes`. A new connection beyond `connections` closes an older one: one that never sent a
request, or else the one that has been idle longest. If the process may not open that many files,
`connections` is reduced: without a free file for a new connection, asyncio would write a traceback
again and again.
"""

import asyncio
import contextlib
import struct
import time
from collections.abc import Awaitable, Callable, Mapping
from itertools import count
from math import inf
from pathlib import Path
from typing import Any, NamedTuple, Self

from kafka_rebalance.errors import WireError
from kafka_rebalance.wire.messages import Response

from .faults import Broken
from .frames import APIS, Api, Asked, decoded, encoded

Answer = Mapping[str, Any] | Response | Broken | None
"""A response or its fields, perhaps `Broken`; None means no response."""
Handler = Callable[[Asked, str], Awaitable[Answer]]
"""Called with a request and the client's host; returns the answer."""


class Limits(NamedTuple):
    """The bounds of a server; times are in seconds."""

    request_bytes: int = 4 * 1024 * 1024
    large_bytes: int = 64 * 1024 * 1024
    """The largest number of bytes in incomplete frames above 64 KiB, over all connections."""
    connections: int = 500
    request_s: float = 30.0
    """The longest time until a first request; for a frame, once its length has been read; and for
    the client to read an answer.
    """
    idle_s: float = 600.0
    """The longest time between two requests: the default of Kafka's `connections.max.idle.ms`."""
    partition_bytes: int = 64 * 1024 * 1024
    """The largest number of bytes of one partition's records; the oldest batches are dropped."""
    records_bytes: int = 512 * 1024 * 1024
    """The largest number of bytes of all records; above it, the largest partitions are halved."""


SMALL = 64 * 1024
_BACKLOG = 100
_LEAST_BYTES = 8
# Errors that close a connection: the client left, was slow, or sent bytes that are not a request.
_ENDS = (
    asyncio.IncompleteReadError,
    asyncio.CancelledError,
    ConnectionError,
    TimeoutError,
    WireError,
)


def bounds(connections: int) -> tuple[int, int]:
    """Returns how many connections may be open, and how many may be accepted at a time.

    The second is asyncio's `backlog`: asyncio accepts that many before this module can close any.
    """
    try:
        import resource
    except ImportError:  # Windows has no limit of this kind
        return connections, _BACKLOG
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most == resource.RLIM_INFINITY:
        return connections, _BACKLOG
    free = max(8, most - len([*Path("/dev/fd").iterdir()]))
    at_once = min(_BACKLOG, free // 8)
    return min(connections, free - 4 * at_once), at_once


_numbers = count(1)


class _Connection:
    """A connection: its streams, and the facts that decide whether it is the first to be closed."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.host = f"/{writer.get_extra_info('peername')[0]}"
        self.port: int = writer.get_extra_info("sockname")[1]
        self.number = next(_numbers)
        self.client_id: str | None = None
        self.busy = False
        self.since = time.monotonic()
        self.until = inf
        """The time at which the connection is closed if it is still waiting."""
        self.timer: asyncio.TimerHandle

    def worth(self) -> tuple[bool, bool, float]:
        """Returns a sort key: with too many connections, the one with the least key is closed."""
        return (self.busy, self.client_id is not None, self.since)


class Connections:
    """All connections of a server, which listens on `port`; 0 means a free one."""

    def __init__(
        self, handler: Handler, host: str = "127.0.0.1", port: int = 0, limits: Limits | None = None
    ) -> None:
        self.host, self.port = host, port
        self.limits = limits or Limits()
        self.apis: Mapping[str, Api] = APIS
        """The kinds of requests that are answered; any other request closes its connection."""
        self.ended: Callable[[int], None] = lambda _: None
        """Called with the number of each connection that was closed."""
        self._handler = handler
        self._tasks: dict[asyncio.Task[None], _Connection] = {}
        self._cut_off: set[str] = set()
        self._large_bytes = 0
        self._listening: list[asyncio.Server] = []

    @property
    def address(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __len__(self) -> int:
        return len(self._tasks)

    async def __aenter__(self) -> Self:
        most, _ = bounds(self.limits.connections)
        self.limits = self.limits._replace(connections=most)
        self.host, self.port = await self.listen(self.port)
        return self

    async def listen(self, port: int = 0) -> tuple[str, int]:
        """Listens on one more port, by default a free one; returns its host and number."""
        _, at_once = bounds(self.limits.connections)
        listening = await asyncio.start_server(
            self._connected, self.host, port, limit=SMALL, backlog=at_once
        )
        for one in listening.sockets:
            with one.dup() as same:
                same.listen(_BACKLOG)
        self._listening.append(listening)
        host, port = listening.sockets[0].getsockname()[:2]
        return host, port

    async def __aexit__(self, *_: object) -> None:
        for listening in self._listening:
            listening.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut_off(self, client_id: str) -> None:
        """Closes the client's connections now, and each later one at its first request."""
        self._cut_off.add(client_id)
        for task, connection in self._tasks.items():
            if connection.client_id == client_id:
                task.cancel()

    def let_back(self, client_id: str) -> None:
        """Undoes `cut_off`: the client's requests are answered again."""
        self._cut_off.discard(client_id)

    def has_client(self, client_id: str) -> bool:
        """Returns whether the client has a connection and is not cut off (see `cut_off`)."""
        known = client_id not in self._cut_off
        return known and any(one.client_id == client_id for one in self._tasks.values())

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        while len(self._tasks) >= self.limits.connections:
            gives_way = min(self._tasks, key=lambda one: self._tasks[one].worth())
            del self._tasks[gives_way]
            gives_way.cancel()
        connection = self._tasks[task] = _Connection(reader, writer)
        self._watch(task, connection)
        try:
            with contextlib.suppress(*_ENDS):
                await self._serve(connection)
        finally:
            self._tasks.pop(task, None)
            connection.timer.cancel()
            self.ended(connection.number)
            # If the client has not read all answers, `close` would keep the rest in memory.
            writer.transport.abort() if writer.transport.get_write_buffer_size() else writer.close()

    def _watch(self, task: asyncio.Task[None], connection: _Connection) -> None:
        """Closes a connection that waits too long, or else sets a timer that calls this again."""
        now = time.monotonic()
        if now >= connection.until:
            task.cancel()
            return
        # A request can move `until` meanwhile, but only to a time after this timer's end: at least
        # `request_s` or `idle_s` later than the request.
        wait = min(connection.until - now, self.limits.request_s, self.limits.idle_s)
        loop = asyncio.get_running_loop()
        connection.timer = loop.call_later(wait, self._watch, task, connection)

    async def _serve(self, connection: _Connection) -> None:
        limits = self.limits
        while True:
            idle_s = limits.request_s if connection.client_id is None else limits.idle_s
            connection.until = time.monotonic() + idle_s
            (length,) = struct.unpack(">i", await connection.reader.readexactly(4))
            if not _LEAST_BYTES <= length <= limits.request_bytes:
                raise WireError(f"a request of {length} bytes")
            connection.until = time.monotonic() + limits.request_s
            frame = await self._frame(connection.reader, length)
            connection.until = inf
            asked = await self._aside(length, decoded, frame, self.apis)
            asked = asked._replace(port=connection.port, connection=connection.number)
            connection.client_id, connection.busy = asked.client_id, True
            if asked.client_id in self._cut_off:
                raise WireError(f"{asked.client_id} is cut off")
            answer = await self._handler(asked, connection.host)
            if isinstance(answer, Broken):
                frame = await self._aside(length, encoded, asked, answer.fields)
                await self._send(connection, frame[: answer.sent])
                connection.until = inf
                while answer.hangs and await connection.reader.read(SMALL):
                    pass
                return
            if answer is not None:
                frame = await self._aside(length, encoded, asked, answer)
                await self._send(connection, frame)
            connection.busy, connection.since = False, time.monotonic()

    async def _aside(self, length: int, work: Callable[..., Any], *given: Any) -> Any:
        """Returns the result of `work`, which runs in a thread if the request is large."""
        return work(*given) if length <= SMALL else await asyncio.to_thread(work, *given)

    async def _send(self, connection: _Connection, frame: bytes) -> None:
        connection.until = time.monotonic() + self.limits.request_s
        connection.writer.write(frame)
        await connection.writer.drain()

    async def _frame(self, reader: asyncio.StreamReader, length: int) -> bytes:
        """Reads a frame; the bytes of a large frame are counted as they arrive."""
        if length <= SMALL:
            return await reader.readexactly(length)
        frame = bytearray()
        try:
            while len(frame) < length:
                piece = await reader.read(min(SMALL, length - len(frame)))
                if not piece:
                    raise asyncio.IncompleteReadError(bytes(frame), length)
                frame += piece
                self._large_bytes += len(piece)
                if self._large_bytes > self.limits.large_bytes:
                    raise WireError("too many bytes of large requests at one time")
            return bytes(frame)
        finally:
            self._large_bytes -= len(frame)
