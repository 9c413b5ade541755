# SPDX-License-Identifier: Apache-2.0
"""Unmodified consumers work with `serve`: kafka-python, aiokafka, confluent-kafka and Java."""

from __future__ import annotations

import time
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("kio", reason="kio is not installed: pip install -e '.[serve]'")
pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")
pytest.importorskip("aiokafka", reason="it is not installed: pip install -e '.[aiokafka]'")
pytest.importorskip("confluent_kafka", reason="it is not installed: pip install -e '.[confluent]'")

from kafka_rebalance.testing import RunningBroker
from tests.parity.wire import Connection
from tests.support.broker import missing_tools
from tests.support.live_members import JavaMembers
from tests.support.served_consumers import (
    CONSUMERS,
    GROUP,
    LIBRARIES,
    TOPIC,
    Consumer,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kafka_rebalance.serve.history import StableGeneration

PARTITIONS = 6
ALL = set(range(PARTITIONS))


@pytest.fixture
def broker() -> Iterator[RunningBroker]:
    with RunningBroker({TOPIC: PARTITIONS}, initial_delay_ms=100) as running:
        yield running


def shares(generation: StableGeneration) -> list[int]:
    """Returns the members' numbers of partitions, sorted; asserts that they have all together."""
    owned = [set(topics.get(TOPIC, ())) for topics in generation.assignment.values()]
    assert set.union(*owned) == ALL, generation
    return sorted(map(len, owned))


def settled(broker: RunningBroker, members: int) -> StableGeneration:
    """Waits until so many members have all partitions."""
    return broker.wait_until_stable(GROUP, members=members, partitions=PARTITIONS)


def last_generation(broker: RunningBroker) -> StableGeneration:
    """Waits until a second passes without a new generation; returns the newest one.

    After a cooperative round, a member may join again although nothing is left to move.
    """
    newest = None
    while newest != (newest := broker.history(GROUP)[-1]):
        time.sleep(1)
    return newest


@pytest.mark.parametrize("kind", CONSUMERS)
def test_a_group_grows_shrinks_and_goes_on(kind: type[Consumer], broker: RunningBroker) -> None:
    members: list[Consumer] = []
    with ExitStack() as stack:
        for number, sizes in enumerate([[6], [3, 3], [2, 2, 2], [1, 1, 2, 2]], 1):
            members.append(kind(broker.address, f"c{number}"))
            stack.callback(members[-1].close)
            assert shares(settled(broker, number)) == sizes
        first = settled(broker, 4).assignment["c1"][TOPIC][0]
        members[0].commit(first, 41)
        for left in (3, 2, 1):
            members[left].close()
            assert shares(settled(broker, left)) == [6 // left] * left
        members[0].close()
        again = kind(broker.address, "again")
        stack.callback(again.close)
        settled(broker, 1)
        assert again.committed(first) == 41
        assert again.owned() == ALL


@pytest.mark.parametrize("kind", CONSUMERS)
def test_a_static_bounce_is_no_rebalance(kind: type[Consumer], broker: RunningBroker) -> None:
    with ExitStack() as stack:
        for name in ("i1", "i2"):
            stack.callback(kind(broker.address, name, name).close)
            settled(broker, int(name[1]))
        bounced = kind(broker.address, "i3", "i3")
        settled(broker, 3)
        before = last_generation(broker)
        bounced.close()
        again = kind(broker.address, "i3", "i3")
        stack.callback(again.close)
        while again.owned() != set(before.assignment["i3"][TOPIC]):
            pass  # `owned` waits for the consumer's thread, which polls
        assert broker.history(GROUP)[-1] == before, broker.history(GROUP)


def test_a_mixed_group_of_python_libraries(broker: RunningBroker) -> None:
    with ExitStack() as stack:
        for number, kind in enumerate(LIBRARIES, 1):
            stack.callback(kind(broker.address, kind.__name__).close)
            settled(broker, number)
        assert shares(settled(broker, 3)) == [2, 2, 2]


# Java ---------------------------------------------------------------------------------------------


@pytest.fixture
def java(broker: RunningBroker, tmp_path: Path) -> Iterator[JavaMembers]:
    missing = missing_tools()
    if missing:
        pytest.skip(missing)
    with JavaMembers(broker.address, tmp_path / "java.log") as members:
        yield members


def member(name: str, assignor: str = "range", **fields: Any) -> dict[str, Any]:
    return {
        "client_id": name,
        "group_id": GROUP,
        "assignors": [assignor],
        "topics": [TOPIC],
        "configs": {"auto.commit.interval.ms": "100"},
        **fields,
    }


@pytest.mark.live
@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_java_consumers_grow_and_shrink(
    assignor: str, broker: RunningBroker, java: JavaMembers
) -> None:
    for number, sizes in enumerate([[6], [3, 3], [2, 2, 2], [1, 1, 2, 2]], 1):
        java.tell(add=[member(f"c{number}", assignor)])
        assert shares(settled(broker, number)) == sizes
    java.tell(close=["c4", "c3", "c2"])
    assert shares(settled(broker, 1)) == [6]


@pytest.mark.live
def test_a_java_consumer_goes_on_from_a_commit_and_commits(
    broker: RunningBroker, java: JavaMembers
) -> None:
    """Java continues from a commit of another client, which has metadata; its own has none."""
    host, _, port = broker.address.partition(":")
    offset = {"partition_index": 2, "committed_offset": 41, "committed_metadata": "a note"}
    with closing(Connection(host, int(port), client_id="hand")) as by_hand:
        by_hand.ask(
            "offset_commit",
            2,
            group_id=GROUP,
            generation_id=-1,
            member_id="",
            retention_time=-1,
            topics=[{"name": TOPIC, "partitions": [offset]}],
        )
        java.tell(add=[member("c1")])
        java.tell(close=["c1"])
        wanted = [{"name": TOPIC, "partition_indexes": [2]}]
        found = by_hand.ask("offset_fetch", 5, group_id=GROUP, topics=wanted)
    (one,) = found.topics[0].partitions
    assert (one.committed_offset, one.metadata) == (41, "")


@pytest.mark.live
def test_a_static_java_consumer_bounces_without_a_rebalance(
    broker: RunningBroker, java: JavaMembers
) -> None:
    java.tell(add=[member("c1", group_instance_id="i1"), member("c2", group_instance_id="i2")])
    before = broker.history(GROUP)
    java.tell(close=["c2"])
    java.tell(add=[member("c2", group_instance_id="i2")])
    assert broker.history(GROUP) == before


@pytest.mark.live
def test_a_mixed_group_of_java_and_python(broker: RunningBroker, java: JavaMembers) -> None:
    java.tell(add=[member("Java")])
    with ExitStack() as stack:
        for number, kind in enumerate(LIBRARIES, 2):
            stack.callback(kind(broker.address, kind.__name__).close)
            settled(broker, number)
        assert shares(settled(broker, 4)) == [1, 1, 2, 2]
        assert set(settled(broker, 4).assignment) == {
            "Java",
            "KafkaPython",
            "Confluent",
            "Aiokafka",
        }
