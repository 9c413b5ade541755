# SPDX-License-Identifier: Apache-2.0
"""The exporter's pages over HTTP.

    /metrics       all metrics, as OpenMetrics
    /healthz       200 while groups are read, else 503 with the reason
    /scale/GROUP   a number of replicas for KEDA's scaler metrics-api, as JSON (`scaling.choose`)

Anybody who reaches the port can read the pages. So no page shows the settings of the Kafka client,
which include passwords.
"""

import json
import socket
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import parse_qsl
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client.exposition import ThreadingWSGIServer
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST

from kafka_rebalance.errors import ClusterError, GroupError, shown

from .autoscaling import Autoscaling
from .exporter import Exporter

_REQUEST_S = 10.0
_TEXT = "text/plain; charset=utf-8"

Answer = tuple[str, str, Iterable[bytes]]
"""Status, content type, body."""


def http_server(exporter: Exporter, host: str, port: int) -> WSGIServer:
    """Returns a server that listens; `serve_forever` answers. Errors: OSError."""
    scaling = Autoscaling(exporter.followed)

    def app(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        status, kind, body = _answer(environ, exporter, scaling)
        start(status, [("Content-Type", kind)])
        return () if environ["REQUEST_METHOD"] == "HEAD" else body

    kind = _Server6 if ":" in host else _Server
    return make_server(host, port, app, kind, _Handler)


def _answer(environ: dict[str, Any], exporter: Exporter, scaling: Autoscaling) -> Answer:
    path = environ["PATH_INFO"].encode("latin-1").decode("utf-8", "replace")
    if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
        return "405 Method Not Allowed", _TEXT, [b"only GET\n"]
    if path == "/metrics":
        return "200 OK", CONTENT_TYPE_LATEST, exporter.page()
    if path == "/healthz":
        problem = exporter.health()
        status = "503 Service Unavailable" if problem else "200 OK"
        return status, _TEXT, [f"{problem or 'ok'}\n".encode()]
    if path.startswith("/scale/"):
        return _scale(path.removeprefix("/scale/"), environ.get("QUERY_STRING", ""), scaling)
    pages = "/metrics, /healthz, /scale/GROUP?capacity=N"
    return "404 Not Found", _TEXT, [f"there is no such page; there are {pages}\n".encode()]


def _scale(group_id: str, query: str, scaling: Autoscaling) -> Answer:
    status = "200 OK"
    try:
        document = scaling.answer(group_id, parse_qsl(query, keep_blank_values=True))
    except KeyError:
        document = {"error": f"no group {shown(group_id)} with members is known"}
        status = "404 Not Found"
    except GroupError as error:
        document, status = {"error": str(error)}, "400 Bad Request"
    except ClusterError:  # not shown: its text names the cluster's addresses
        document = {"error": "the cluster does not answer; see the exporter's standard error"}
        status = "503 Service Unavailable"
    return status, "application/json", [json.dumps(document).encode() + b"\n"]


class _Server(ThreadingWSGIServer):
    request_queue_size = 32


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Handler(WSGIRequestHandler):
    timeout = _REQUEST_S

    def log_message(self, *_: object) -> None:
        """Does nothing: requests are not logged."""
