# SPDX-License-Identifier: Apache-2.0
"""`plans_by_leader` and `watch` know who leads a mixed group on a real broker."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.broker import Broker, missing_tools

pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")
pytest.importorskip("confluent_kafka", reason="no confluent-kafka: pip install -e '.[confluent]'")

import kafka_rebalance as kr
from kafka_rebalance.cli import main
from kafka_rebalance.plans import plans_by_leader
from kafka_rebalance.watch.verdict import NO_CHANGE
from tests.support.live_members import JavaMembers, await_stable
from tests.support.waiting import FAR_S

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.live

GROUP = "mixed"
ASSIGNOR = "cooperative-sticky"


@contextlib.contextmanager
def librdkafka(server: str) -> Iterator[None]:
    """Runs a member with librdkafka, which subscribes to u only."""
    import confluent_kafka

    consumer = confluent_kafka.Consumer({
        "bootstrap.servers": server, "group.id": GROUP, "client.id": "r",
        "partition.assignment.strategy": ASSIGNOR, "heartbeat.interval.ms": 300,
    })  # fmt: skip
    consumer.subscribe(["u"])
    ended = threading.Event()

    def poll() -> None:
        while not ended.is_set():
            consumer.poll(0.1)
        consumer.close()

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(20)


def member(name: str) -> dict[str, Any]:
    return {"group_id": GROUP, "client_id": name, "assignors": [ASSIGNOR], "topics": ["t", "u"]}


def read(server: str, capsys: pytest.CaptureFixture[str]) -> kr.GroupSpec:
    assert main(["snapshot", "--bootstrap-server", server, "--group", GROUP, "--leaders"]) == 0
    return kr.GroupSpec.from_json(capsys.readouterr().out)


def test_the_leader_of_a_mixed_group(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """j1 (Java) leads, then leaves: the plan knows the next leader, and its library's answer."""
    missing = missing_tools()
    if missing:
        pytest.skip(missing)
    with Broker() as broker, JavaMembers(broker.bootstrap_server, tmp_path / "java.log") as java:
        server = broker.bootstrap_server
        from kafka import KafkaAdminClient

        with KafkaAdminClient(bootstrap_servers=server) as admin:
            counts = {"t": 5, "u": 7}
            topics = {n: {"num_partitions": p, "replication_factor": 1} for n, p in counts.items()}
            admin.create_topics(topics, wait_for_metadata=True)
        java.send(wait=False, add=[member("j1")])
        await_stable(server, {GROUP: 1})
        with librdkafka(server):
            await_stable(server, {GROUP: 2})
            java.send(wait=False, add=[member("j2")])
            await_stable(server, {GROUP: 3})
            group = read(server, capsys)
            ids = {one.client_id: one for one in group.members}
            libraries = {name: one.client_library for name, one in ids.items()}
            assert libraries == {"j1": "java", "j2": "java", "r": "librdkafka"}
            assert (group.leader, group.leader_library) == (ids["j1"].member_id, "java")

            change = f"remove-member={ids['j1'].member_id}"
            (led,) = plans_by_leader(group, [change])
            (following,) = led.leaders
            command = [sys.executable, "-m", "kafka_rebalance", "watch", "--bootstrap-server",
                       server, "--group", GROUP, "--json", "--rebalances", "1", "--for", str(FAR_S),
                       "--change", change]  # fmt: skip
            with subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            ) as watch:
                assert watch.stderr is not None
                assert "watching mixed by asking the broker" in watch.stderr.readline()
                java.send(wait=False, close=["j1"])
                out, _ = watch.communicate(timeout=2 * FAR_S)
            await_stable(server, {GROUP: 2})
            later = read(server, capsys)
    assert later.leader == following
    assert led.plan is not None
    held = {m: set(owned) for m, owned in led.plan.after.items()}
    assert {one.member_id: set(one.owned_partitions) for one in later.members} == held
    (seen,) = map(json.loads, out.splitlines())
    assert (seen["as_predicted"], seen["event"]) == (True, f"left: {ids['j1'].member_id}")


def test_watch_sees_each_rebalance_in_the_log(tmp_path: Path) -> None:
    """j2 joins and leaves at once. The descriptions before and after are equal; records are not."""
    missing = missing_tools()
    if missing:
        pytest.skip(missing)
    with Broker() as broker, JavaMembers(broker.bootstrap_server, tmp_path / "java.log") as java:
        from kafka import KafkaAdminClient

        with KafkaAdminClient(bootstrap_servers=broker.bootstrap_server) as admin:
            counts = {"t": 5, "u": 7}
            topics = {n: {"num_partitions": p, "replication_factor": 1} for n, p in counts.items()}
            admin.create_topics(topics, wait_for_metadata=True)
        java.tell(add=[member("j1")])
        command = [sys.executable, "-m", "kafka_rebalance", "watch", "--bootstrap-server",
                   broker.bootstrap_server, "--group", GROUP, "--json", "--rebalances", "3",
                   "--for", str(FAR_S)]  # fmt: skip
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as watch:
            assert watch.stderr is not None
            assert (
                "watching mixed in __consumer_offsets: cooperative-sticky"
                in watch.stderr.readline()
            )
            java.tell(add=[member("j2")])
            java.tell(close=["j2"])
            out, err = watch.communicate(timeout=2 * FAR_S)
    joined, second, left = map(json.loads, out.splitlines())
    assert joined["event"].startswith("joined: j2-")
    assert second["event"] == NO_CHANGE  # j1 has revoked partitions, and joined again
    assert left["event"] == joined["event"].replace("joined", "left")
    first = joined["generation_id"]
    assert [one["generation_id"] for one in (joined, second, left)] == [first, first + 1, first + 2]
    assert all(one["as_predicted"] for one in (joined, second, left))
    assert "3 rebalances, 0 not as predicted" in err
