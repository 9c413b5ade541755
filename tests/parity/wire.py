# SPDX-License-Identifier: Apache-2.0
"""Sends Kafka's requests over a socket; the library kio encodes and decodes the messages.

    with Connection("127.0.0.1", 9092, client_id="c") as broker:
        answer = broker.ask("heartbeat", 4, group_id="g", member_id="m", generation_id=1)

kio has a dataclass for every version of every message, generated from Kafka's own schemas. `ask`
fills the fields by name (nested messages from mappings), and leaves out fields that do not exist in
a version. Times are in milliseconds, as in Kafka's schemas.
"""

from __future__ import annotations

import io
import select
import socket
import struct
import time
import typing
from functools import cache
from typing import Any, Self

from kio.index import load_entity_schema
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from kafka_rebalance.serve.frames import filled

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ANSWER_TIMEOUT_S = 15.0
LONGEST_ANSWER = 100 * 1024 * 1024


class WireError(RuntimeError):
    """The broker did not answer, reported an error, or its answer was not Kafka's protocol."""


def message(api: str, version: int, **fields: Any) -> Any:
    """Builds a request, e.g. message("join_group", 9, group_id="g", protocols=[...], ...)."""
    return filled(load_entity_schema(api, version, EntityType.request), fields)


@cache
def _writer(schema: Any) -> Callable[[io.BytesIO, Any], None]:
    return typing.cast("Callable[[io.BytesIO, Any], None]", entity_writer(schema))


@cache
def _reader(schema: Any) -> Callable[[bytes, int], tuple[Any, int]]:
    return typing.cast("Callable[[bytes, int], tuple[Any, int]]", entity_reader(schema))


def encoded(request: Any, correlation_id: int, client_id: str) -> bytes:
    """Encodes a frame: length, header, body."""
    header = filled(
        request.__header_schema__,
        {
            "request_api_key": request.__api_key__,
            "request_api_version": request.__version__,
            "correlation_id": correlation_id,
            "client_id": client_id,
        },
    )
    buffer = io.BytesIO()
    for part in (header, request):
        schema: Any = type(part)
        _writer(schema)(buffer, part)
    body = buffer.getvalue()
    return struct.pack(">i", len(body)) + body


def decoded(api: str, version: int, frame: bytes, correlation_id: int) -> Any:
    """Decodes the response in a frame without its length; raises if bytes are left over."""
    schema: Any = load_entity_schema(api, version, EntityType.response)
    header, size = _reader(schema.__header_schema__)(frame, 0)
    if header.correlation_id != correlation_id:
        raise WireError(f"correlation id {header.correlation_id}, not {correlation_id}")
    response, read = _reader(schema)(frame, size)
    if size + read != len(frame):
        raise WireError(f"{len(frame) - size - read} bytes after a {schema.__name__}")
    return response


class Connection:
    """One TCP connection with at most one request in flight.

    Kafka answers in order, so a second request would wait behind a parked one.

    `ask` sends and waits. `send` only sends; then `waiting` is true until `receive` returns the
    answer.
    """

    def __init__(self, host: str, port: int, client_id: str) -> None:
        self.address = (host, port)
        self.client_id = client_id
        self._socket = socket.create_connection((host, port), timeout=ANSWER_TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_id = 0
        self._sent: tuple[str, int] | None = None
        self._buffer = bytearray()

    @property
    def waiting(self) -> bool:
        return self._sent is not None

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, api: str, version: int, **fields: Any) -> None:
        if self._sent:
            raise WireError(f"{api}: a {self._sent[0]} is still unanswered here")
        self._correlation_id += 1
        request = message(api, version, **fields)
        self._socket.sendall(encoded(request, self._correlation_id, self.client_id))
        self._sent = (api, version)

    def receive(self) -> Any | None:
        """Waits for bytes and reads them; returns the answer if it is complete, else None."""
        if self._sent is None:
            raise WireError("nothing was asked")
        chunk = self._socket.recv(65536)
        if not chunk:
            raise WireError(f"the broker closed the connection instead of answering {self._sent}")
        self._buffer += chunk
        if len(self._buffer) < 4:
            return None
        (length,) = struct.unpack_from(">i", self._buffer)
        if not 0 <= length <= LONGEST_ANSWER:
            raise WireError(f"an answer of {length} bytes")
        if len(self._buffer) < 4 + length:
            return None
        frame = bytes(self._buffer[4 : 4 + length])
        del self._buffer[: 4 + length]
        (api, version), self._sent = self._sent, None
        return decoded(api, version, frame, self._correlation_id)

    def ask(self, api: str, version: int, **fields: Any) -> Any:
        self.send(api, version, **fields)
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        while time.monotonic() < deadline:
            if readable([self], deadline - time.monotonic()):
                answer = self.receive()
                if answer is not None:
                    return answer
        raise WireError(f"{api} was not answered in {ANSWER_TIMEOUT_S:.0f} s")

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def readable(connections: Sequence[Connection], timeout_s: float) -> list[Connection]:
    """Waits up to `timeout_s`; returns the connections that have bytes to read."""
    return select.select(connections, [], [], max(0.0, timeout_s))[0]
