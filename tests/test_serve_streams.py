# SPDX-License-Identifier: Apache-2.0
"""Streams groups of `serve` over the wire (KIP-1071): tasks, internal topics, descriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("kio", reason="kio is not installed: pip install -e '.[serve]'")

from kafka_rebalance.testing import RunningBroker
from tests.parity.wire import Connection
from tests.support.served_broker import REQUESTS, TOPICS, connection

if TYPE_CHECKING:
    from collections.abc import Iterable

_NO_TASKS: dict[str, Any] = dict.fromkeys(("active_tasks", "standby_tasks", "warmup_tasks"), ())


class Member:
    """A member of the group "k" whose requests the test writes; `tasks` are its active tasks."""

    def __init__(self, one: Connection, member_id: str) -> None:
        self.one, self.member_id, self.epoch = one, member_id, 0
        self.tasks: set[int] = set()

    def beat(self, **more: Any) -> list[str]:
        """Returns the names of the statuses in the answer."""
        owned = [{"subtopology_id": "0", "partitions": sorted(self.tasks)}] if self.tasks else []
        asked = {**REQUESTS["streams_group_heartbeat"], "active_tasks": owned}
        if self.epoch:
            asked |= {"topology": None, "client_tags": None, "user_endpoint": None}
        ids = {"member_id": self.member_id, "process_id": self.member_id}
        asked |= {**ids, "member_epoch": self.epoch} | more
        answer = self.one.ask("streams_group_heartbeat", 0, **asked)
        if answer.error_code:
            return [answer.error_code.name]
        self.epoch = answer.member_epoch
        if answer.active_tasks is not None:
            self.tasks = {p for one in answer.active_tasks for p in one.partitions}
        return [one.status_detail for one in answer.status or ()]


def test_members_get_tasks_and_the_broker_creates_internal_topics() -> None:
    with RunningBroker(TOPICS) as broker, connection(broker) as one:
        a, b = Member(one, "a"), Member(one, "b")
        assert a.beat() == ["MISSING_INTERNAL_TOPICS"]
        assert broker._server.cluster.topics["log"].partitions == TOPICS["orders"]
        b.beat()
        for _ in range(4):
            statuses = [a.beat(), b.beat()]
            broker.advance(1_000)
        assert statuses == [[], []]
        assert [len(a.tasks), len(b.tasks)] == [3, 3]
        assert a.tasks | b.tasks == set(range(6))
        described = one.ask("streams_group_describe", 0, **REQUESTS["streams_group_describe"] | {
            "group_ids": ["k", "no"]
        }).groups  # fmt: skip
        assert [found.error_code.name for found in described] == ["none", "group_id_not_found"]
        assert described[0].group_state == "Stable"
        (part,) = described[0].topology.subtopologies
        assert (part.subtopology_id, part.source_topics) == ("0", ("orders",))
        logs = [(log.name, log.partitions) for log in part.state_changelog_topics]
        assert logs == [("log", TOPICS["orders"])]  # the application left the number to the broker
        tags = [(tag.key, tag.value) for each in described[0].members for tag in each.client_tags]
        assert tags == [("zone", "a")] * 2
        left = broker.wait_until_stable("k", members=2, partitions=6)
        assert sorted(left.assignment) == ["a", "b"]
        b.beat(member_epoch=-1, **_NO_TASKS)
        for _ in range(3):
            broker.advance(1_000)
            a.beat()
        assert a.tasks == set(range(6))


def test_the_settings_of_a_streams_group() -> None:
    with RunningBroker(TOPICS) as broker, connection(broker) as one:
        broker.configure("k", {"streams.num.standby.replicas": "1"})
        a, b = Member(one, "a"), Member(one, "b")
        for _ in range(4):
            a.beat()
            b.beat()
            broker.advance(1_000)
        (group,) = one.ask(
            "streams_group_describe", 0, group_ids=["k"], include_authorized_operations=False
        ).groups
        standby = [p for each in group.members for task in each.assignment.standby_tasks
                   for p in task.partitions]  # fmt: skip
        assert sorted(standby) == list(range(6))


@pytest.mark.parametrize(
    ("ids", "partitions", "standbys"),
    [("00", 1, 0), (map(str, range(1_001)), 100, 0), ("0", 1, 2**31 - 1)],
    ids=["equal ids", "too many tasks", "too many standbys"],
)
def test_a_group_that_cannot_be_assigned_is_refused(
    ids: Iterable[str], partitions: int, standbys: int
) -> None:
    (part,) = REQUESTS["streams_group_heartbeat"]["topology"]["subtopologies"]
    parts = [part | {"subtopology_id": one, "source_topics": ["t"]} for one in ids]
    with RunningBroker({"t": partitions, "log": partitions}) as broker, connection(broker) as one:
        broker.configure("k", {"streams.initial.rebalance.delay.ms": "0"})
        broker.configure("k", {"streams.num.standby.replicas": str(standbys)})
        topology = {"epoch": 0, "subtopologies": parts}
        assert Member(one, "a").beat(topology=topology) == ["streams_invalid_topology"]
        assert broker._server._parked == {}
