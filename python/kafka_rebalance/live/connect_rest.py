# SPDX-License-Identifier: Apache-2.0
"""Reads a live Connect cluster's workers and their work through the REST interface.

REST returns the statuses that workers last wrote to the cluster's status topic. This has limits:

- A worker that runs nothing is missing. No endpoint lists workers: `/`, `/health`, `/admin` and
  `/connector-plugins` describe only the worker that answers, without its id. Add an idle worker by
  an event: `worker host:port joins`.
- A dead worker is still listed, with all work that it ran, until the leader assigns that work to
  other workers, up to `scheduled.rebalance.max.delay.ms` later. Until then, a worker that returned
  is listed with its old work too. If a worker has just left, read again after the delay.
- Workers have the ids of the REST interface, `host:port`. A real leader orders workers by the
  hashes of their member ids, `connect-host:port-<uuid>`. So it may choose another one of several
  equal workers; `connect_draws.py` finds the parts of an answer that depend on this.
"""

import base64
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any

from kafka_rebalance.errors import ClusterError, GroupError
from kafka_rebalance.group.model import quoted

from .client_properties import TIMEOUT_S, check_settings
from .http_json import fetch_json
from .tls import ssl_context

_RUNNING = ("RUNNING", "PAUSED", "STOPPED", "FAILED", "RESTARTING")
"""States of connectors and tasks that are assigned. A failed task stays with its worker."""

_HINTS = {
    401: "the user or the password is missing or wrong; basic.auth.user.info is user:password",
    403: "this user is not allowed to",
    404: "this is not the REST interface of Connect",
    409: "the cluster is rebalancing: ask again",
}


def read_cluster(
    url: str, *, properties: Mapping[str, str] | None = None, timeout_s: float | None = None
) -> dict[str, Any]:
    """Returns `{"workers": [{"id", "connectors", "tasks"}], "config": {…}, "notes": […]}`.

    `config` maps a connector to its number of tasks. `url` is the URL of any worker:
    `http://host:8083`, `https://user:password@host/path`. `properties` are settings of a client:
    `ssl.*` for https, and `basic.auth.user.info`, which is "user:password". The notes name
    connectors and tasks that run nowhere or have failed, and tasks that are no longer configured.

    Order    workers by id, connectors and tasks by name; the leader uses other orders.
    Errors   ClusterError; GroupError at `url`.
    """
    client = _Client(url, properties or {}, timeout_s or TIMEOUT_S)
    expanded = client.get("/connectors?expand=status&expand=info")
    if not isinstance(expanded, dict):
        raise client.error("?expand is not supported: is this Connect older than Kafka 2.3?")
    names = client.get("/connectors")
    if not isinstance(names, list):
        raise client.error("the answer to /connectors is not a list")
    reader = _Reader()
    try:
        for name in sorted(expanded):
            reader.connector(name, expanded[name]["info"], expanded[name]["status"])
        # A connector without a status is missing from the expanded answer: read it by itself.
        for name in sorted(set(names) - expanded.keys()):
            reader.connector(name, client.get(f"/connectors/{urllib.parse.quote(name, '')}"), None)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        # The answer has a different shape: fields are missing or have other types.
        raise client.error(f"the answer is not Connect's: {error!r}") from error
    if not reader.workers:
        raise client.error("nothing runs there, and REST lists only workers that run something")
    return reader.cluster()


def without_password(url: str) -> str:
    """Returns a URL without its user and password."""
    scheme, separator, rest = url.partition("//")
    place, slash, path = rest.partition("/")
    return f"{scheme}{separator}{place.rpartition('@')[2]}{slash}{path}"


class _Reader:
    """Reads the connectors of one cluster and collects their work."""

    def __init__(self) -> None:
        self.workers: dict[str, dict[str, Any]] = {}
        self._config: dict[str, int] = {}
        self._notes: list[str] = []

    def connector(
        self, name: str, info: Mapping[str, Any], status: Mapping[str, Any] | None
    ) -> None:
        count = self._config[name] = len(info["tasks"])
        if status is None:
            self._notes.append(f"connector {name}: no status yet, counted as new")
            return
        if self._runs(status["connector"], f"connector {name}"):
            self._worker(status["connector"])["connectors"].append(name)
        seen = set()
        for task in sorted(status["tasks"], key=lambda task: int(task["id"])):
            number = int(task["id"])
            if number >= count:
                self._notes.append(f"task {name} {number}: no longer configured, left out")
            elif self._runs(task, f"task {name} {number}"):
                self._worker(task)["tasks"].append([name, number])
            seen.add(number)
        for number in sorted(set(range(count)) - seen):
            self._notes.append(f"task {name} {number}: no status yet, counted as new")

    def cluster(self) -> dict[str, Any]:
        workers = [self.workers[worker] for worker in sorted(self.workers)]
        return {"workers": workers, "config": self._config, "notes": self._notes}

    def _runs(self, status: Mapping[str, Any], what: str) -> bool:
        state, worker = str(status["state"]), status["worker_id"]
        if state not in _RUNNING:
            self._notes.append(f"{what}: {state}, last on {worker}; runs nowhere, counted as new")
            return False
        if state == "FAILED":
            self._notes.append(f"{what}: FAILED, and stays assigned to {worker}")
        return True

    def _worker(self, status: Mapping[str, Any]) -> dict[str, Any]:
        id_ = str(status["worker_id"])
        return self.workers.setdefault(id_, {"id": id_, "connectors": [], "tasks": []})


class _Client:
    """Sends GET requests to one worker. Errors contain the URL without the password."""

    def __init__(self, url: str, properties: Mapping[str, str], timeout_s: float) -> None:
        check_settings(properties)
        try:
            url.encode()
            parts = urllib.parse.urlsplit(url)
            host, port = parts.hostname, parts.port
        except UnicodeEncodeError:
            raise GroupError("url", "has bytes that are not UTF-8") from None
        except ValueError as error:
            raise GroupError("url", f"cannot be read: {error}") from None
        if parts.scheme not in ("http", "https") or not host:
            shown = without_password(url)
            raise GroupError("url", f"{quoted(shown)} is not a URL, as http://host:8083")
        place = (f"[{host}]" if ":" in host else host) + (f":{port}" if port is not None else "")
        path = urllib.parse.quote(parts.path, safe="/%:@!$&'()*+,;=~")
        self._base = f"{parts.scheme}://{place}{path.rstrip('/')}"
        self._timeout_s = timeout_s
        self._context = ssl_context(properties) if parts.scheme == "https" else None
        self._authorization = None
        user_info = properties.get("basic.auth.user.info")
        if parts.username is not None:
            names = (parts.username, parts.password or "")
            user_info = ":".join(urllib.parse.unquote(name) for name in names)
        if user_info is not None:
            credentials = base64.b64encode(user_info.encode()).decode()
            self._authorization = f"Basic {credentials}"

    def get(self, path: str) -> Any:
        request = urllib.request.Request(self._base + path, headers={"Accept": "application/json"})
        if self._authorization:  # a redirect must not send the password to another host
            request.add_unredirected_header("Authorization", self._authorization)
        return fetch_json(
            request,
            self._base,
            path,
            timeout_s=self._timeout_s,
            context=self._context,
            hints=_HINTS,
        )

    def error(self, problem: str) -> ClusterError:
        return ClusterError(f"{self._base}: {problem}")
