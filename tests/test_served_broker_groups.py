# SPDX-License-Identifier: Apache-2.0
"""Java's share consumers and Kafka Streams (`group.protocol=streams`) work with `serve`."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("kio", reason="kio is not installed: pip install -e '.[serve]'")

from kafka_rebalance.testing import RunningBroker
from tests.support.broker import LIB_STREAMS, missing_tools
from tests.support.live_members import JavaMembers
from tests.support.waiting import FAR_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.live
PATIENCE_S = FAR_S


@contextmanager
def members(broker: RunningBroker, log: Path, *first: Path) -> Iterator[JavaMembers]:
    if missing := missing_tools():
        pytest.skip(missing)
    made = JavaMembers(broker.address, log, "BrokerAssigned", first)
    try:
        yield made
    finally:
        made.close()


def until(done: Callable[[], bool], java: JavaMembers, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not done():
        assert java.send()["failures"] == {}
        assert time.monotonic() < deadline, log.read_text()[-3000:]
        time.sleep(0.1)


def test_share_consumers_acknowledge_all_records(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with RunningBroker({"orders": 2}) as broker, members(broker, log) as java:
        broker.configure("s", {"share.auto.offset.reset": "earliest"})
        for partition in range(2):
            for number in range(50):
                broker.produce("orders", b"%d" % number, partition=partition)
        one = {"kind": "share", "group_id": "s", "topics": ["orders"]}
        java.send(add=[{**one, "name": name} for name in ("a", "b")])
        parts = broker._server.shares._partitions

        def starts() -> list[int]:
            return [each.start for each in parts.values()]

        until(lambda: starts() == [50, 50], java, log)
        broker.produce("orders", b"more")
        until(lambda: sorted(starts()) == [50, 51], java, log)
        java.send(close=["a", "b"])
        assert broker._server.shares._sessions == {}


def test_streams_applications_count_in_tasks_and_scale(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with RunningBroker({"orders": 4}) as broker, members(broker, log, LIB_STREAMS) as java:
        one = {"kind": "streams", "group_id": "app", "topics": ["orders"],
               "repartitioned": ["orders"]}  # fmt: skip

        def start(name: str) -> None:
            java.send(add=[{**one, "name": name, "state_dir": str(tmp_path / name)}])

        def counted() -> int:
            topics = [name for name in broker._server.cluster.topics if "changelog" in name]
            return sum(len(broker.records(name)) for name in topics)

        def produce() -> None:
            for number in range(40):
                broker.produce("orders", b"%d" % number, key=b"k", partition=number % 4)

        start("a")
        produce()
        # A subtopology reads the topic, and one counts behind the repartition topic: 4 tasks each.
        broker.wait_until_stable("app", members=1, partitions=8, timeout_s=PATIENCE_S)
        until(lambda: counted() >= 40, java, log)
        start("b")
        both = broker.wait_until_stable("app", members=2, partitions=8, timeout_s=PATIENCE_S)
        assert [sum(map(len, tasks.values())) for tasks in both.assignment.values()] == [4, 4]
        before = counted()
        produce()
        until(lambda: counted() >= before + 40, java, log)
        java.send(close=["b"])
        broker.wait_until_stable("app", members=1, partitions=8, timeout_s=PATIENCE_S)
        assert java.send()["failures"] == {}
