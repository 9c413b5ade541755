# SPDX-License-Identifier: Apache-2.0
"""Each rule for settings, beside a real client or the coordinator that does what the rule says."""

from __future__ import annotations

import contextlib
import logging
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_rebalance import testing
from kafka_rebalance.playback.driver import Driver
from kafka_rebalance.serve.cluster import ServedTopic
from kafka_rebalance.settings.clients import Client, Library
from kafka_rebalance.settings.files import judge
from kafka_rebalance.settings.rule import Breach, Surroundings
from kafka_rebalance.settings.rules import RULES
from kafka_rebalance.testing import RunningBroker
from tests.support.coordinator_oracle import JAR, CoordinatorOracle
from tests.support.java_consumers import Java, missing_java
from tests.support.served_consumers import (
    GROUP,
    HEARTBEAT_MS,
    POLL_S,
    TOPIC,
    Aiokafka,
    Confluent,
    Consumer,
)
from tests.support.settings_clients import COOPERATIVE, RANGE, refusal
from tests.support.waiting import FAR_S, until

serve_kafka = testing.serve_kafka

JAVA: Library = "java"
LIBRDKAFKA: Library = "librdkafka"
KAFKA_PYTHON: Library = "kafka-python"
AIOKAFKA: Library = "aiokafka"
Given = dict[str, Any]
CONSUMER = {"group.protocol": "consumer"}

# Rule -> library -> settings that the client refuses, and nearly the same ones, which it accepts.
REFUSED: dict[str, dict[Library, tuple[Given, Given]]] = {
    "value": {
        JAVA: ({"session.timeout.ms": "45s"}, {"session.timeout.ms": "45000"}),
        LIBRDKAFKA: ({"enable.auto.commit": "yes"}, {"enable.auto.commit": "true"}),
        KAFKA_PYTHON: ({"session_timeout_ms": "45s"}, {"session_timeout_ms": 45_000}),
    },
    "limits": {
        LIBRDKAFKA: ({"max.poll.interval.ms": 86_400_001}, {"max.poll.interval.ms": 86_400_000}),
    },
    "refused-name": {
        LIBRDKAFKA: ({"key.deserializer": "x"}, {}),
        KAFKA_PYTHON: ({"sesion_timeout_ms": 45_000}, {"session_timeout_ms": 45_000}),
        AIOKAFKA: ({"sesion_timeout_ms": 45_000}, {"session_timeout_ms": 45_000}),
    },
    "auto-offset-reset": {
        JAVA: ({"auto.offset.reset": "smallest"}, {"auto.offset.reset": "by_duration:PT1H"}),
        LIBRDKAFKA: ({"auto.offset.reset": "none"}, {"auto.offset.reset": "error"}),
    },
    "heartbeat-interval": {
        JAVA: ({"heartbeat.interval.ms": 45_000}, {"heartbeat.interval.ms": 44_999}),
        KAFKA_PYTHON: ({"heartbeat_interval_ms": 45_000}, {"heartbeat_interval_ms": 44_999}),
    },
    "poll-below-session": {
        LIBRDKAFKA: ({"max.poll.interval.ms": 44_999}, {"max.poll.interval.ms": 45_000}),
    },
    "request-timeout": {
        KAFKA_PYTHON: ({"request_timeout_ms": 500}, {"request_timeout_ms": 501}),
    },
    "unknown-assignor": {
        LIBRDKAFKA: (
            {"partition.assignment.strategy": "sticky"},
            {"partition.assignment.strategy": "range"},
        ),
    },
    "assignor-class": {
        JAVA: (
            {"partition.assignment.strategy": "range"},
            {"partition.assignment.strategy": RANGE},
        ),
    },
    "no-assignor": {
        KAFKA_PYTHON: (
            {"partition_assignment_strategy": []},
            {"partition_assignment_strategy": ["range"]},
        ),
    },
    "mixed-assignors": {
        LIBRDKAFKA: (
            {"partition.assignment.strategy": "cooperative-sticky,range"},
            {"partition.assignment.strategy": "cooperative-sticky"},
        ),
        KAFKA_PYTHON: (
            {"partition_assignment_strategy": ["range", "cooperative-sticky"]},
            {"partition_assignment_strategy": ["cooperative-sticky"]},
        ),
    },
    "instance-id": {
        JAVA: ({"group.instance.id": "pod/0"}, {"group.instance.id": "pod-0"}),
    },
    "group-protocol": {
        JAVA: ({"group.protocol": "modern"}, {"group.protocol": "CONSUMER"}),
        LIBRDKAFKA: ({"group.protocol": "modern"}, {"group.protocol": "CONSUMER"}),
    },
    "no-consumer-protocol": {
        KAFKA_PYTHON: ({"group_protocol": "classic"}, {}),
        AIOKAFKA: ({"group_protocol": "classic"}, {}),
    },
    **{
        f"consumer-{name.removesuffix('.ms').replace('.', '-')}": {
            JAVA: ({name: value, **CONSUMER}, CONSUMER),
            LIBRDKAFKA: ({name: value.rpartition(".")[2].lower(), **CONSUMER}, CONSUMER),
        }
        for name, value in (
            ("session.timeout.ms", "45000"),
            ("heartbeat.interval.ms", "3000"),
        )
    },
    "consumer-partition-assignment-strategy": {
        JAVA: ({"partition.assignment.strategy": RANGE, **CONSUMER}, CONSUMER),
        LIBRDKAFKA: ({"partition.assignment.strategy": "range", **CONSUMER}, CONSUMER),
    },
    "consumer-protocol-type": {
        LIBRDKAFKA: ({"group.protocol.type": "consumer", **CONSUMER}, CONSUMER),
    },
    "remote-assignor-refused": {
        JAVA: (
            {"group.remote.assignor": "uniform"},
            {"group.remote.assignor": "uniform", **CONSUMER},
        ),
    },
}
CASES = [(rule, library, *given) for rule, of in REFUSED.items() for library, given in of.items()]


def broken(library: Library, given: Given, around: Surroundings = Surroundings()) -> list[str]:  # noqa: B008
    return [one.rule.id for one in breaches(library, given, around)]


def breaches(library: Library, given: Given, around: Surroundings = Surroundings()) -> list[Breach]:  # noqa: B008
    return list(judge([Client.of(library, given)], around))


@pytest.mark.parametrize(
    ("rule", "library", "wrong", "right"),
    [pytest.param(*case, id=f"{case[0]}-{case[1]}") for case in CASES if case[1] != JAVA],
)
def test_the_client_refuses_these_settings(
    rule: str,
    library: Library,
    wrong: Given,
    right: Given,
    serve_kafka: Callable[..., RunningBroker],
) -> None:
    address = serve_kafka({"t": 1}).address if library == KAFKA_PYTHON else "127.0.0.1:1"
    assert refusal(library, wrong, address) is not None
    assert refusal(library, right, address) is None
    assert rule in broken(library, wrong)
    assert rule not in broken(library, right)


@pytest.mark.live
@pytest.mark.skipif(missing_java() is not None, reason=str(missing_java()))
def test_java_refuses_these_settings() -> None:
    for rule, library, wrong, right in CASES:
        if library == JAVA:
            assert refusal(JAVA, wrong) is not None, rule
            assert refusal(JAVA, right) is None, rule
            assert rule in broken(JAVA, wrong)
            assert rule not in broken(JAVA, right)


@pytest.mark.live
@pytest.mark.skipif(missing_java() is not None, reason=str(missing_java()))
def test_java_ignores_a_name_that_it_does_not_know() -> None:
    assert refusal(JAVA, {"sesion.timeout.ms": 1}) is None
    assert broken(JAVA, {"sesion.timeout.ms": 1})[0] == "ignored-name"


def test_each_library_and_rule_has_a_refusal() -> None:
    """A sentence that says that a client does not start is tested with every library it names."""
    for rule in RULES:
        if rule.text.startswith("the client does not start"):
            assert REFUSED[rule.id].keys() == {*rule.libraries}, rule.id


# Groups -------------------------------------------------------------------------------------------


class Configured(Confluent):
    """librdkafka's consumer with the settings of a test; with `is_idle`, it does not poll."""

    def __init__(self, address: str, client_id: str, **given: Any) -> None:
        self.settings = {name.replace("_", "."): value for name, value in given.items()}  # type: ignore[misc]
        self.is_idle = False
        self.polled_errors: list[str] = []
        super().__init__(address, client_id)

    def poll(self) -> None:
        if self.is_idle:
            time.sleep(POLL_S)
        elif (message := self._consumer.poll(POLL_S)) is not None:
            self.polled_errors.append(message.error().name())


def members(broker: RunningBroker) -> int:
    group = broker._call(lambda: broker._server.coordinator.classic_group(GROUP))
    return 0 if group is None else len(group.members)


SHORT = testing.CoordinatorConfig(
    group_initial_rebalance_delay_ms=0, group_min_session_timeout_ms=100
)
Start = Callable[..., Any]


@pytest.fixture
def start(request: pytest.FixtureRequest) -> Start:
    def started(consumer: Consumer) -> Consumer:
        request.addfinalizer(consumer.close)
        return consumer

    return started


def test_a_heartbeat_after_the_session_comes_too_late(
    serve_kafka: Callable[..., RunningBroker], start: Start
) -> None:
    given = {"session_timeout_ms": 500, "heartbeat_interval_ms": 1_500}
    assert "heartbeat-too-rare" in broken(LIBRDKAFKA, {"session.timeout.ms": 500})
    broker = serve_kafka({TOPIC: 2}, config=SHORT)
    start(Configured(broker.address, "a", **given))
    first = broker.wait_until_stable(GROUP, members=1)
    again = broker.wait_until_stable(GROUP, members=1, after=first.generation_id)
    assert again.member_ids["a"] != first.member_ids["a"]


def test_aiokafka_does_not_compare_heartbeats_with_the_session() -> None:
    given = {"heartbeat_interval_ms": 20_000}
    assert refusal(AIOKAFKA, given) is None
    assert "heartbeat-too-rare" in broken(AIOKAFKA, given)


def test_kafka_python_warns_of_heartbeats_above_a_third(
    serve_kafka: Callable[..., RunningBroker], caplog: pytest.LogCaptureFixture
) -> None:
    address = serve_kafka({TOPIC: 1}).address
    for interval, warns in ((15_001, True), (15_000, False)):
        caplog.clear()
        logging.getLogger("kafka").setLevel(logging.WARNING)
        assert refusal(KAFKA_PYTHON, {"heartbeat_interval_ms": interval}, address) is None
        assert ("1/3rd of session timeout" in caplog.text) == warns
        assert (
            "heartbeat-third" in broken(KAFKA_PYTHON, {"heartbeat_interval_ms": interval})
        ) == warns


@pytest.mark.parametrize(("session", "refuses"), [(5_999, True), (6_000, False)])
def test_the_broker_refuses_a_session(
    session: int, refuses: bool, serve_kafka: Callable[..., RunningBroker], start: Start
) -> None:
    broker = serve_kafka({TOPIC: 1})
    one = start(Configured(broker.address, "a", session_timeout_ms=session))
    until("it is a member or refused", lambda: one.polled_errors or members(broker))
    # It asks again until the test ends.
    assert {*one.polled_errors} == ({"INVALID_SESSION_TIMEOUT"} if refuses else set())
    given = {"session.timeout.ms": session, "heartbeat.interval.ms": HEARTBEAT_MS}
    assert ("session-refused" in broken(LIBRDKAFKA, given)) == refuses
    assert ("short-session" in broken(LIBRDKAFKA, given)) == (not refuses)


@pytest.mark.parametrize(
    ("rule", "session", "pause"),
    [("short-session", 6_000, 7_000), ("long-session", 180_000, 181_000)],
)
def test_a_session_ends_when_it_says(
    rule: str, session: int, pause: int, serve_kafka: Callable[..., RunningBroker], start: Start
) -> None:
    """Until the session ends, the silent member owns its partitions; then the other one does."""
    broker = serve_kafka({TOPIC: 2})
    for name in ("a", "b"):
        start(Configured(broker.address, name, session_timeout_ms=session))
    broker.wait_until_stable(GROUP, members=2, partitions=2)
    broker.cut_off("a")
    broker.advance(session - 4_000)
    assert members(broker) == 2
    broker.advance(5_000)
    broker.wait_until_stable(GROUP, members=1, partitions=2)
    given = {"session.timeout.ms": session, "heartbeat.interval.ms": HEARTBEAT_MS}
    (found,) = [one for one in breaches(LIBRDKAFKA, given) if one.rule.id == rule]
    assert played_for(found) == (pause if rule == "short-session" else session)


def played_for(one: Breach) -> int:
    """Returns the pause, or the time without a reader, that the simulator played, in ms."""
    found = re.search(r"a pause of (\d+) s|until (\d+):(\d+)", one.played or "")
    assert found, one.played
    if found[1]:
        return int(found[1]) * 1000
    return int(found[2]) * 60_000 + (int(found[3]) - 1) * 1000  # rounded up: the join takes ms


def test_a_member_that_does_not_poll_leaves(
    serve_kafka: Callable[..., RunningBroker], start: Start
) -> None:
    broker = serve_kafka({TOPIC: 2}, config=SHORT)
    given = {"session_timeout_ms": 2_000, "max_poll_interval_ms": 2_000}
    one = start(Configured(broker.address, "a", **given))
    broker.wait_until_stable(GROUP, members=1)
    one.is_idle = True
    until("it leaves", lambda: members(broker) == 0)
    around = Surroundings(processing_ms=45_000)
    (found,) = [
        one
        for one in breaches(JAVA, {"max.poll.interval.ms": 30_000}, around)
        if one.rule.id == "poll-interval"
    ]
    assert found.played == (
        "with 45 s to process a batch, the member leaves at 0:30, and its partitions are read "
        "twice from 0:31 on"
    )
    assert "poll-interval" not in broken(JAVA, {"max.poll.interval.ms": 45_000}, around)


def test_a_rebalance_waits_for_a_member_that_does_not_poll(
    serve_kafka: Callable[..., RunningBroker], start: Start
) -> None:
    interval = 1_000_000
    broker = serve_kafka({TOPIC: 2})
    start(Configured(broker.address, "a"))
    stuck = start(Configured(broker.address, "b", max_poll_interval_ms=interval))
    before = broker.wait_until_stable(GROUP, members=2, partitions=2)
    stuck.is_idle = True
    start(Configured(broker.address, "c"))
    until("there are three members", lambda: members(broker) == 3)
    broker.advance(interval - 60_000)
    assert broker.history(GROUP)[-1] == before
    broker.advance(120_000)
    after = broker.wait_until_stable(GROUP, members=2, partitions=2, after=before.generation_id)
    assert after.assignment.keys() == {"a", "c"}
    (found,) = [
        one
        for one in breaches(LIBRDKAFKA, {"max.poll.interval.ms": interval})
        if one.rule.id == "long-poll-interval"
    ]
    assert found.played == (
        "if a member is stuck in a batch when another one joins, all others stop until 16:41"
    )


def test_aiokafkas_rebalance_timeout_is_its_session(
    serve_kafka: Callable[..., RunningBroker], start: Start
) -> None:
    broker = serve_kafka({TOPIC: 2})
    start(Aiokafka(broker.address, "a"))
    broker.wait_until_stable(GROUP, members=1)
    group = broker._call(lambda: broker._server.coordinator.classic_group(GROUP))
    assert group is not None
    assert [one.rebalance_timeout_ms for one in group.members.values()] == [10_000]
    around = Surroundings(processing_ms=11_000)
    assert "rebalance-timeout" in broken(AIOKAFKA, {}, around)
    assert "rebalance-timeout" not in broken(AIOKAFKA, {"rebalance_timeout_ms": 12_000}, around)


def test_lists_without_a_common_assignor_are_refused(
    serve_kafka: Callable[..., RunningBroker], start: Start
) -> None:
    broker = serve_kafka({TOPIC: 2})
    start(Configured(broker.address, "a"))
    broker.wait_until_stable(GROUP, members=1)
    other = start(Configured(broker.address, "b", partition_assignment_strategy="roundrobin"))
    until("b has an error", lambda: other.polled_errors)
    assert set(other.polled_errors) == {"INCONSISTENT_GROUP_PROTOCOL"}
    assert of_group(["range"], ["roundrobin"]) == ["no-common-assignor"]
    assert of_group(["range"], ["roundrobin", "range"]) == []


def of_group(*lists: list[str]) -> list[str]:
    same: Given = {"group_id": "g"}
    clients = [
        Client.of(KAFKA_PYTHON, {**same, "partition_assignment_strategy": one}) for one in lists
    ]
    return [one.rule.id for one in judge(clients, Surroundings())]


def test_one_instance_id_twice_fences_the_first_client(
    serve_kafka: Callable[..., RunningBroker], start: Start
) -> None:
    broker = serve_kafka({TOPIC: 2})
    first = start(Configured(broker.address, "a", group_instance_id="pod-0"))
    broker.wait_until_stable(GROUP, members=1)
    start(Configured(broker.address, "b", group_instance_id="pod-0"))
    until("a has an error", lambda: first.polled_errors)
    assert first.polled_errors[0] in ("_FATAL", "FENCED_INSTANCE_ID")
    given = {"group.id": "g", "group.instance.id": "pod-0"}
    found = judge([Client.of(JAVA, given), Client.of(JAVA, given)], Surroundings())
    assert [one.rule.id for one in found].count("same-instance") == 1


def test_a_static_member_keeps_its_place_for_a_session(
    serve_kafka: Callable[..., RunningBroker], start: Start
) -> None:
    broker = serve_kafka({TOPIC: 2})
    gone = Configured(broker.address, "a", group_instance_id="a")
    start(Configured(broker.address, "b", group_instance_id="b"))
    broker.wait_until_stable(GROUP, members=2, partitions=2)
    gone.close()
    connections = broker._server.connections
    until("a's connections end", lambda: not broker._call(lambda: connections.has_client("a")))
    broker.advance(40_000)
    assert members(broker) == 2
    broker.advance(6_000)
    broker.wait_until_stable(GROUP, members=1, partitions=2)
    given = {"group.instance.id": "a", "session.timeout.ms": 45_000}
    for restart_ms, rules in ((44_999, []), (45_000, ["static-restart"])):
        found = breaches(JAVA, given, Surroundings(restart_ms=restart_ms))
        assert [one.rule.id for one in found if one.rule.id == "static-restart"] == rules
    played = next(one.played for one in found if one.rule.id == "static-restart")
    assert played is not None
    assert played.startswith("a restart that takes 45 s costs")


@pytest.mark.live
@pytest.mark.skipif(missing_java() is not None, reason=str(missing_java()))
@pytest.mark.parametrize(
    ("rule", "classes", "assigns", "rounds"),
    [
        ("range-first", [RANGE, COOPERATIVE], "range", 1),
        ("eager-listed", [COOPERATIVE, RANGE], "cooperative-sticky", 1),
        (None, [COOPERATIVE], "cooperative-sticky", 2),
    ],
)
def test_an_eager_assignor_in_javas_list_keeps_the_group_eager(
    rule: str | None,
    classes: list[str],
    assigns: str,
    rounds: int,
    serve_kafka: Callable[..., RunningBroker],
    start: Start,
) -> None:
    class Listed(Java):
        assignor = ",".join(classes).removeprefix("org.apache.kafka.clients.consumer.")

    broker = serve_kafka({TOPIC: 4})
    start(Listed(broker.address, "a"))
    alone = broker.wait_until_stable(GROUP, members=1, partitions=4)
    start(Listed(broker.address, "b"))
    both = broker.wait_until_stable(GROUP, members=2, partitions=4)
    assert both.protocol_name == assigns
    assert both.generation_id - alone.generation_id == rounds
    given = {"partition.assignment.strategy": ",".join(classes)}
    found = [one for one in breaches(JAVA, given) if one.rule.id in ("range-first", "eager-listed")]
    assert [one.rule.id for one in found] == ([] if rule is None else [rule])
    for one in found:
        assert one.played == (
            "when one of three members joins, 6 of 6 partitions have no reader, and 2 with "
            "cooperative-sticky alone"
        )


@pytest.fixture(
    params=[
        "ours",
        pytest.param(
            "kafkas",
            marks=[
                pytest.mark.oracle,
                pytest.mark.skipif(not JAR.is_file(), reason="no oracle: make judges"),
            ],
        ),
    ],
)
def coordinator(request: pytest.FixtureRequest) -> Iterator[CoordinatorOracle | Driver]:
    """Yields our coordinator, then Kafka's."""
    with contextlib.ExitStack() as stack:
        kafkas = request.param == "kafkas"
        own = stack.enter_context(CoordinatorOracle()) if kafkas else Driver()
        own.command({"op": "init", "at": 1_000_000, "cai": 0, "seed": 1})
        yield own


RACKS = (("a", "b"), ("b", "c"), ("c", "a"), ("a", "b"))
"""Of the replicas of each partition."""


def grouped(
    broker: RunningBroker, start: Start, assignor: str, *racks: str | None
) -> list[list[int]]:
    """Starts librdkafka's members a and b, one after the other; returns what each of them owns."""
    topic = ServedTopic(TOPIC, len(RACKS), RACKS)
    broker._call(lambda: broker._server.cluster.add(topic))
    for number, (name, rack) in enumerate(zip("ab", racks, strict=True), 1):
        given = {} if rack is None else {"client_rack": rack}
        start(Configured(broker.address, name, partition_assignment_strategy=assignor, **given))
        found = broker.wait_until_stable(GROUP, members=number, partitions=len(RACKS))
    return [sorted(found.assignment[name][TOPIC]) for name in "ab"]


@pytest.mark.parametrize(("assignor", "ignores"), [("roundrobin", True), ("range", False)])
def test_roundrobin_ignores_racks(
    assignor: str, ignores: bool, serve_kafka: Callable[..., RunningBroker], start: Start
) -> None:
    without = grouped(serve_kafka({}), start, assignor, None, None)
    assert (grouped(serve_kafka({}), start, assignor, "c", "a") == without) == ignores
    given = {"client.rack": "a", "partition.assignment.strategy": assignor}
    assert ("rack-ignored" in broken(LIBRDKAFKA, given)) == ignores
    assert "rack-ignored" in broken(AIOKAFKA, {"client_rack": "a"})


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_the_brokers_assignors_ignore_racks(
    assignor: str, coordinator: CoordinatorOracle | Driver
) -> None:
    coordinator.command({"op": "topics", "topics": {"t": {"partitions": 4, "racks": RACKS}}})
    targets = []
    for group_id, *racks in (("without", None, None), ("with", "c", "a")):
        for member, rack in zip("ab", racks, strict=True):
            join = {"m": 21 * "A" + member, "rack": rack, "rt": 1000, "topics": ["t"]}
            heartbeat: Given = {
                "op": "chb",
                "g": group_id,
                "assignor": assignor,
                "owned": {},
                **join,
            }
            assert coordinator.command(heartbeat)["err"] == "NONE"
        described = coordinator.command({"op": "cdescribe", "g": group_id})["members"]
        assert [one["rack"] for one in described.values()] == racks
        targets.append({member: one["target"] for member, one in described.items()})
    assert targets[0] == targets[1]
    assert "rack-ignored" in broken(JAVA, {"client.rack": "a", **CONSUMER})
    assert "rack-ignored" not in broken(JAVA, {"client.rack": "a"})


def test_racks_of_some_members_keep_librdkafkas_group_from_settling(
    serve_kafka: Callable[..., RunningBroker], start: Start
) -> None:
    """From the second rebalance on, as docs/behaviour/librdkafka.md shows for these racks."""
    broker, assignor = serve_kafka({}), "cooperative-sticky"

    def generation() -> int:
        group = broker._call(lambda: broker._server.coordinator.classic_group(GROUP))
        assert group is not None
        return int(group.generation_id)

    grouped(broker, start, assignor, None, "b")
    first = generation()
    broker.fault("Heartbeat", client_id="a", error="REBALANCE_IN_PROGRESS")
    until("it rebalances ten times", lambda: generation() >= first + 10)
    given = {"group.id": "g", "partition.assignment.strategy": assignor}
    some = [Client.of(LIBRDKAFKA, given), Client.of(LIBRDKAFKA, {**given, "client.rack": "b"})]
    assert "some-racks" in [one.rule.id for one in judge(some, Surroundings())]
    assert "some-racks" not in [one.rule.id for one in judge(some[1:] * 2, Surroundings())]


def test_racks_of_all_members_let_librdkafkas_group_settle(
    serve_kafka: Callable[..., RunningBroker], start: Start
) -> None:
    broker = serve_kafka({})
    before = grouped(broker, start, "cooperative-sticky", "a", "b")
    generation = broker.history(GROUP)[-1].generation_id
    broker.fault("Heartbeat", client_id="a", error="REBALANCE_IN_PROGRESS")
    again = broker.wait_until_stable(GROUP, members=2, partitions=4, after=generation)
    assert [sorted(again.assignment[name][TOPIC]) for name in "ab"] == before


def test_the_broker_refuses_an_assignor_that_it_does_not_have(
    coordinator: CoordinatorOracle | Driver,
) -> None:
    coordinator.command({"op": "topics", "topics": {"t": 2}})
    for assignor, error in (("sticky", "UNSUPPORTED_ASSIGNOR"), ("range", "NONE")):
        join = {"g": "g", "m": "AAAAAAAAAAAAAAAAAAAAAQ", "rt": 1000, "topics": ["t"]}
        answer = coordinator.command({"op": "chb", "assignor": assignor, "owned": {}, **join})
        assert answer["err"] == error
        given = {**CONSUMER, "group.remote.assignor": assignor}
        refused = "remote-assignor-unknown" in broken(JAVA, given)
        assert refused == (error != "NONE")


def test_librdkafka_ignores_a_remote_assignor_in_a_classic_group(
    serve_kafka: Callable[..., RunningBroker], start: Start
) -> None:
    broker = serve_kafka({TOPIC: 2})
    start(Configured(broker.address, "a", group_remote_assignor="uniform"))
    assert broker.wait_until_stable(GROUP, members=1).protocol_name == "range"
    assert "remote-assignor-ignored" in broken(LIBRDKAFKA, {"group.remote.assignor": "uniform"})


def test_librdkafka_commits_a_message_that_is_in_work() -> None:
    """The brokers are librdkafka's own mock cluster. The application polls once, then works."""
    import confluent_kafka

    mock = {"test.mock.num.brokers": 1, "group.id": GROUP, "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer({**mock, "auto.commit.interval.ms": 100})
    address = next(iter(consumer.list_topics(timeout=FAR_S).brokers.values()))
    producer = confluent_kafka.Producer({"bootstrap.servers": f"{address.host}:{address.port}"})
    producer.produce(TOPIC, b"x", partition=0)
    assert producer.flush(FAR_S) == 0
    consumer.subscribe([TOPIC])

    def is_polled() -> bool:
        message = consumer.poll(POLL_S)
        return message is not None and not message.error()

    until("a message", is_polled)
    partition = confluent_kafka.TopicPartition(TOPIC, 0)
    until("its commit", lambda: consumer.committed([partition], FAR_S)[0].offset == 1)
    consumer.close()
    assert "stored-before-processed" in broken(LIBRDKAFKA, {})
    assert "stored-before-processed" not in broken(LIBRDKAFKA, {"enable.auto.offset.store": False})


def test_every_rule_has_a_test() -> None:
    text = Path(__file__).read_text("utf-8")
    assert [one.id for one in RULES if f'"{one.id}"' not in text and one.id not in REFUSED] == []
    assert len({one.id for one in RULES}) == len(RULES)
