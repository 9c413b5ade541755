# SPDX-License-Identifier: Apache-2.0
"""One of three brokers dies: `snapshot` shows the groups of the other brokers, and reports the
missing groups.

`describe` shows the lags that can be read, and names the partitions without a leader; `history`
shows the groups of the other partitions.

First the dead broker is still in the metadata and does not answer. Later the controller has fenced
it, and its partitions of `__consumer_offsets` have no leader.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance.cli import main
from kafka_rebalance.java.order import string_hash
from kafka_rebalance.wire import consumer_protocol as wire
from tests.support.broker import Broker, missing_tools

pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")

from tests.support.live_members import await_coordinators, join_by_hand
from tests.support.waiting import until

pytestmark = pytest.mark.live

DEAD = 2
OFFSETS_PARTITIONS = 6
GROUPS = [f"group-{n}" for n in range(9)]


def coordinators(server: str) -> dict[str, int]:
    """Returns group -> the broker that leads its partition of `__consumer_offsets`."""
    from kafka import KafkaAdminClient

    with KafkaAdminClient(bootstrap_servers=server) as admin:
        [topic] = admin.describe_topics(["__consumer_offsets"])
    leaders = {one["partition_index"]: one["leader_id"] for one in topic["partitions"]}
    return {g: leaders[(string_hash(g) & 0x7FFFFFFF) % OFFSETS_PARTITIONS] for g in GROUPS}


def create_topic(server: str) -> None:
    """Creates a topic that stays when the broker dies, and one that loses a partition."""
    from kafka import KafkaAdminClient

    with KafkaAdminClient(bootstrap_servers=server) as admin:
        topics = {"t": {"assignments": {0: [0]}}, "lost": {"assignments": {0: [0], 1: [DEAD]}}}
        admin.create_topics(topics, wait_for_metadata=True)


def commit(server: str, group_id: str, partitions: tuple[kr.TopicPartition, ...]) -> None:
    """Commits the beginning of each partition, for a group without members."""
    import kafka

    with kafka.KafkaConsumer(bootstrap_servers=server, group_id=group_id) as consumer:
        wanted = [kafka.TopicPartition(*tp) for tp in partitions]
        consumer.assign(wanted)
        consumer.commit({tp: kafka.OffsetAndMetadata(0, "", -1) for tp in wanted})


def await_fenced(server: str) -> None:
    from kafka import KafkaAdminClient

    with KafkaAdminClient(bootstrap_servers=server) as admin:

        def is_fenced() -> bool:
            brokers = admin.describe_cluster()["brokers"]
            return all(one["broker_id"] != DEAD or one.get("is_fenced") for one in brokers)

        until("the dead broker is fenced", is_fenced)


def test_groups_of_a_dead_broker_are_missing_and_said_to_be(
    capsys: pytest.CaptureFixture[str],
) -> None:
    missing = missing_tools()
    if missing:
        pytest.skip(missing)
    properties = {"offsets.topic.num.partitions": str(OFFSETS_PARTITIONS)}
    with Broker(brokers=3, properties=properties) as broker:
        server = broker.bootstrap_server
        create_topic(server)
        await_coordinators(server, GROUPS)
        subscription = wire.encode_subscription(wire.Subscription(("t", "lost")))
        owned = (kr.TopicPartition("t", 0), *(kr.TopicPartition("lost", p) for p in range(2)))
        assignment = wire.encode_assignment(wire.AssignmentData(owned))
        for group_id in GROUPS:
            commit(server, group_id, owned)
            join_by_hand(server, group_id, subscription, assignment=assignment)
        of = coordinators(server)
        there = {group_id for group_id, broker_id in of.items() if broker_id != DEAD}
        assert there < set(GROUPS), "the dead broker coordinates no group"

        def snapshot() -> tuple[int, set[str], list[str], str]:
            code = main(["snapshot", "--bootstrap-server", server])
            said = capsys.readouterr()
            lines = [json.loads(line) for line in said.out.splitlines()]
            shown = {one["group_id"] for one in lines if "error" not in one}
            return code, shown, [one["error"] for one in lines if "error" in one], said.err

        def history() -> tuple[int, set[str], str]:
            code = main(["history", "--bootstrap-server", server, "--json"])
            said = capsys.readouterr()
            groups = {json.loads(line)["group_id"] for line in said.out.splitlines()}
            return code, groups, said.err

        def described() -> list[dict[str, Any]]:
            main(["describe", "--bootstrap-server", server, "--json"])
            lines = map(json.loads, capsys.readouterr().out.splitlines())
            return [one for one in lines if one.get("group_id") in there and "error" not in one]

        assert snapshot()[:3] == (0, set(GROUPS), [])
        assert history() == (0, set(GROUPS), "")
        before = described()
        broker.kill(DEAD)
        silent = snapshot()
        recorded = [history()]
        while_silent = described()
        await_fenced(server)
        fenced = snapshot()
        recorded.append(history())
        hidden = main(["history", "--bootstrap-server", server, "--group", min({*GROUPS} - there)])
        unread = capsys.readouterr().err
        while_fenced = described()
        some_group = min(there)
        main(["describe", "--bootstrap-server", server, "--group", some_group])
        detail = " ".join(capsys.readouterr().out.split())
        main(["plan", "--bootstrap-server", server, "--group", some_group])
        planned = capsys.readouterr().err

    for answers, without in ((before, []), (while_silent, ["lost-1"]), (while_fenced, ["lost-1"])):
        assert {one["group_id"] for one in answers} == there
        for one in answers:
            assert (one["lag"], one["without_committed_offset"]) == (0, 0)
            found = [f["partitions"] for f in one["findings"] if f["kind"] == "leaderless"]
            assert found == ([without] if without else [])
    assert "leaderless: lost-1: no leader answers" in detail
    assert "Lag: 0 records in 2 partitions; 1 partition without a leader: its lag" in detail
    assert f"{some_group} reads 1 partition without a leader: lost-1. Kafka assigns it" in planned
    for code, shown, errors, said in (silent, fenced):
        assert code == 3
        assert shown == there
        assert errors
        assert all(error.startswith("brokers: ") for error in errors)
        assert "others are missing" in said
    partitions = {g: (string_hash(g) & 0x7FFFFFFF) % OFFSETS_PARTITIONS for g in GROUPS}
    lost = sorted({partitions[g] for g in GROUPS if of[g] == DEAD})
    for code, groups, said in recorded:
        assert (code, groups) == (3, there)
        names = ", ".join(map(str, lost))
        which = f"{len(lost)} of {OFFSETS_PARTITIONS} partitions of __consumer_offsets ({names})"
        assert which in said
    assert hidden == 1
    assert f"({partitions[min({*GROUPS} - there)]}) has no live leader" in unread
    [without_leader] = [error for error in fenced[2] if "no live leader" in error]
    for number in lost:
        assert f"{number}" in without_leader.partition("(")[2]
