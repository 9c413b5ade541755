# SPDX-License-Identifier: Apache-2.0
"""`describe` shows live groups that no classic assignor assigns as Kafka's own interfaces do."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")

from kafka_rebalance.live.connect_rest import read_cluster
from tests.support.broker import Broker, missing_tools
from tests.support.connect_cluster import ConnectCluster, missing_connect

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.live


class Described(NamedTuple):
    """A group as `describe` shows it, as JSON and as text, and as Kafka shows it."""

    shown: dict[str, Any]
    text: str
    kafkas: Any


def _describe(server: str, group: str) -> tuple[dict[str, Any], str]:
    def run(*options: str) -> str:
        command = [sys.executable, "-m", "kafka_rebalance", "describe", "--bootstrap-server"]
        ran = subprocess.run(
            [*command, server, "--group", group, *options],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    shown: dict[str, Any] = json.loads(run("--json"))
    return shown, run()


@pytest.fixture(scope="module")
def connect() -> Iterator[Described]:
    missing = missing_tools() or missing_connect()
    if missing:
        pytest.skip(missing)
    with Broker() as broker, ConnectCluster(broker.bootstrap_server, workers=2) as cluster:
        cluster.create("files", tasks=3)
        cluster.create("orders", tasks=2)
        rest = read_cluster(cluster.url)
        yield Described(*_describe(broker.bootstrap_server, "connect"), rest)


def test_connects_work_is_that_of_its_rest_interface(connect: Described) -> None:
    ours = {
        one["url"].removeprefix("http://").rstrip("/"): (
            sorted(one["connectors"]),
            sorted(one["tasks"]),
        )
        for one in connect.shown["members"]
    }
    assert ours == {
        one["id"]: (sorted(one["connectors"]), sorted(map(list, one["tasks"])))
        for one in connect.kafkas["workers"]
    }
    assert sum(len(tasks) for _, tasks in ours.values()) == 5
    assert connect.shown["leader"] in {one["member_id"] for one in connect.shown["members"]}


def test_connects_table(connect: Described) -> None:
    assert connect.text.startswith("connect, Kafka Connect, sessioned, Stable: 2 workers, ")
    for one in connect.kafkas["workers"]:
        assert f" {one['id']} " in connect.text
    assert "kafka-rebalance connect --url" in connect.text
