# SPDX-License-Identifier: Apache-2.0
"""`watch` beside a group that has no record at first, and whose topic then gets partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
AGE_MS = 15_000
"""The most age of the members' metadata: longer than a watch by descriptions needs to settle."""


def test_new_partitions_are_a_rebalance_when_the_members_see_them(tmp_path: Path) -> None:
    missing = missing_tools()
    if missing:
        pytest.skip(missing)
    from kafka import KafkaAdminClient

    configs = {"metadata.max.age.ms": str(AGE_MS)}
    members = [
        {"group_id": GROUP, "client_id": name, "assignors": ["range"], "topics": ["t"]}
        | {"configs": configs}
        for name in ("a", "b")
    ]
    with Broker() as broker, JavaMembers(broker.bootstrap_server, tmp_path / "java.log") as java:
        server = broker.bootstrap_server
        with KafkaAdminClient(bootstrap_servers=server) as admin:
            admin.create_topics({"t": {"num_partitions": 4}}, wait_for_metadata=True)
            with Watch(server, GROUP, "--rebalances", "2") as by_records:
                by_records.line(f"there is no group {GROUP} yet")
                java.send(wait=False, add=members[:1])
                begun = "in __consumer_offsets: range, 1 member, 4 partitions"
                by_records.line(f"watching {GROUP} {begun}")
                java.send(wait=False, add=members[1:])
                assert "as predicted (range)" in by_records.line("generation 2, joined: b")
                await_stable(server, {GROUP: 2})
                told = ("--partitions", "t=6", "--rebalances", "1")
                with Watch(server, GROUP, *told) as by_descriptions:
                    by_descriptions.line(f"watching {GROUP} by asking the broker: range, 2 members")
                    admin.create_partitions({"t": 6})
                    by_descriptions.line("partitions: t 4 -> 6; no rebalance yet; waiting")
                    lines = by_descriptions.line("1 rebalance, 0 not as predicted")
                    codes = {by_descriptions.process.wait(FAR_S)}
                recorded = by_records.line("2 rebalances, 0 not as predicted")
                codes.add(by_records.process.wait(FAR_S))
    grown = "as predicted (range)"
    assert f"partitions: t 4 -> 6: {grown}; as in your plan (partitions t=6)\n" in lines
    assert recorded.count(grown) == 1
    assert codes == {0}
