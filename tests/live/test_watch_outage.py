# SPDX-License-Identifier: Apache-2.0
"""`watch` goes on when the broker of the group's coordinator dies: another broker becomes the
coordinator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kafka_rebalance.wire.group_records import partition_for
from tests.support.broker import Broker, missing_tools

pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")

from tests.support.live_members import JavaMembers, await_coordinators, await_stable
from tests.support.waiting import FAR_S
from tests.support.watch_process import Watch

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.live

DEAD = 2
OFFSETS_PARTITIONS = 6


def member(name: str, group_id: str) -> dict[str, Any]:
    return {"group_id": group_id, "client_id": name, "assignors": ["range"], "topics": ["t"]}


@pytest.mark.parametrize("source", ["records", "descriptions"])
def test_the_coordinators_broker_dies(source: str, tmp_path: Path) -> None:
    missing = missing_tools()
    if missing:
        pytest.skip(missing)
    from kafka import KafkaAdminClient

    properties = {
        "offsets.topic.num.partitions": str(OFFSETS_PARTITIONS),
        "offsets.topic.replication.factor": "3",
    }
    with (
        Broker(brokers=3, properties=properties) as broker,
        JavaMembers(broker.bootstrap_server, tmp_path / "java.log") as java,
    ):
        server = broker.bootstrap_server
        names = [f"group-{n}" for n in range(12)]
        with KafkaAdminClient(bootstrap_servers=server) as admin:
            admin.create_topics({"t": {"assignments": {0: [0], 1: [0]}}}, wait_for_metadata=True)
            await_coordinators(server, names)
            [topic] = admin.describe_topics(["__consumer_offsets"])
        leaders = {one["partition_index"]: one["leader_id"] for one in topic["partitions"]}
        group_id = next(n for n in names if leaders[partition_for(n, OFFSETS_PARTITIONS)] == DEAD)
        java.send(wait=False, add=[member("j1", group_id)])
        await_stable(server, {group_id: 1})
        changes = ["--add-members", "1"] if source == "descriptions" else []
        with Watch(server, group_id, "--rebalances", "2", *changes) as watch:
            how = "by asking the broker" if changes else "in __consumer_offsets"
            watch.line(f"watching {group_id} {how}")
            broker.kill(DEAD)
            watch.line("its coordinator does not answer")
            back = watch.line("its coordinator answers again")
            java.send(wait=False, add=[member("j2", group_id)])
            joined = watch.line("joined: j2")
            java.send(wait=False, close=["j2"])
            watch.line("left: j2")
            ended = watch.line("2 rebalances")
            assert watch.process.wait(FAR_S) == 0
    assert back.count("answers again") == 1
    assert "does not answer" not in back
    assert "as predicted (range)" in joined
    assert "2 rebalances, 0 not as predicted" in ended
