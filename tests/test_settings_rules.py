# SPDX-License-Identifier: Apache-2.0
"""Each rule for settings, beside a real client or the coordinator that does what the rule says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kafka_rebalance import testing
from kafka_rebalance.settings import RULES, Breach, Client, Library, Surroundings, judge
from tests.support.java_consumers import missing_java
from tests.support.settings_clients import COOPERATIVE, RANGE, refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_rebalance.testing import RunningBroker

serve_kafka = testing.serve_kafka

JAVA, LIBRDKAFKA, KAFKA_PYTHON, AIOKAFKA = "java", "librdkafka", "kafka-python", "aiokafka"
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
    rule: str, library: Library, wrong: Given, right: Given, serve_kafka: Callable[..., RunningBroker]
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
