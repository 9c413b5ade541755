# SPDX-License-Identifier: Apache-2.0
"""Each wrong scenario in Python is an error with the field's path and the expected form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance.coordinator.config import CoordinatorConfig
from kafka_rebalance.member.config import ConsumerConfig, WorkerConfig
from kafka_rebalance.simulator import Network, scenario_from_group
from kafka_rebalance.simulator.from_group import Pace
from kafka_rebalance.simulator.scenario import Costs, Happening, Kind, MemberPlan, TopicPlan

if TYPE_CHECKING:
    from collections.abc import Callable

ANY: Any = kr


def scenario(**fields: Any) -> object:
    members = (MemberPlan(name="a", config=ConsumerConfig(), topics=("t",)),)
    topics = {"t": TopicPlan(partitions=2)}
    return ANY.Scenario(**{"title": "x", "members": members, "topics": topics, **fields})


def plan_of_member(**fields: Any) -> object:
    given = {"name": "a", "config": ConsumerConfig(), "topics": ("t",)}
    return untyped(MemberPlan)(**{**given, **fields})


def happening(**fields: Any) -> object:
    return untyped(Happening)(**{"at_ms": 5, "kind": Kind.STOP, "member": "a", **fields})


def untyped(value: Any) -> Any:
    """Returns the value without its type, which a wrong argument does not fit."""
    return value


SCENARIOS: dict[str, tuple[str, Callable[[], object]]] = {
    "a scenario without members": ("members: empty", lambda: scenario(members=())),
    "a scenario's members as text": ("members: 'abc' is a", lambda: scenario(members="abc")),
    "a scenario's member": ("members[0]: a number is not", lambda: scenario(members=[1])),
    "a scenario's happening": ("happenings[0]: a number", lambda: scenario(happenings=[1])),
    "a scenario's topics": ("topics: a list is not a map", lambda: scenario(topics=["t"])),
    "a scenario's topic": ("topics[0]: a number is not", lambda: scenario(topics={"t": 3})),
    "a scenario's connectors": ("connectors: a list is", lambda: scenario(connectors=["c"])),
    "a seed": ("seed: 'x' is not an int", lambda: scenario(seed="x")),
    "half a seed": ("seed: 1.5 is not an int", lambda: scenario(seed=1.5)),
    "an end": ("until_ms: True is not an int", lambda: scenario(until_ms=True)),
    "an end as text": ("until_ms: '5' is not an int", lambda: scenario(until_ms="5")),
    "an end before the start": ("until_ms: is -1; nothing", lambda: scenario(until_ms=-1)),
    "an event after the end": (
        "happenings[0].at_ms: 9 ms is not within the run",
        lambda: scenario(until_ms=5, happenings=(happening(at_ms=9),)),
    ),
    "a title": ("title: 5 is not a str", lambda: scenario(title=5)),
    "a scenario's group": ("group_id: 5 is not a str", lambda: scenario(group_id=5)),
    "an empty group id": ("group_id: is empty; Kafka", lambda: scenario(group_id="")),
    "a broker": ("broker: None is not a CoordinatorConfig", lambda: scenario(broker=None)),
    "a network": ("network: 5 is not a Network", lambda: scenario(network=5)),
    "tasks": (
        "connectors: {'c': '3'} is not a mapping of str to int",
        lambda: scenario(connectors={"c": "3"}),
    ),
    "partitions": ("partitions: True is not an int", lambda: TopicPlan(partitions=True)),
    "partitions in text": ("partitions: '3' is", lambda: untyped(TopicPlan)(partitions="3")),
    "a rate": (
        "records_per_second: 'x' is not a float",
        lambda: untyped(TopicPlan)(partitions=3, records_per_second="x"),
    ),
    "no config": (
        "config: None is not a ConsumerConfig or a WorkerConfig",
        lambda: plan_of_member(config=None),
    ),
    "no costs": ("work: None is not a Costs", lambda: plan_of_member(work=None)),
    "a name": ("name: 5 is not a str", lambda: plan_of_member(name=5)),
    "topics of a member": ("topics: 't' is not a tuple of str", lambda: plan_of_member(topics="t")),
    "a start before 0": ("start_ms: -1 is less than 0", lambda: plan_of_member(start_ms=-1)),
    "a broken start": ("start_ms: 1.5 is not an int", lambda: plan_of_member(start_ms=1.5)),
    "a cost below 0": ("process_ms: -1 is less than 0", lambda: Costs(process_ms=-1)),
    "a kind": ("kind: 'stop' is not a Kind", lambda: happening(kind="stop")),
    "a time": ("at_ms: '5' is not an int", lambda: happening(at_ms="5")),
    "a time below 0": ("for_ms: -1 is less than 0", lambda: happening(for_ms=-1)),
    "a delay": ("delay_ms: '1' is not an int", lambda: untyped(Network)(delay_ms="1")),
    "a delay below 0": ("log_ms: -1 is less than 0", lambda: Network(log_ms=-1)),
    "a pace": ("apart_ms: -1 is less than 0", lambda: Pace(apart_ms=-1)),
    "a session": (
        "session_timeout_ms: '10s' is not an int",
        lambda: untyped(ConsumerConfig)(session_timeout_ms="10s"),
    ),
    "a worker's session": (
        "session_timeout_ms: None is not an int",
        lambda: untyped(WorkerConfig)(session_timeout_ms=None),
    ),
    "a broker's limit": (
        "group_max_size: 1.5 is not an int",
        lambda: untyped(CoordinatorConfig)(group_max_size=1.5),
    ),
    "a group to play": ("group: a dict is not a", lambda: untyped(scenario_from_group)({})),
}


@pytest.mark.parametrize("what", SCENARIOS)
def test_wrong_scenarios_name_their_path(what: str) -> None:
    said, wrong = SCENARIOS[what]
    with pytest.raises((kr.GroupError, TypeError)) as raised:
        wrong()
    assert said in str(raised.value)


def test_a_right_scenario_is_no_error() -> None:
    assert scenario() is not None  # so each wrong one above has a single fault
    assert plan_of_member(topics=["t"]) != happening()
    assert TopicPlan(partitions=3, records_per_second=5).records_per_second == 5
