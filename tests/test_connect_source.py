"""A Connect cluster's REST interface, as a small server answers in its place."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from kafka_rebalance.sources.connect import ConnectError, read_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator


def connector(worker: str, tasks: list[str | None], state: str = "RUNNING") -> dict[str, Any]:
    return {
        "info": {"name": "x", "tasks": [{"connector": "x", "task": n} for n in range(len(tasks))]},
        "status": {
            "connector": {"state": state, "worker_id": worker},
            "tasks": [
                {"id": n, "state": "RUNNING" if on else "UNASSIGNED", "worker_id": on or ""}
                for n, on in enumerate(tasks)
            ],
        },
    }


class Server(HTTPServer):
    answer: Any = None
    seen: list[tuple[str, str | None]]


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Server)
        self.server.seen.append((self.path, self.headers.get("Authorization")))
        body = json.dumps(self.server.answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server(("127.0.0.1", 0), Handler)
    running.seen = []
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    yield running
    running.shutdown()
    running.server_close()
    thread.join()


def test_what_runs_where(server):
    server.answer = {
        "files": connector("w2:8083", ["w1:8083", None, "w2:8083"]),
        "logs": connector("", [], "UNASSIGNED"),
    }
    url = f"http://user:p%40ss@127.0.0.1:{server.server_port}/"
    assert read_cluster(url) == {
        "workers": [
            {"id": "w1:8083", "connectors": [], "tasks": [["files", 0]]},
            {"id": "w2:8083", "connectors": ["files"], "tasks": [["files", 2]]},
        ],
        "config": {"files": 3, "logs": 0},
    }
    login = base64.b64encode(b"user:p@ss").decode()
    assert server.seen == [("/connectors?expand=status&expand=info", f"Basic {login}")]


@pytest.mark.parametrize("answer", [[], {"files": {}}, {"files": {"info": {}, "status": {}}}, "x"])
def test_what_is_not_connect_is_named(server, answer):
    server.answer = answer
    with pytest.raises(ConnectError, match="not the answer of a Connect worker"):
        read_cluster(f"http://127.0.0.1:{server.server_port}")


@pytest.mark.parametrize("url", ["127.0.0.1:8083", "ftp://h", "http://127.0.0.1:1"])
def test_what_cannot_be_reached_is_named(url):
    with pytest.raises(ConnectError) as raised:
        read_cluster(url)
    assert str(raised.value).startswith(url)


def test_the_command_plans_from_what_is(server):
    server.answer = {"files": connector("w1:8083", ["w1:8083", "w2:8083", "w2:8083"])}
    url = f"http://127.0.0.1:{server.server_port}"
    events = ["worker w2:8083 leaves", "5m"]
    options = [option for event in events for option in ("--then", event)]
    command = [sys.executable, "-m", "kafka_rebalance", "connect", "--url", url, *options, "--json"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    rounds = json.loads(run.stdout)["rounds"]
    assert [round_["cause"] for round_ in rounds] == ["as it is", *events]
    assert rounds[1]["delay"] == 300_000
    assert rounds[2]["workers"]["w1:8083"]["assigned_tasks"] == [["files", 1], ["files", 2]]
