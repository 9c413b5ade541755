# SPDX-License-Identifier: Apache-2.0
"""`kafka_rebalance.testing` kills clients, moves the clock, adds partitions, reads histories."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import pytest

pytest.importorskip("kio", reason="kio is not installed: pip install -e '.[serve]'")

from kafka_rebalance import testing
from kafka_rebalance.errors import GroupError
from kafka_rebalance.serve.connections import Connections
from kafka_rebalance.testing import RunningBroker
from tests.support.served_consumers import GROUP, TOPIC, Confluent, Consumer, KafkaPython
from tests.support.waiting import FAR_S

needs_kafka_python = pytest.mark.skipif(
    find_spec("kafka") is None,
    reason="kafka-python is not installed: pip install -e '.[kafka]'",
)
needs_confluent = pytest.mark.skipif(
    find_spec("confluent_kafka") is None,
    reason="no confluent-kafka: pip install -e '.[confluent]'",
)

serve_kafka = testing.serve_kafka
Serve = Callable[..., RunningBroker]


@pytest.fixture
def start(request: pytest.FixtureRequest) -> Callable[[Consumer], Consumer]:
    """Returns a function that registers a consumer, which is closed after the test, before the
    broker.
    """

    def started(consumer: Consumer) -> Consumer:
        request.addfinalizer(consumer.close)
        return consumer

    return started


Start = Callable[[Consumer], Consumer]


@needs_confluent
def test_a_dead_consumer_is_replaced(serve_kafka: Serve, start: Start) -> None:
    """The killed consumer has a session timeout of 45 s, for which the test does not wait."""
    broker = serve_kafka({TOPIC: 6})
    start(Confluent(broker.address, "a"))
    start(Confluent(broker.address, "b"))
    shared = broker.wait_until_stable(GROUP, members=2, partitions=6)
    assert {name: len(topics[TOPIC]) for name, topics in shared.assignment.items()} == {
        "a": 3,
        "b": 3,
    }
    broker.kill("a")
    left = broker.wait_until_stable(GROUP, members=1, partitions=6)
    assert left.assignment == {"b": {TOPIC: [0, 1, 2, 3, 4, 5]}}
    assert left.leader == "b"
    assert left.at_ms - shared.at_ms >= 45_000
    broker.let_back("a")
    back = broker.wait_until_stable(GROUP, members=2, partitions=6)
    assert back.member_ids["a"] != shared.member_ids["a"]
    assert {*back.assignment["a"][TOPIC], *back.assignment["b"][TOPIC]} == set(range(6))


@needs_confluent
def test_an_hour_passes_for_living_consumers(serve_kafka: Serve, start: Start) -> None:
    """Heartbeats keep the sessions of living consumers while the clock is moved by an hour.

    kafka-python 3.0.12 is not used: it can stop its heartbeats after a quick rejoin.
    """
    broker = serve_kafka({TOPIC: 6})
    start(Confluent(broker.address, "a"))
    before = broker.wait_until_stable(GROUP, members=1, partitions=6)
    generations = broker.history(GROUP)
    broker.advance(3_600_000)
    assert broker.history(GROUP) == generations
    broker.advance(3_600_000, heartbeats=False)
    after = broker.wait_until_stable(GROUP, members=1, after=before.generation_id)
    assert after.member_ids != before.member_ids


@needs_confluent
def test_new_partitions_reach_a_consumer(serve_kafka: Serve, start: Start) -> None:
    """kafka-python 3.0.12 is not used: it can stop its heartbeats after a quick rejoin."""
    broker = serve_kafka({TOPIC: 2})
    consumer = start(_QuickMetadata(broker.address, "a"))
    before = broker.wait_until_stable(GROUP, members=1, partitions=2)
    broker.grow(TOPIC, 5)
    after = broker.wait_until_stable(GROUP, members=1, partitions=5)
    assert after.assignment == {"a": {TOPIC: [0, 1, 2, 3, 4]}}
    assert after.generation_id > before.generation_id
    consumer.commit(4, 17)
    assert consumer.committed(4) == 17


class _QuickMetadata(Confluent):
    """A consumer that asks for metadata every 200 ms, not every 5 minutes."""

    settings: ClassVar[dict[str, Any]] = {"topic.metadata.refresh.interval.ms": 200}


@needs_confluent
def test_a_cooperative_history_has_both_rounds(serve_kafka: Serve, start: Start) -> None:
    broker = serve_kafka({TOPIC: 4})
    cooperative = type("Cooperative", (Confluent,), {"assignor": "cooperative-sticky"})
    start(cooperative(broker.address, "a"))
    first = broker.wait_until_stable(GROUP, members=1, partitions=4)
    start(cooperative(broker.address, "b"))
    third = broker.wait_until_stable(GROUP, members=2, partitions=4)
    _, second, _ = broker.history(GROUP)
    assert [one.protocol_name for one in (first, second, third)] == ["cooperative-sticky"] * 3
    assert second.assignment["b"] == {}
    owned = [len(topics[TOPIC]) for topics in third.assignment.values()]
    assert owned == [2, 2]
    assert broker.history(GROUP) == [first, second, third]


@needs_kafka_python
def test_a_broker_goes_on_from_its_log(serve_kafka: Serve, start: Start, tmp_path: Path) -> None:
    with RunningBroker({TOPIC: 2}, log_dir=tmp_path) as broker:
        consumer = KafkaPython(broker.address, "a")
        broker.wait_until_stable(GROUP, members=1, partitions=2)
        consumer.commit(1, 17)
        consumer.close()
    broker = serve_kafka({TOPIC: 2}, log_dir=tmp_path)
    again = start(KafkaPython(broker.address, "b"))
    assert broker.wait_until_stable(GROUP, members=1).generation_id > 1
    assert again.committed(1) == 17


# Brokers that fail --------------------------------------------------------------------------------


def leaves_nothing(log_dir: Path) -> None:
    """Asserts that no thread of the broker is left, and that the log is no longer locked."""
    assert "kafka-rebalance-serve" not in [thread.name for thread in threading.enumerate()]
    with RunningBroker({TOPIC: 1}, log_dir=log_dir) as later:
        later.advance(1)


def test_a_broker_that_cannot_start_leaves_nothing(tmp_path: Path) -> None:
    async def fails(_: Connections) -> Connections:
        raise OSError("no port is free")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Connections, "__aenter__", fails)
        with pytest.raises(OSError, match="no port is free"):
            RunningBroker({TOPIC: 1}, log_dir=tmp_path).__enter__()
    leaves_nothing(tmp_path)


@pytest.mark.parametrize("place", ["__aenter__", "__aexit__"])
def test_a_broker_that_hangs_leaves_nothing(place: str, tmp_path: Path) -> None:
    async def hangs(*_: object) -> None:
        await asyncio.sleep(60)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Connections, place, hangs)
        patch.setattr(testing, "PATIENCE_S", 0.3)
        with (
            pytest.raises(TimeoutError, match=r"broker: no answer of its thread in 0.3 s"),
            RunningBroker({TOPIC: 1}, log_dir=tmp_path),
        ):
            pass
    leaves_nothing(tmp_path)


def test_a_broker_whose_thread_is_stuck_gives_up_its_log(tmp_path: Path) -> None:
    stuck = threading.Event()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(testing, "PATIENCE_S", 0.3)
        broker = RunningBroker({TOPIC: 1}, log_dir=tmp_path)
        with pytest.raises(TimeoutError, match=r"broker: no answer"), broker:
            broker._loop.call_soon_threadsafe(stuck.wait)
        assert broker._thread.daemon
    with RunningBroker({TOPIC: 1}, log_dir=tmp_path) as later:
        later.advance(1)
    stuck.set()
    broker._thread.join(testing.PATIENCE_S)
    assert not broker._thread.is_alive()


def test_a_broker_that_never_starts_has_no_lock(tmp_path: Path) -> None:
    never = RunningBroker({TOPIC: 1}, log_dir=tmp_path)
    leaves_nothing(tmp_path)
    assert never.recovered == (0, 0)


def test_wrong_names_are_refused(serve_kafka: Serve) -> None:
    broker = serve_kafka({TOPIC: 1})
    with pytest.raises(ValueError, match="client_id: no member has the client id nobody"):
        broker.kill("nobody")
    assert not broker._server.connections._cut_off  # a client of this name may come later
    with pytest.raises(TimeoutError, match="billing: not Stable with 1 member within 0 s: no such"):
        broker.wait_until_stable(GROUP, members=1, timeout_s=0)
    with pytest.raises(TypeError, match="a key or value: a str is not bytes"):
        broker.produce(TOPIC, "apples")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "partitions", "problem"),
    [
        ("bad name", -3, 'name: "bad name" is not a name of a topic; give 1 to 249 of'),
        ("", 1, 'name: "" is not a name of a topic'),
        ("pay", -3, 'partitions: "pay" cannot have -3 partitions; give a whole number from 1'),
        ("pay", "3", 'partitions: "pay" cannot have 3 partitions; give a whole number from 1'),
        ("pay", 99_995, 'partitions: "pay" would have 99995, other topics have 6; all topics'),
        (TOPIC, 7, "name: orders is served already; grow it, or remove it"),
    ],
)
def test_wrong_topics_are_refused(
    name: str, partitions: int, problem: str, serve_kafka: Serve
) -> None:
    broker = serve_kafka({TOPIC: 6})
    with pytest.raises(GroupError) as raised:
        broker.add_topic(name, partitions)
    assert str(raised.value).startswith(problem)
    broker.add_topic("pay", 99_994)


@pytest.mark.parametrize(
    ("name", "partitions", "problem"),
    [
        (TOPIC, 2, "partitions: orders has 6, 2 are not more; a topic only grows"),
        (TOPIC, 6, "partitions: orders has 6, 6 are not more; a topic only grows"),
        (TOPIC, 100_001, 'partitions: "orders" would have 100001, other topics have 0; all'),
        ("nope", 3, 'name: "nope" is not a topic of this cluster; add it first'),
    ],
)
def test_wrong_growth_is_refused(
    name: str, partitions: int, problem: str, serve_kafka: Serve
) -> None:
    broker = serve_kafka({TOPIC: 6})
    with pytest.raises(GroupError) as raised:
        broker.grow(name, partitions)
    assert str(raised.value).startswith(problem)
    broker.grow(TOPIC, 100_000)


def test_a_broker_with_wrong_topics_does_not_begin() -> None:
    with pytest.raises(GroupError, match='topics: "bad name" is not a name of a topic'):
        RunningBroker({"bad name": 3})


@needs_kafka_python
def test_a_snapshot_that_is_not_read_to_its_end_leaves_no_trace(serve_kafka: Serve) -> None:
    """Its client is closed before the interpreter stops the client's thread."""
    code = (
        "import sys\nfrom kafka_rebalance.live import snapshot_lines\n"
        "lines = snapshot_lines(sys.argv[1], ['g'])\nnext(lines)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, serve_kafka({TOPIC: 1}).address],
        capture_output=True,
        text=True,
        check=True,
        timeout=FAR_S,
    )
    assert run.stderr == ""


def test_without_pytest_the_import_says_how_to_install_it() -> None:
    code = "import sys; sys.modules['pytest'] = None; import kafka_rebalance.testing"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    expected = "ImportError: kafka_rebalance.testing needs pytest: pip install pytest"
    assert ran.stderr.splitlines()[-1] == expected
