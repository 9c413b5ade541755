# SPDX-License-Identifier: Apache-2.0
"""The exporter's pages over HTTP.

    /metrics       all metrics, as OpenMetrics
    /healthz       200 while groups are read, else 503 with the reason
    /scale/GROUP   a number of replicas for KEDA's scaler metrics-api, as JSON (`scaling.choose`)

Anybody who reaches the port can read the pages. So no page shows the settings of the Kafka client,
which include passwords.

For an autoscaler, the lag is read from the cluster at each request. The rate of each partition is
its end offset's growth per second since an earlier request, made at least WINDOW_S ago. Until there
is such a request, the answer is the present number of replicas.
"""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client.exposition import ThreadingWSGIServer
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST

from kafka_rebalance.errors import ClusterError, GroupError, shown
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.spec import partition_or_task_counts
from kafka_rebalance.live.committed_offsets import group_lags, partition_ends
from kafka_rebalance.scaling.choice import choose

from .cluster import FollowedCluster
from .exporter import Exporter

WINDOW_S = 20.0
"""A rate is measured over at least this many seconds."""
_MOST = {"capacity": 10**9, "min": 10_000, "max": 10_000, "per_replica": 1_000}
"""The parameters of an autoscaler's request, each with its largest value."""

_REQUEST_S = 10.0
_TEXT = "text/plain; charset=utf-8"

Answer = tuple[str, str, Iterable[bytes]]
"""Status, content type, body."""


class Autoscaling:
    """Answers requests; keeps the end offsets of partitions at earlier requests, by group."""

    def __init__(self, cluster: FollowedCluster) -> None:
        self._cluster, self._lock = cluster, threading.Lock()
        self._ends: dict[str, list[tuple[float, Mapping[TopicPartition, int]]]] = {}

    def answer(self, group_id: str, parameters: Iterable[tuple[str, str]]) -> dict[str, Any]:
        """Returns the document of `choose`; while rates are unknown, the present replicas.

        Errors   KeyError for an unknown group; GroupError at a parameter's name; ClusterError.
        """
        group = self._cluster.group(group_id)
        if group is None:
            raise KeyError(group_id)
        given = _parameters(parameters)
        counts = partition_or_task_counts(group)
        every = [TopicPartition(name, p) for name, count in counts.items() for p in range(count)]
        server, configs = self._cluster.server, self._cluster.configs
        lags = group_lags(server, {group_id: every}, configs=configs)[group_id]
        rates = self._rates(group_id, partition_ends(server, every, configs=configs))
        per_replica = int(given.get("per_replica", 1))
        now = -(-len(group.members) // per_replica)
        if rates is None:
            because = f"the rates are not known yet: ask again in {WINDOW_S:.0f} s"
            return {"group_id": group_id, "replicas": now, "replicas_now": now, "because": because}
        least, most = int(given.get("min", 1)), int(given.get("max", 2 * now))
        if least > most:
            raise GroupError("min", f"{least} is more than max, {most}")
        return choose(
            group,
            range(least, most + 1),
            capacity=given["capacity"],
            rate=rates,
            lag=lags,
            per_replica=per_replica,
        )

    def _rates(
        self, group_id: str, ends: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, float] | None:
        now_s = time.monotonic()
        with self._lock:
            seen = self._ends.setdefault(group_id, [])
            while len(seen) > 1 and now_s - seen[1][0] >= WINDOW_S:
                del seen[0]
            then_s, then = seen[0] if seen else (now_s, ends)
            if not seen or now_s - seen[-1][0] >= WINDOW_S / 4:
                seen.append((now_s, ends))
        if now_s - then_s < WINDOW_S:
            return None
        return {tp: max(0, end - then.get(tp, end)) / (now_s - then_s) for tp, end in ends.items()}


def _parameters(parameters: Iterable[tuple[str, str]]) -> dict[str, float]:
    """Returns the query's parameters. Errors: GroupError with the parameter's name as its path."""
    found: dict[str, float] = {}
    for name, text in parameters:
        if name not in _MOST:
            raise GroupError("query", f"no parameter has this name; {', '.join(_MOST)} exist")
        try:
            value = float(text)
        except ValueError:
            value = 0.0
        if not 0 < value <= _MOST[name] or (name != "capacity" and value != int(value)):
            kind = "number" if name == "capacity" else "whole number"
            raise GroupError(name, f"give a {kind} above 0, at most {_MOST[name]}")
        found[name] = value
    if "capacity" not in found:
        problem = "missing: the records a second that a member reads; add ?capacity=N"
        raise GroupError("capacity", problem)
    return found


def http_server(exporter: Exporter, host: str, port: int) -> WSGIServer:
    """Returns a server that listens; its `serve_forever` answers requests. Errors: OSError."""
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
