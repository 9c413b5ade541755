# SPDX-License-Identifier: Apache-2.0
"""Unmodified consumers of kafka-python, aiokafka, confluent-kafka and Java work with `serve`."""

from __future__ import annotations

import time
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("kio", reason="kio is not installed: pip install -e '.[serve]'")
pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")
pytest.importorskip("aiokafka", reason="no aiokafka: pip install -e '.[aiokafka]'")
pytest.importorskip("confluent_kafka", reason="no confluent-kafka: pip install -e '.[confluent]'")

from kafka_rebalance.testing import RunningBroker
from tests.parity.wire import Connection
from tests.support.java_consumers import (
    JAVA_CONSUMERS,
    Java,
    JavaCooperative,
    OldJava,
    OldJavaCooperative,
    jar_of,
    missing_java,
)
from tests.support.live_members import JavaMembers
from tests.support.served_consumers import (
    CONSUMERS,
    GROUP,
    LIBRARIES,
    TOPIC,
    ConfluentByBroker,
    ConfluentCooperative,
    Consumer,
    KafkaPythonCooperative,
)
from tests.support.waiting import FAR_S, until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from kafka_rebalance.serve.history import StableGeneration

PARTITIONS = 6
ALL = set(range(PARTITIONS))


@pytest.fixture
def broker() -> Iterator[RunningBroker]:
    with RunningBroker({TOPIC: PARTITIONS}, initial_delay_ms=100) as running:
        for partition in range(PARTITIONS):
            running.produce(TOPIC, *(b"%d" % one for one in range(50)), partition=partition)
        yield running


def shares(generation: StableGeneration) -> list[int]:
    """Returns the members' numbers of partitions, sorted; asserts that no partition is missing."""
    owned = [set(topics.get(TOPIC, ())) for topics in generation.assignment.values()]
    assert set.union(*owned) == ALL, generation
    return sorted(map(len, owned))


def settled(broker: RunningBroker, members: int) -> StableGeneration:
    """Waits until this number of members own all partitions."""
    return broker.wait_until_stable(GROUP, members=members, partitions=PARTITIONS, timeout_s=FAR_S)


def last_generation(broker: RunningBroker) -> StableGeneration:
    """Waits until a second passes without a new generation; returns the newest one.

    After a cooperative round, a member may join again although nothing is left to move.
    """
    newest = None
    while newest != (newest := broker.history(GROUP)[-1]):
        time.sleep(1)
    return newest


def await_owned(static: Consumer, before: StableGeneration) -> None:
    owned = set(before.assignment[static.client_id][TOPIC])
    until(f"{static.client_id} has {owned} again", lambda: static.owned() == owned)


JAVA = [pytest.param(kind, marks=pytest.mark.live) for kind in JAVA_CONSUMERS]
every_kind = pytest.mark.parametrize("kind", [*CONSUMERS, *JAVA])


def started(kind: type[Consumer], broker: RunningBroker, name: str, *more: str) -> Consumer:
    if issubclass(kind, Java) and (missing := missing_java()):
        pytest.skip(missing)
    return kind(broker.address, name, *more)


@every_kind
def test_a_group_grows_shrinks_and_goes_on(kind: type[Consumer], broker: RunningBroker) -> None:
    members: list[Consumer] = []
    with ExitStack() as stack:
        for number, sizes in enumerate([[6], [3, 3], [2, 2, 2], [1, 1, 2, 2]], 1):
            members.append(started(kind, broker, f"c{number}"))
            stack.callback(members[-1].close)
            assert shares(settled(broker, number)) == sizes
        first = settled(broker, 4).assignment["c1"][TOPIC][0]
        members[0].commit(first, 41)
        for left in (3, 2, 1):
            members[left].close()
            assert shares(settled(broker, left)) == [6 // left] * left
        members[0].close()
        again = started(kind, broker, "again")
        stack.callback(again.close)
        settled(broker, 1)
        assert again.committed(first) == again.goes_on_at(first) == 41
        assert again.owned() == ALL
        assert {again.goes_on_at(other) for other in ALL - {first}} == {0}


@every_kind
def test_a_static_bounce_is_no_rebalance(kind: type[Consumer], broker: RunningBroker) -> None:
    with ExitStack() as stack:
        for name in ("i1", "i2"):
            stack.callback(started(kind, broker, name, name).close)
            settled(broker, int(name[1]))
        bounced = started(kind, broker, "i3", "i3")
        settled(broker, 3)
        before = last_generation(broker)
        bounced.close()
        again = started(kind, broker, "i3", "i3")
        stack.callback(again.close)
        await_owned(again, before)
        assert broker.history(GROUP)[-1] == before, broker.history(GROUP)


def test_the_broker_removes_only_the_killed_member_of_a_consumer_group(
    broker: RunningBroker,
) -> None:
    with ExitStack() as stack:
        for number, name in enumerate("ab", 1):
            stack.callback(started(ConfluentByBroker, broker, name).close)
            before = settled(broker, number)
        broker.kill("a")
        after = settled(broker, 1)
        assert after.member_ids == {"b": before.member_ids["b"]}
        assert after.generation_id == before.generation_id + 1
        broker.let_back("a")


# Mixed groups -------------------------------------------------------------------------------------

EAGER: tuple[type[Consumer], ...] = (*LIBRARIES, Java, OldJava)
COOPERATIVE = (KafkaPythonCooperative, ConfluentCooperative, JavaCooperative, OldJavaCooperative)


def even(members: int) -> list[int]:
    each, more = divmod(PARTITIONS, members)
    return [each] * (members - more) + [each + 1] * more


def live_together(broker: RunningBroker, kinds: Sequence[type[Consumer]]) -> None:
    """All join, each commits, and they leave in the order of joining, so that others lead.

    The last consumer, and then a new one of the first library, continue from all the commits.
    """
    committed = {}
    with ExitStack() as stack:
        members = []
        for number, kind in enumerate(kinds, 1):
            members.append(started(kind, broker, kind.__name__))
            stack.callback(members[-1].close)
            assert shares(settled(broker, number)) == even(number)
        together = last_generation(broker)
        assert set(together.assignment) == {kind.__name__ for kind in kinds}
        for one in members:
            partition = together.assignment[one.client_id][TOPIC][0]
            committed[partition] = 10 + partition
            one.commit(partition, committed[partition])
        for number in range(len(members) - 1, 0, -1):
            members.pop(0).close()
            assert shares(settled(broker, number)) == even(number)
        assert {p: members[0].committed(p) for p in committed} == committed
        members.pop().close()
        again = started(kinds[0], broker, "again")
        stack.callback(again.close)
        assert {p: again.goes_on_at(p) for p in committed} == committed


def test_a_mixed_group_of_python_libraries(broker: RunningBroker) -> None:
    live_together(broker, LIBRARIES)


@pytest.mark.live
@pytest.mark.parametrize("kinds", [EAGER, COOPERATIVE], ids=["eager", "cooperative"])
def test_a_mixed_group_of_all_libraries(
    kinds: tuple[type[Consumer], ...], broker: RunningBroker
) -> None:
    live_together(broker, kinds)


@pytest.mark.live
def test_a_static_bounce_in_a_mixed_group_is_no_rebalance(broker: RunningBroker) -> None:
    with ExitStack() as stack:
        members = {}
        for number, kind in enumerate(EAGER, 1):
            name = kind.__name__
            members[name] = stack.enter_context(closing(started(kind, broker, name, name)))
            settled(broker, number)
        before = last_generation(broker)
        for kind in EAGER:
            name = kind.__name__
            members[name].close()
            again = stack.enter_context(closing(started(kind, broker, name, name)))
            await_owned(again, before)
        assert broker.history(GROUP)[-1] == before, broker.history(GROUP)


# Java ---------------------------------------------------------------------------------------------


@pytest.mark.live
def test_the_old_java_consumers_are_old() -> None:
    if missing := missing_java():
        pytest.skip(missing)
    assert jar_of(Java).startswith("kafka-clients-4.4.")
    assert jar_of(OldJava).startswith("kafka-clients-3.9.")


@pytest.mark.live
def test_a_java_consumer_commits_by_itself(broker: RunningBroker, tmp_path: Path) -> None:
    """The first commit is not Java's and has a note; Java reads the rest, and commits the end
    without a note.
    """
    if missing := missing_java():
        pytest.skip(missing)
    host, _, port = broker.address.partition(":")
    offset = {"partition_index": 2, "committed_offset": 41, "committed_metadata": "a note"}
    member = {
        "client_id": "c1",
        "group_id": GROUP,
        "assignors": ["range"],
        "topics": [TOPIC],
        "configs": {"auto.commit.interval.ms": "100"},
    }
    with (
        closing(Connection(host, int(port), client_id="hand")) as by_hand,
        JavaMembers(broker.address, tmp_path / "java.log") as java,
    ):
        by_hand.ask(
            "offset_commit",
            2,
            group_id=GROUP,
            generation_id=-1,
            member_id="",
            retention_time=-1,
            topics=[{"name": TOPIC, "partitions": [offset]}],
        )
        java.tell(add=[member])
        java.tell(close=["c1"])
        wanted = [{"name": TOPIC, "partition_indexes": [2]}]
        found = by_hand.ask("offset_fetch", 5, group_id=GROUP, topics=wanted)
    (one,) = found.topics[0].partitions
    assert (one.committed_offset, one.metadata) == (50, "")
