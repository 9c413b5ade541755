# SPDX-License-Identifier: Apache-2.0
"""Sends requests through a KafkaAdminClient.

`asked` repeats a request that a broker refuses. `ask_broker` sends requests for which kafka-python
has no classes: kafka-python calls methods of `_Request`, and of the response class in the request's
header. Errors: those of kafka-python, such as IncompatibleBrokerVersion if the broker lacks the
request.
"""

import importlib
import struct
import time
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")

RETRY_S = 10.0
"""The number of seconds for which a request is repeated."""


def asked(request: Callable[_P, _T], *args: _P.args, **named: _P.kwargs) -> _T:
    """Returns the answer to a request; repeats one that a new leader or coordinator refuses."""
    return retried(partial(request, *args, **named), _is_refused)


def retried(call: Callable[[], _T], is_retriable: Callable[[Exception], bool]) -> _T:
    """Repeats a call for at most RETRY_S, while it raises errors that `is_retriable` accepts."""
    deadline = time.monotonic() + RETRY_S
    while True:
        try:
            return call()
        except Exception as error:
            if not is_retriable(error) or time.monotonic() > deadline:
                raise
        time.sleep(0.1)


def may_pass(error: Exception) -> bool:
    """Returns whether a later attempt may succeed, for example after an election."""
    unknown = isinstance(error, importlib.import_module("kafka.errors").UnknownBrokerIdError)
    return unknown or bool(getattr(error, "retriable", False))


def _is_refused(error: Exception) -> bool:
    """Returns whether to repeat a request at once: its error may pass, and is not a timeout."""
    errors: Any = importlib.import_module("kafka.errors")
    too_late = (errors.KafkaTimeoutError, errors.RequestTimedOutError)
    return may_pass(error) and not isinstance(error, too_late)


def ask_coordinator(
    admin: Any, group_id: str, api_key: int, versions: tuple[int, int], body: bytes
) -> tuple[int, bytes]:
    """Asks the group's coordinator; returns the version and the body of its response."""
    node = admin._manager.run(admin._find_coordinator_id, group_id)
    return ask_broker(admin, node, api_key, versions, body)


def ask_broker(
    admin: Any, node: int, api_key: int, versions: tuple[int, int], body: bytes
) -> tuple[int, bytes]:
    """Returns a flexible response's version and body; `body` must fit all `versions`."""
    request = _Request(api_key, versions, body)

    async def send() -> bytes:
        answer: _Response = await admin._manager.send(request, node_id=node)
        return answer.body

    data: bytes = admin._manager.run(send)
    return request.version, data


def leave_undecoded(admin: Any) -> None:
    """Stops kafka-python from decoding members' bytes: one wrong byte would spoil the response."""
    admin._describe_groups_process_response = lambda response: {
        group.group_id: group for group in response.groups
    }


class _Response:
    def __init__(self, body: bytes) -> None:
        self.body = body

    @staticmethod
    def parse_header(buffer: Any) -> Any:
        header = importlib.import_module("kafka.protocol.api_header").ResponseHeader
        return header.decode(buffer, flexible=True)

    @staticmethod
    def decode(buffer: Any) -> "_Response":
        return _Response(bytes(buffer.read()))


class _Request:
    """A flexible request; kafka-python sets its version when it sends the request."""

    API_VERSION: int | None = None
    _min_version = _max_version = None

    def __init__(self, api_key: int, versions: tuple[int, int], body: bytes) -> None:
        self.API_KEY = api_key
        self.name = f"API key {api_key}"
        self.min_version, self.max_version = versions
        self.header: Any = None
        self._body = body
        self._client_id = ""

    @property
    def version(self) -> int:
        assert self.API_VERSION is not None
        return self.API_VERSION

    def with_header(self, correlation_id: int, client_id: str) -> None:
        # kafka-python reads the response's class from the header of a sent request.
        self.header = SimpleNamespace(
            api_key=self.API_KEY,
            api_version=self.version,
            correlation_id=correlation_id,
            get_response_class=lambda: _Response,
        )
        self._client_id = client_id

    def expect_response(self) -> bool:
        return True

    def encode(self, *, framed: bool, header: bool) -> bytes:
        assert framed
        assert header
        assert self.header
        client_id = self._client_id.encode()
        numbers = self.API_KEY, self.version, self.header.correlation_id, len(client_id)
        no_tagged_fields = b"\0"
        message = struct.pack(">hhih", *numbers) + client_id + no_tagged_fields + self._body
        return struct.pack(">i", len(message)) + message
