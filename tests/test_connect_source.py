# SPDX-License-Identifier: Apache-2.0
"""Reads a Connect cluster from a small server that answers as Connect's REST interface does."""

from __future__ import annotations

import base64
import json
import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from kafka_rebalance.cli import main
from kafka_rebalance.connect.script import run_script
from kafka_rebalance.errors import GroupError
from kafka_rebalance.live import ClusterError
from kafka_rebalance.live.connect_rest import read_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

EXPANDED = "/connectors?expand=status&expand=info"
A, B = "10.0.0.1:8083", "10.0.0.2:8083"


@contextmanager
def connect(
    pages: dict[str, Any], *, status: int = 200, authorization: str | None = None
) -> Iterator[str]:
    """Serves these pages: path -> JSON, or plain text."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            allowed = self.headers.get("Authorization") == authorization
            self.send_response((status if self.path in pages else 404) if allowed else 401)
            self.end_headers()
            page = pages.get(self.path)
            self.wfile.write((page if isinstance(page, str) else json.dumps(page)).encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def connector(
    name: str, count: int, on: tuple[str, str], *tasks: tuple[int, str, str]
) -> dict[str, Any]:
    """Makes a connector as REST shows it with `?expand`.

    `on` is its state and worker; `tasks` are (number, state, worker).
    """
    return {
        "info": {
            "name": name,
            "config": {"name": name},
            "tasks": [{"connector": name, "task": n} for n in range(count)],
            "type": "source",
        },
        "status": {
            "name": name,
            "connector": {"state": on[0], "worker_id": on[1]},
            "tasks": [{"id": n, "state": state, "worker_id": worker} for n, state, worker in tasks],
            "type": "source",
        },
    }


def test_a_cluster_at_rest() -> None:
    tasks = [(n, "RUNNING", (A, B)[n % 2]) for n in (2, 0, 1)]
    pages = {
        EXPANDED: {"c": connector("c", 3, ("RUNNING", B), *tasks)},
        "/connectors": ["c"],
    }
    with connect(pages) as url:
        cluster = read_cluster(url + "/")
    assert cluster == {
        "workers": [
            {"id": A, "connectors": [], "tasks": [["c", 0], ["c", 2]]},
            {"id": B, "connectors": ["c"], "tasks": [["c", 1]]},
        ],
        "config": {"c": 3},
        "notes": [],
    }
    round_ = {"time_ms": 0, "workers": cluster["workers"], "config": cluster["config"]}
    (answer,) = run_script({"assignor": "connect/incremental", "rounds": [round_]})["rounds"]
    assert all(worker["after"] == worker["running"] for worker in answer["workers"].values())


def test_connectors_that_do_not_run_are_left_out_and_reported() -> None:
    odd = connector(
        "odd", 4, ("UNASSIGNED", A), (0, "FAILED", B), (1, "UNASSIGNED", A), (2, "PAUSED", B),
        (7, "RUNNING", A),
    )  # fmt: skip
    fresh = {"name": "new/1", "config": {}, "tasks": [{"connector": "new/1", "task": 0}]}
    pages = {EXPANDED: {"odd": odd}, "/connectors": ["new/1", "odd"], "/connectors/new%2F1": fresh}
    with connect(pages) as url:
        cluster = read_cluster(url)
    assert cluster["workers"] == [{"id": B, "connectors": [], "tasks": [["odd", 0], ["odd", 2]]}]
    assert cluster["config"] == {"odd": 4, "new/1": 1}
    assert cluster["notes"] == [
        f"connector odd: UNASSIGNED, last on {A}; runs nowhere, counted as new",
        f"task odd 0: FAILED, and stays assigned to {B}",
        f"task odd 1: UNASSIGNED, last on {A}; runs nowhere, counted as new",
        "task odd 7: no longer configured, left out",
        "task odd 3: no status yet, counted as new",
        "connector new/1: no status yet, counted as new",
    ]


def test_a_user_and_a_password() -> None:
    pages = {EXPANDED: {"c": connector("c", 0, ("RUNNING", A))}, "/connectors": ["c"]}
    sent = "Basic " + base64.b64encode(b"me:p@ss").decode()
    with connect(pages, authorization=sent) as url:
        assert read_cluster(url.replace("//", "//me:p%40ss@"))["config"] == {"c": 0}
        with pytest.raises(ClusterError, match="HTTP 401, the user or the password") as raised:
            read_cluster(url.replace("//", "//me:secret@"))
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("pages", "status", "problem"),
    [
        ({}, 200, "HTTP 404, this is not the REST"),
        ({EXPANDED: {}, "/connectors": []}, 200, "nothing runs there"),
        ({EXPANDED: ["c"]}, 200, "older than Kafka 2.3"),
        ({EXPANDED: "<html>"}, 200, "not JSON"),
        ({EXPANDED: {"c": {}}, "/connectors": ["c"]}, 200, "the answer is not Connect's"),
        ({EXPANDED: {"c": 1}, "/connectors": ["c"]}, 200, "the answer is not Connect's"),
        ({EXPANDED: {}}, 409, "HTTP 409, the cluster is rebalancing"),
        ({EXPANDED: {}}, 500, "HTTP 500"),
    ],
)
def test_rest_answers_of_a_wrong_form_are_errors(
    pages: dict[str, Any], status: int, problem: str
) -> None:
    with connect(pages, status=status) as url, pytest.raises(ClusterError, match=problem) as raised:
        read_cluster(url)
    assert str(raised.value).startswith(f"{url}: ")


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("http://127.0.0.1:1", "http://127.0.0.1:1: not reached: "),
        ("http://no-such-host.invalid", "http://no-such-host.invalid: not reached: "),
    ],
)
def test_hosts_that_do_not_answer_are_errors(url: str, problem: str) -> None:
    with pytest.raises(ClusterError, match=problem):
        read_cluster(url)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("localhost:8083", 'url: "localhost:8083" is not a URL, as http://host:8083'),
        ("ftp://me:secret@host", 'url: "ftp://host" is not a URL, as http'),
        ("file:///etc/passwd", 'url: "file:///etc/passwd" is not a URL, as http'),
        ("http://host:port", "url: cannot be read: "),
        ("http://u:\udcff@h", "url: has bytes that are not UTF-8"),
        ("http://h/\udcff", "url: has bytes that are not UTF-8"),
    ],
)
def test_urls_of_a_wrong_form_are_wrong_usage(url: str, problem: str) -> None:
    with pytest.raises(GroupError) as raised:
        read_cluster(url)
    assert problem in str(raised.value)
    assert "secret" not in str(raised.value)


def test_a_worker_that_is_silent() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(ClusterError, match=r"not reached: no whole answer within 0\.2 s"),
    ):
        read_cluster(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout_s=0.2)


# Each worker runs six connectors, and six tasks whose connectors run on the other worker. A worker
# reports such tasks in the order in which it received them, which REST does not show.
S3_PAGES = {
    EXPANDED: {
        f"{letter}{n}": connector(f"{letter}{n}", 1, ("RUNNING", other), (0, "RUNNING", worker))
        for letter, worker, other in (("d", A, B), ("e", B, A))
        for n in range(1, 7)
    },
    "/connectors": [f"{letter}{n}" for letter in "de" for n in range(1, 7)],
}


def test_the_command_tells_what_the_order_of_work_decides(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """REST does not show the order of tasks, so the answer lists the tasks that may stop, and their
    number.
    """
    with connect(S3_PAGES) as url:
        joins = ["connect", "--url", url, "--then", "worker 10.0.0.3:8083 joins"]
        assert main(joins) == 0
        shown = capsys.readouterr().out
        assert main([*joins, "--json"]) == 0
    assert "REST does not show the workers' ids" in shown
    told = json.loads(capsys.readouterr().out)
    assert told["varies"]["draws"] == 64
    stops = {
        one["worker"]: one
        for one in told["varies"]["varying"]
        if one["does"] == "stops" and one["round"] == 2
    }
    assert stops.keys() == {A, B}
    for worker, letter in ((A, "d"), (B, "e")):
        tasks = [[f"{letter}{n}", 0] for n in range(1, 7)]
        assert stops[worker]["maybe"] == {"connectors": [], "tasks": tasks}
        assert len(stops[worker]["sure"]["connectors"]) == 2  # these two depend on hash order alone
        # The number of stopped tasks does not depend on the order.
        assert stops[worker]["least"] == stops[worker]["most"] == 4
        listed = ", ".join(f"{letter}{n}[0]" for n in range(1, 7))
        assert f"and 2 of {listed}" in shown


def test_results_that_do_not_depend_on_the_order_are_called_certain(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with connect(S3_PAGES) as url:
        assert main(["connect", "--url", url, "--then", f"worker {B} leaves"]) == 0
    shown = capsys.readouterr().out
    assert "The rounds above do not depend on them: equal in 64 samples." in shown
    assert f"\n\nAssumed: {B} did not lead. Of a leader ask" in shown


def test_a_leader_that_leaves_is_no_worker_that_might_lead(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with connect(S3_PAGES) as url:
        assert main(["connect", "--url", url, "--then", f"leader {B} leaves"]) == 0
    assert "Assumed" not in capsys.readouterr().out
