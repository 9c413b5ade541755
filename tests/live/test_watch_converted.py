# SPDX-License-Identifier: Apache-2.0
"""`watch` follows a group over a rolling switch to the consumer protocol, and back (KIP-848)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.broker import Broker, missing_tools

pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")

from tests.support.live_members import JavaMembers, await_stable
from tests.support.waiting import FAR_S
from tests.support.watch_process import Watch

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.live

GROUP = "w1"
CONSUMER = {"group.protocol": "consumer", "heartbeat.interval.ms": None}


def member(name: str, **more: Any) -> dict[str, Any]:
    one = {"group_id": GROUP, "client_id": name, "assignors": ["range"], "topics": ["t"]}
    return {**one, **more}


def test_a_group_is_converted_while_it_is_watched(tmp_path: Path) -> None:
    """One of three members restarts with the consumer protocol, and again with the classic one."""
    missing = missing_tools()
    if missing:
        pytest.skip(missing)
    from kafka import KafkaAdminClient

    with Broker() as broker, JavaMembers(broker.bootstrap_server, tmp_path / "java.log") as java:
        server = broker.bootstrap_server
        with KafkaAdminClient(bootstrap_servers=server) as admin:
            admin.create_topics({"t": {"num_partitions": 7}}, wait_for_metadata=True)
        java.send(wait=False, add=[member(name) for name in ("a", "b", "c")])
        await_stable(server, {GROUP: 3})
        with Watch(server, GROUP, "--rebalances", "5") as watch:
            watch.line(f"watching {GROUP} in __consumer_offsets: range, 3 members")
            java.send(wait=False, close=["c"])
            left = watch.line("left: c")
            java.send(wait=False, add=[member("c", assignors=[], configs=CONSUMER)])
            converted = watch.line("joined: ")
            java.send(wait=False, close=["c"])
            back = watch.line("left: ")
            java.send(wait=False, add=[member("c")])
            joined = watch.line("joined: c")
            ended = watch.line("5 rebalances")
            code = watch.process.wait(FAR_S)
    assert f"{GROUP} was converted: the broker assigns it now, by consumer/uniform" in converted
    assert f"watching {GROUP} by asking the broker: consumer/uniform, 3 members" in converted
    assert "Empty" not in converted
    for line, assignor in ((left, "range"), (joined, "range")):
        assert f": as predicted ({assignor})" in line
    # All members join again after the conversion, as the records show.
    said = left + converted + back + joined + ended
    assert said.count("no member changed") == 1
    # Descriptions can show a group between two rebalances; records cannot.
    wrong = said.count("not as predicted: ")
    assert wrong <= 1, said
    assert f"5 rebalances, {wrong} not as predicted" in ended
    assert code == (3 if wrong else 0)
