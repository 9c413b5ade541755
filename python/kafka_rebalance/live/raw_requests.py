# SPDX-License-Identifier: Apache-2.0
"""Sends requests for which kafka-python has no classes, through a KafkaAdminClient.

kafka-python calls methods of `_Request`, and of the response class in the request's header. Errors:
those of kafka-python, such as IncompatibleBrokerVersion if the broker does not support the request.
"""

import importlib
import struct
from types import SimpleNamespace
from typing import Any


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
    """The body of a response."""

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
