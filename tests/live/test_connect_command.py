# SPDX-License-Identifier: Apache-2.0
"""`kafka-rebalance connect --url` against real Connect workers, as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from kafka_rebalance.live.connect_rest import read_cluster
from kafka_rebalance.report.text.sentences import counted
from tests.support.broker import Broker, missing_tools
from tests.support.connect_cluster import ConnectCluster, missing_connect
from tests.support.waiting import FAR_S

pytestmark = pytest.mark.live


def test_planning_from_what_is() -> None:
    missing = missing_tools() or missing_connect()
    if missing:
        pytest.skip(missing)
    with (
        Broker() as broker,
        ConnectCluster(broker.bootstrap_server, workers=2, max_delay_ms=5000) as connect,
    ):
        connect.create("files", tasks=5)
        connect.create("logs", tasks=2)
        shown = read_cluster(connect.url)
        leaves = shown["workers"][0]["id"]
        events = [f"worker {leaves} leaves", "60s", f"worker {leaves} returns", "5m"]
        command = [sys.executable, "-m", "kafka_rebalance", "connect", "--url", connect.url]
        command += [option for event in events for option in ("--then", event)]
        answer = subprocess.run(
            [*command, "--json"], capture_output=True, text=True, timeout=FAR_S, check=True
        )
        table = subprocess.run(command, capture_output=True, text=True, timeout=FAR_S, check=True)
        new = [sys.executable, "-m", "kafka_rebalance", "connect", "--url", connect.url]
        new += ["--then", "connector new tasks=3", "--json"]
        told = subprocess.run(new, capture_output=True, text=True, timeout=FAR_S, check=True)
        seen = len(connect.rounds())
        connect.create("new", tasks=3)
        real = [
            (
                sorted(name for one in found.members for name in one.assigned_connectors),
                sorted(tuple(task) for one in found.members for task in one.assigned_tasks),
            )
            for found in connect.rounds()[seen:]
        ]
    planned = [
        (
            sorted(name for one in each["workers"].values() for name in one["assigned_connectors"]),
            sorted(
                tuple(task) for one in each["workers"].values() for task in one["assigned_tasks"]
            ),
        )
        for each in json.loads(told.stdout)["rounds"][1:]
    ]
    # A worker that reads a configuration late joins once more, and that round assigns nothing.
    assert [each for each in real if each != ([], [])] == planned
    assert planned == [(["new"], []), ([], [("new", n) for n in range(3)])]
    rounds = json.loads(answer.stdout)["rounds"]
    assert [round_["cause"] for round_ in rounds] == ["as it is", events[0], events[2], events[3]]
    now = {worker: round_["after"] for worker, round_ in rounds[0]["workers"].items()}
    assert {worker: set(after["connectors"]) for worker, after in now.items()} == {
        worker["id"]: set(worker["connectors"]) for worker in shown["workers"]
    }
    lost = {tuple(task) for task in now[leaves]["tasks"]}
    assert rounds[1]["delay"] == 300_000
    back = rounds[3]["workers"][leaves]
    assert {tuple(task) for task in back["assigned_tasks"]} == lost
    connectors = counted(len(now[leaves]["connectors"]), "connector")
    assert f"nowhere: {connectors}, {counted(len(lost), 'task')}" in table.stdout
    assert "its worker is gone: kept for it in case it returns, until 300s" in table.stdout
