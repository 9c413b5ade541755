# SPDX-License-Identifier: Apache-2.0
"""`watch` beside groups that a real broker assigns: each change is one rebalance, as predicted."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.broker import Broker, missing_tools

pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")

from tests.support.waiting import FAR_S

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.live

TOPICS = {"t": 7, "u": 5}


class Watch:
    """A process that ends after two rebalances; `begins` and `next` return its next line."""

    def __init__(self, server: str, group_id: str) -> None:
        command = [sys.executable, "-m", "kafka_rebalance", "watch", "--bootstrap-server", server]
        self._process = subprocess.Popen(
            [*command, "--group", group_id, "--rebalances", "2", "--for", str(FAR_S)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def begins(self) -> str:
        assert self._process.stderr
        return next(line for line in self._process.stderr if " watching " in line)

    def next(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline()

    def ends(self) -> tuple[int, str]:
        out, err = self._process.communicate(timeout=2 * FAR_S)
        return self._process.returncode, out + err


def test_each_change_of_a_group_that_the_broker_assigns_is_as_predicted(tmp_path: Path) -> None:
    from tests.modern_live.__main__ import PROPERTIES
    from tests.modern_live.broker_assigned import BrokerAssigned, Stage
    from tests.modern_live.judge import settled
    from tests.modern_live.members import JAVA, Client, Members

    if missing := missing_tools():
        pytest.skip(missing)
    with (
        Broker(properties=PROPERTIES) as broker,
        Members(broker.bootstrap_server, tmp_path) as members,
    ):
        server = broker.bootstrap_server
        stages = {kind: Stage(kind, TOPICS) for kind in ("share", "streams")}
        assigned = {kind: BrokerAssigned(kind, members, tmp_path) for kind in stages}
        members.create(TOPICS)
        clients = [Client(f"c-{n}", "consumer", JAVA, tuple(TOPICS)) for n in range(3)]
        try:
            for client in clients[:2]:
                members.start(client)
            for kind, stage in stages.items():
                for _ in range(2):
                    assigned[kind].start(kind, stage, sorted(TOPICS))
            for group_id in ("consumer", *stages):
                settled(server, group_id, 2)
            watches = {one: Watch(server, one) for one in ("consumer", *stages)}
            begun = {group_id: watch.begins() for group_id, watch in watches.items()}
            members.start(clients[2])
            new = {
                kind: assigned[kind].start(kind, stage, sorted(TOPICS))
                for kind, stage in stages.items()
            }
            joined = {group_id: watch.next() for group_id, watch in watches.items()}
            members.close(clients[2])
            for kind, stage in stages.items():
                assigned[kind].stop(stage, new[kind])
            left = {group_id: watch.next() for group_id, watch in watches.items()}
            ended = {group_id: watch.ends() for group_id, watch in watches.items()}
        finally:
            for one in assigned.values():
                one.close()
    for group_id, assignor in (
        ("consumer", "consumer/uniform"),
        ("share", "share/simple"),
        ("streams", "streams/sticky"),
    ):
        assert f"by asking the broker: {assignor}, 2 members, " in begun[group_id]
        first, second = (
            re.fullmatch(rf"group epoch (\d+), {what}: .+: as predicted \({assignor}\)\n", line)
            for what, line in (("joined", joined[group_id]), ("left", left[group_id]))
        )
        assert first
        assert second
        assert int(second[1]) == int(first[1]) + 1
        assert ended[group_id] == (0, "kafka-rebalance: 2 rebalances, 0 not as predicted\n")
