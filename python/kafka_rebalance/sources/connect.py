"""A live Connect cluster through its REST interface: what runs where, and what is configured.

Reads only. A worker that runs nothing is not to be seen there: REST tells where connectors and
tasks run, and nothing of the workers themselves. Workers are named as REST names them, `host:port`;
their member ids, which break ties, are not told.

Source   GET /connectors?expand=status&expand=info (Connect 2.3 and newer).
"""

import base64
import json
from collections.abc import Mapping
from typing import Any
from urllib.error import URLError
from urllib.parse import quote, unquote, urlsplit, urlunsplit
from urllib.request import Request, urlopen

from kafka_rebalance.errors import GroupError, KafkaRebalanceError
from kafka_rebalance.fields import each, integer, object_, path, required, string

TIMEOUT_S = 10.0
_NOWHERE = ("UNASSIGNED", "DESTROYED")


class ConnectError(KafkaRebalanceError):
    """The cluster cannot be read, or what answers is not Connect."""


def read_cluster(url: str) -> dict[str, Any]:
    """What round one of a script needs: `{"workers": [...], "config": {connector: tasks}}`.

    `url` is that of any worker, as `http://host:8083`; `http://user:password@host` for basic
    authentication. Workers are sorted by name. A connector or task that is UNASSIGNED runs nowhere;
    one that FAILED or is PAUSED is still its worker's.

    Raises ConnectError.
    """
    answer = _get(url)
    try:
        return _cluster(object_(answer, "answer"))
    except GroupError as error:
        raise ConnectError(f"{url}: not the answer of a Connect worker: {error}") from error


def _get(url: str) -> Any:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConnectError(f"{url} is not http://host:port or https://host:port")
    host = parts.netloc.rpartition("@")[2]
    target = urlunsplit(
        (
            parts.scheme,
            host,
            parts.path.rstrip("/") + "/connectors",
            "expand=status&expand=info",
            "",
        )
    )
    request = Request(quote(target, safe=":/?&=%[]"), headers={"Accept": "application/json"})
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        request.add_header("Authorization", f"Basic {base64.b64encode(login).decode()}")
    try:
        with urlopen(request, timeout=TIMEOUT_S) as response:
            return json.load(response)
    except (URLError, TimeoutError, ValueError, OSError) as error:
        raise ConnectError(f"{url}: {error}") from error


def _cluster(connectors: Mapping[str, Any]) -> dict[str, Any]:
    workers: dict[str, dict[str, Any]] = {}
    config: dict[str, int] = {}
    for name in sorted(connectors):
        fields = object_(connectors[name], name)
        info = object_(required(fields, "info", name), path(name, "info"))
        status = object_(required(fields, "status", name), path(name, "status"))
        config[name] = len(each(info, "tasks", path(name, "info"), object_))
        own = object_(required(status, "connector", name), path(name, "status.connector"))
        if worker := _worker(own, path(name, "status.connector")):
            _of(workers, worker)["connectors"].append(name)
        for number, worker in each(status, "tasks", path(name, "status"), _task):
            if worker:
                _of(workers, worker)["tasks"].append([name, number])
    return {"workers": [workers[worker] for worker in sorted(workers)], "config": config}


def _of(workers: dict[str, dict[str, Any]], worker: str) -> dict[str, Any]:
    return workers.setdefault(worker, {"id": worker, "connectors": [], "tasks": []})


def _task(value: Any, at: str) -> tuple[int, str | None]:
    fields = object_(value, at)
    number = integer(required(fields, "id", at), path(at, "id"), "task number")
    return number, _worker(fields, at)


def _worker(status: Mapping[str, Any], at: str) -> str | None:
    """Where something runs, None for nowhere."""
    if string(status, "state", at) in _NOWHERE:
        return None
    return string(status, "worker_id", at)
