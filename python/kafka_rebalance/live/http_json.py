# SPDX-License-Identifier: Apache-2.0
"""Requests JSON from an HTTP server; an error is one line with the reason.

One deadline covers a whole answer with its redirects: Python's own time limits apply to each read.
"""

import http.client
import io
import json
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from kafka_rebalance.errors import ClusterError

from .tls import tls_problem

MAX_BYTES = 32 << 20
"""The largest number of bytes in an answer."""


def fetch_json(
    request: urllib.request.Request,
    server: str,
    path: str = "",
    *,
    timeout_s: float,
    context: ssl.SSLContext | None = None,
    hints: Mapping[int, str] | None = None,
) -> Any:
    """Returns the parsed answer to a request. `hints` maps a status code to advice.

    Errors: ClusterError. Its text names the request only by `server` and `path`.
    """
    asked = f"{server}: {path}" if path else server
    ends_s = time.monotonic() + timeout_s
    opener = urllib.request.build_opener(_Http(ends_s), _Https(ends_s, context))
    try:
        with opener.open(request, timeout=timeout_s) as response:
            body = response.read(MAX_BYTES + 1)
            if len(body) > MAX_BYTES:
                raise ClusterError(f"{asked}: the answer has more than {MAX_BYTES >> 20} MiB")
            return json.loads(body)
    except urllib.error.HTTPError as error:
        with error:
            hint = (hints or {}).get(error.code, error.reason)
            raise ClusterError(f"{asked}: HTTP {error.code}, {hint}") from None
    except (OSError, http.client.HTTPException) as error:  # the answer ends early, or is not HTTP
        problem = _problem(error, timeout_s)
        raise ClusterError(f"{server}: not reached: {problem}") from None
    except RecursionError:
        raise ClusterError(f"{asked}: the answer is nested too deeply") from None
    except ValueError as error:
        raise ClusterError(f"{asked}: the answer is not JSON: {error}") from None


def _problem(error: Exception, timeout_s: float) -> str:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, ssl.SSLError):
        return tls_problem(reason)
    if isinstance(reason, TimeoutError):
        return f"no whole answer within {timeout_s:g} s"
    if isinstance(reason, http.client.BadStatusLine) and not isinstance(reason, OSError):
        return "the answer is not HTTP"
    return str(reason) or type(reason).__name__


class _Http(urllib.request.HTTPHandler):
    """Opens connections whose reads time out at `ends_s`, in seconds of the monotonic clock."""

    def __init__(self, ends_s: float) -> None:
        super().__init__()
        self._ends_s = ends_s

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        req.timeout = _left_s(self._ends_s)
        return self.do_open(_timed(http.client.HTTPConnection, self._ends_s), req)


class _Https(urllib.request.HTTPSHandler):
    """Opens connections for https, as `_Http` does for http."""

    def __init__(self, ends_s: float, context: ssl.SSLContext | None) -> None:
        super().__init__(context=context)
        self._ends_s, self._tls = ends_s, context

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        req.timeout = _left_s(self._ends_s)
        connection = _timed(http.client.HTTPSConnection, self._ends_s)
        return self.do_open(connection, req, context=self._tls)


def _timed(kind: type[http.client.HTTPConnection], ends_s: float) -> Callable[..., Any]:
    def connection(host: str, **named: Any) -> http.client.HTTPConnection:
        made = kind(host, **named)
        made.response_class = partial(_Response, ends_s)  # type: ignore[assignment]
        return made

    return connection


class _Response(http.client.HTTPResponse):
    def __init__(self, ends_s: float, sock: socket.socket, *args: Any, **named: Any) -> None:
        super().__init__(sock, *args, **named)
        self.fp = io.BufferedReader(_TimedReads(self.fp.detach(), sock, ends_s))


class _TimedReads(io.RawIOBase):
    """Reads the bytes of a socket; after `ends_s`, raises TimeoutError."""

    def __init__(self, raw: Any, sock: socket.socket, ends_s: float) -> None:
        self._raw, self._sock, self._ends_s = raw, sock, ends_s

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(_left_s(self._ends_s))
        count: int | None = self._raw.readinto(buffer)
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


def _left_s(ends_s: float) -> float:
    left_s = ends_s - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s
