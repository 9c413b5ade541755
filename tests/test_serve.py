# SPDX-License-Identifier: Apache-2.0
"""`serve` answers every version of its requests, and keeps topics and groups as a broker does."""

from __future__ import annotations

import struct
import tomllib
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kafka_rebalance as kr

pytest.importorskip("kio", reason="kio is not installed: pip install -e '.[serve]'")

from kafka_rebalance.serve import history
from kafka_rebalance.serve.frames import APIS
from kafka_rebalance.testing import RunningBroker
from tests.parity.wire import Connection
from tests.support.served_broker import (
    ALL_TOPICS,
    REQUESTS,
    TOPICS,
    by_hand,
    connection,
    join,
    running,
)

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def broker() -> Iterator[RunningBroker]:
    with RunningBroker(TOPICS) as running:
        yield running


def test_the_tests_run_with_a_kio_that_the_extra_allows() -> None:
    """With another version of kio, the bytes could differ, or a module could be missing."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extra = project["project"]["optional-dependencies"]["serve"]
    assert set(extra) <= set(project["dependency-groups"]["dev"])


# Versions -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("api", APIS)
def test_every_version_is_answered(api: str, broker: RunningBroker) -> None:
    """kio decodes each answer in the version of its request, to the last byte."""
    with connection(broker) as one:
        for version in range(APIS[api].least, APIS[api].most + 1):
            assert one.ask(api, version, **REQUESTS[api]) is not None


@pytest.mark.parametrize("api", APIS)
def test_every_version_with_empty_lists_is_answered(api: str, broker: RunningBroker) -> None:
    """A LeaveGroup of version 3 without members once ended its connection with a traceback."""
    fields = {k: [] if isinstance(value, list) else value for k, value in REQUESTS[api].items()}
    with connection(broker) as one:
        for version in range(APIS[api].least, APIS[api].most + 1):
            assert one.ask(api, version, **fields) is not None


def test_a_leave_without_members_is_answered_with_none(broker: RunningBroker) -> None:
    with connection(broker) as one:
        join(one)
        answer = one.ask("leave_group", 3, group_id="g", members=[])
    assert (answer.error_code.name, answer.members) == ("none", ())


def test_a_newer_version_of_api_versions_is_answered_in_version_0(broker: RunningBroker) -> None:
    """Java 4.4.0 first sends version 5, and then a version that the answer lists."""
    with by_hand(broker) as one:
        one.sendall(struct.pack(">ihhih", 10, 18, 5, 7, -1))
        length, correlation_id, error, count = struct.unpack(">iihi", one.recv(14))
    assert (correlation_id, error, count) == (7, 35, len(APIS))
    assert length == 10 + 6 * count


# Topics and groups --------------------------------------------------------------------------------


def names(answer: Any) -> list[tuple[str, str]]:
    return [(one.name, one.error_code.name) for one in answer]


def test_topics_are_made_grown_and_deleted(broker: RunningBroker) -> None:
    def new(name: str, partitions: int, replicas: int = 1) -> dict[str, Any]:
        fields = {"num_partitions": partitions, "replication_factor": replicas}
        return {"name": name, **fields, "assignments": [], "configs": []}

    wanted = [new("a", 3), new("orders", 1), new("b", 0), new("c/", 1), new("d", 1, 2)]
    wanted += [new("e", -1), new("f", 100_001)]
    with connection(broker) as one:
        made = one.ask("create_topics", 7, topics=wanted, timeout=1, validate_only=False)
        counts = [("a", 2), ("e", 4), ("no", 2)]
        more = [{"name": name, "count": count, "assignments": None} for name, count in counts]
        grew = one.ask("create_partitions", 3, topics=more, timeout=1, validate_only=False)
        gone = one.ask("delete_topics", 5, topic_names=["a", "no"], timeout=1)
        left = one.ask("metadata", 7, **ALL_TOPICS)
    assert names(made.topics) == [
        ("a", "none"),
        ("orders", "topic_already_exists"),
        ("b", "invalid_partitions"),
        ("c/", "invalid_topic_exception"),
        ("d", "invalid_replication_factor"),
        ("e", "none"),
        ("f", "policy_violation"),
    ]
    assert names(grew.results) == [
        ("a", "invalid_partitions"),
        ("e", "none"),
        ("no", "unknown_topic_or_partition"),
    ]
    assert names(gone.responses) == [("a", "none"), ("no", "unknown_topic_or_partition")]
    assert {one.name: len(one.partitions) for one in left.topics} == {**TOPICS, "e": 4}


def test_a_new_topic_of_an_old_name_has_another_id(broker: RunningBroker) -> None:
    with connection(broker) as one:

        def topic_id() -> Any:
            topics = [{"name": "orders", "topic_id": None}]
            fields = {**REQUESTS["metadata"], "topics": topics}
            return one.ask("metadata", 12, **fields).topics[0].topic_id

        before = topic_id()
        broker.grow("orders", 8)
        assert topic_id() == before
        one.ask("delete_topics", 5, topic_names=["orders"], timeout=1)
        broker.add_topic("orders", 2)
        assert topic_id() != before


def test_a_client_makes_the_topic_that_it_asks_for_if_that_is_allowed() -> None:
    asked = {**REQUESTS["metadata"], "topics": [{"name": n, "topic_id": None} for n in ("a", "$")]}
    unknown, wrong = ("a", "unknown_topic_or_partition", 0), ("$", "invalid_topic_exception", 0)
    for auto_create in (0, 3):
        with RunningBroker({}, auto_create=auto_create) as broker, connection(broker) as one:
            for allowed, found in (False, unknown), (True, ("a", "none", 3)):
                topics = one.ask("metadata", 12, **asked | {"allow_auto_topic_creation": allowed})
                rows = [(t.name, t.error_code.name, len(t.partitions)) for t in topics.topics]
                assert rows == [found if auto_create else unknown, wrong]


@pytest.mark.parametrize("version", [10, 11])
def test_metadata_by_id_before_ids_are_supported_is_refused(
    version: int, broker: RunningBroker
) -> None:
    """As Kafka 4.4.0 does: an error for each topic, and no brokers."""
    with connection(broker) as one:
        for topic_id in (None, uuid.uuid4()):
            topics = [{"name": None, "topic_id": topic_id}, {"name": "orders", "topic_id": None}]
            answer = one.ask("metadata", version, **{**REQUESTS["metadata"], "topics": topics})
            refused = [(topic.name, topic.error_code.name) for topic in answer.topics]
            assert refused == [("", "invalid_request"), ("orders", "invalid_request")]
            assert (answer.brokers, answer.controller_id) == ((), -1)


def test_commits_to_partitions_that_do_not_exist_are_refused(broker: RunningBroker) -> None:
    """As in Kafka, such a commit makes no group."""
    entry = {"committed_offset": 5, "committed_leader_epoch": -1, "committed_metadata": ""}

    def commit(one: Connection, topic: str, *partitions: int) -> list[str]:
        entries = [{**entry, "partition_index": partition} for partition in partitions]
        answer = one.ask(
            "offset_commit",
            8,
            group_id="g",
            generation_id=-1,
            member_id="",
            group_instance_id=None,
            topics=[{"name": topic, "partitions": entries}],
        )
        return [p.error_code.name for p in answer.topics[0].partitions]

    unknown = "unknown_topic_or_partition"
    with connection(broker) as one:
        assert commit(one, "no", 0) == [unknown]
        assert one.ask("list_groups", 0).groups == ()
        assert commit(one, "orders", 6, 5) == [unknown, "none"]
        found = one.ask("offset_fetch", 5, group_id="g", topics=None)
    assert [(t.name, [p.partition_index for p in t.partitions]) for t in found.topics] == [
        ("orders", [5])
    ]


def test_offsets_of_topics_by_id(broker: RunningBroker) -> None:
    """From version 10 on, OffsetCommit and OffsetFetch name topics by id only."""
    unknown = uuid.UUID(int=7)
    with connection(broker) as one:
        named = [{"name": "orders", "topic_id": None}]
        (orders,) = one.ask("metadata", 12, **{**REQUESTS["metadata"], "topics": named}).topics
        offset = {"partition_index": 5, "committed_offset": 8, "committed_metadata": "x"}
        committed = one.ask(
            "offset_commit",
            10,
            group_id="g",
            generation_id_or_member_epoch=-1,
            member_id="",
            topics=[{"topic_id": i, "partitions": [offset]} for i in (orders.topic_id, unknown)],
        )
        wanted = [{"topic_id": i, "partition_indexes": [5]} for i in (orders.topic_id, unknown)]
        groups = [{"group_id": "g", "member_epoch": -1, "topics": wanted}]
        (found,) = one.ask("offset_fetch", 10, groups=groups, require_stable=False).groups
    assert [(t.topic_id, t.partitions[0].error_code.name) for t in committed.topics] == [
        (orders.topic_id, "none"),
        (unknown, "unknown_topic_id"),
    ]
    seen = [(t.topic_id, t.partitions[0].committed_offset) for t in found.topics]
    assert seen == [(orders.topic_id, 8), (unknown, -1)]


def test_groups_are_listed_by_state_and_type(broker: RunningBroker) -> None:
    with connection(broker) as one:
        join(one)

        def listed(states: list[str], types: list[str]) -> list[str]:
            answer = one.ask("list_groups", 5, states_filter=states, types_filter=types)
            return [group.group_id for group in answer.groups]

        assert listed([], []) == ["g"]
        assert listed(["completingrebalance"], ["Classic"]) == ["g"]
        assert listed(["Stable"], []) == []
        assert listed(["Nonsense"], []) == []
        assert listed([], ["consumer"]) == []


def test_racks_of_a_snapshot_are_those_of_the_brokers(tmp_path: Path) -> None:
    racks = (("a", "b"), ("b", "b"), (None, "a"))
    group = kr.GroupSpec("g", (kr.Topic("t", 3, racks),), (kr.Member("m", ("t",)),))
    file = tmp_path / "groups.jsonl"
    file.write_text(group.to_json() + "\n", encoding="utf-8")
    with running("--topics-of", str(file)) as (_, host, port), Connection(host, port, "c") as one:
        answer = one.ask("metadata", 9, **{**REQUESTS["metadata"], "topics": None})
    rack_of = {broker.node_id: broker.rack for broker in answer.brokers}
    (topic,) = answer.topics
    seen = [tuple(rack_of[node] for node in p.replica_nodes) for p in topic.partitions]
    assert tuple(seen) == racks
    assert all(len(set(p.replica_nodes)) == 2 for p in topic.partitions)


def test_old_generations_of_all_groups_are_dropped(
    broker: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups that come and go must not fill the memory of a server that runs for long."""
    monkeypatch.setattr(history, "MOST_GENERATIONS", 5)
    groups = [f"g{n % 4}" for n in range(9)]
    for n, group_id in enumerate(groups):
        with connection(broker) as one:
            joined = join(one, group_id)
            me = {"group_id": group_id, "member_id": joined.member_id}
            one.ask("sync_group", 1, **me, generation_id=joined.generation_id, assignments=[])
            broker.wait_until_stable(group_id, members=1, after=n // 4 * 2)
            one.ask("leave_group", 1, **me)
    assert {one: len(broker.history(one)) for one in groups} == {"g0": 2, "g1": 1, "g2": 1, "g3": 1}
    assert broker._server.history._generations.keys() == {"g0", "g1", "g2", "g3"}
