# SPDX-License-Identifier: Apache-2.0
"""Reads a live Connect cluster through its REST interface, as round one of a script.

REST returns the statuses that workers wrote last to the cluster's status topic. This has limits:

- A worker that runs nothing is missing. No endpoint lists workers: `/`, `/health`, `/admin` and
  `/connector-plugins` describe only the worker that answers, without its id. Let idle workers join
  by events: `worker host:port joins`.
- A dead worker is still listed, with all work that it ran, until the leader assigns that work to
  other workers, up to `scheduled.rebalance.max.delay.ms` later. Until then, a worker that returned
  is listed with its old work too. If a worker has just left, read again after the delay.
- Workers have the ids of the REST interface, `host:port`. The leader orders workers by the hashes
  of their member ids, `connect-host:port-<uuid>`. So the leader may choose another one of several
  equal workers; the number of connectors and tasks of each worker is right.
"""

import base64
import http.client
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any

from .consumer_groups import ClusterError

TIMEOUT_S = 10.0

_RUNNING = ("RUNNING", "PAUSED", "STOPPED", "FAILED", "RESTARTING")
"""States of connectors and tasks that are assigned. A failed task stays with its worker."""

_HINTS = {
    401: "a user and password are needed: https://user:password@host:port",
    403: "this user is not allowed to",
    404: "this is not the REST interface of Connect",
    409: "the cluster is rebalancing: ask again",
}


def read_cluster(url: str, *, timeout_s: float = TIMEOUT_S) -> dict[str, Any]:
    """Returns `{"workers": [{"id", "connectors", "tasks"}], "config": {…}, "notes": […]}`.

    `config` maps a connector to its number of tasks. `url` is the URL of any worker:
    `http://host:8083`, `https://user:password@host/path`. The notes name connectors and tasks that
    are configured and run nowhere, and those that have failed and are still assigned.

    Order    workers by id, connectors and tasks by name; the leader uses other orders.
    Errors   ClusterError.
    """
    client = _Client(url, timeout_s)
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
        # A connector without a status is missing from the expanded answer.
        for name in sorted(set(names) - expanded.keys()):
            reader.connector(name, client.get(f"/connectors/{urllib.parse.quote(name, '')}"), None)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise client.error(f"the answer is not Connect's: {error!r}") from error
    if not reader.workers:
        raise client.error("nothing runs there, and REST lists only workers that run something")
    return reader.cluster()


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

    def __init__(self, url: str, timeout_s: float) -> None:
        try:
            parts = urllib.parse.urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise ClusterError(f"the URL cannot be read: {error}") from None
        if parts.scheme not in ("http", "https") or not host:
            without_password = url.rpartition("@")[2]
            raise ClusterError(f"{without_password}: not a URL like http://host:8083")
        place = (f"[{host}]" if ":" in host else host) + (f":{port}" if port is not None else "")
        self._base = f"{parts.scheme}://{place}{parts.path.rstrip('/')}"
        self._timeout_s = timeout_s
        self._authorization = None
        if parts.username is not None:
            user = urllib.parse.unquote(parts.username)
            password = urllib.parse.unquote(parts.password or "")
            credentials = base64.b64encode(f"{user}:{password}".encode()).decode()
            self._authorization = f"Basic {credentials}"

    def get(self, path: str) -> Any:
        request = urllib.request.Request(self._base + path, headers={"Accept": "application/json"})
        if self._authorization:  # a redirect must not send the password to another host
            request.add_unredirected_header("Authorization", self._authorization)
        try:
            with urllib.request.urlopen(request, timeout=self._timeout_s) as response:
                return json.loads(response.read())
        except urllib.error.HTTPError as error:
            with error:
                hint = _HINTS.get(error.code, error.reason)
                raise self.error(f"{path}: HTTP {error.code}, {hint}") from error
        except urllib.error.URLError as error:
            raise self.error(f"not reached: {error.reason}") from error
        except ValueError as error:
            raise self.error(f"{path}: the answer is not JSON: {error}") from error
        except (OSError, http.client.HTTPException) as error:
            raise self.error(f"not reached: {error or type(error).__name__}") from error

    def error(self, problem: str) -> ClusterError:
        return ClusterError(f"{self._base}: {problem}")
