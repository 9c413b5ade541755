# SPDX-License-Identifier: Apache-2.0
"""Random runs on our coordinator and Kafka's own agree.

`python -m tools differential-coordinator` plays many more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kafka_rebalance.playback.driver import Driver
from tests.support.coordinator_oracle import JAR, CoordinatorOracle
from tests.support.generate_commands import Command
from tools.differential_coordinator import RUNS, Coordinator, Pair, Side
from tools.heartbeat_coverage import WANTED, Coverage, play

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.seeds import Seeds

    Change = Callable[[Command, Command], Command]

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(not JAR.is_file(), reason="no oracle: run `make judges`"),
]


@pytest.fixture(scope="module")
def oracle() -> Iterator[CoordinatorOracle]:
    with CoordinatorOracle() as running:
        yield running


def _first_different(pair: Pair, seeds: Seeds) -> int | None:
    return next((seed for seed in seeds if pair.run(seed) is not None), None)


@pytest.mark.seeds(quick=240, whole=240)
def test_random_runs(oracle: CoordinatorOracle, seeds: Seeds) -> None:
    pair = Pair(oracle)
    assert _first_different(pair, seeds) is None
    # The runs contain many answers without errors, fenced instance ids, and new records.
    assert pair.met["NONE"] > len(seeds)
    assert pair.met["FENCED_INSTANCE_ID"] > 0
    assert pair.met["record"] > len(seeds)


@pytest.mark.seeds(quick=120, whole=120)
def test_random_runs_of_groups_whose_brokers_assign(
    oracle: CoordinatorOracle, seeds: Seeds
) -> None:
    pair = Pair(oracle, runs=RUNS["assigning"])
    assert _first_different(pair, seeds) is None
    assert pair.met["commands"] > 10 * len(seeds)


@pytest.mark.seeds(quick=60, whole=60)
@pytest.mark.parametrize("kind", ["streams", "share"])
def test_random_runs_of_streams_and_share_groups(
    oracle: CoordinatorOracle, kind: str, seeds: Seeds
) -> None:
    pair = Pair(oracle, runs=RUNS[kind])
    assert _first_different(pair, seeds) is None
    assert pair.met["commands"] > 10 * len(seeds)


@pytest.mark.seeds(quick=100, whole=100)
def test_random_logs_of_another_coordinator(oracle: CoordinatorOracle, seeds: Seeds) -> None:
    """Both load most logs and refuse some; one that both refuse is always among them."""
    pair = Pair(oracle, runs=RUNS["logs"])
    assert _first_different(pair, seeds) is None
    assert pair.met["refused log"] < len(seeds) / 2
    refused = Pair(oracle, runs=RUNS["logs"])
    assert refused.run(1003) is None
    assert refused.met["refused log"] == 1


def test_random_runs_reach_every_case_of_consumer_groups(oracle: CoordinatorOracle) -> None:
    coverage = Coverage()
    side = Side(oracle.commands, RUNS["assigning"])
    seeds = iter(range(1_000_000, 1_000_400))
    while not all(coverage.met[name] for name in WANTED):
        play(side, next(seeds), coverage)


def test_both_drivers_describe_a_share_group_alike(oracle: CoordinatorOracle) -> None:
    joins: Command = {"op": "shb", "epoch": 0, "topics": ["t", "u"], "client": "app"}
    commands: list[Command] = [
        {"op": "init", "at": 1_000_000, "sai": 0, "shi": 6_000, "smax": 2},
        {"op": "topics", "topics": {"t": 3}},
        joins | {"m": "A", "rack": "a"},
        {"op": "advance", "ms": 0},
        {"op": "shb", "m": "A", "epoch": 2},
        joins | {"m": "B"},
        joins | {"m": "C"},
        {"op": "sdescribe"},
        {"op": "mstate"},
        {"op": "list", "states": ["stable"], "types": ["Share"]},
        {"op": "list", "types": ["consumer"]},
        {"op": "describe"},
        {"op": "delete_group"},
        {"op": "shb", "m": "A", "epoch": -1},
        {"op": "shb", "m": "B", "epoch": -1},
        {"op": "cdescribe"},
        {"op": "delete_group"},
        {"op": "sdescribe"},
    ]
    ours = Driver()
    for command in commands:
        here, there = ours.command(command), oracle.command(command)
        there.pop("msg", None)  # only Kafka's driver sends messages
        here["id"] = there["id"]  # a command's number: other tests send commands to this process
        for event in (*here["events"], *there["events"]):
            # The bytes are equal; in the decoded form, Kafka's driver uses the names of Kafka's
            # JSON.
            event.pop("k"), event.pop("value")
        assert here == there, command
    assert here["err"] == "GROUP_ID_NOT_FOUND"


class Wrong:
    """Our coordinator, but `change(command, right answer)` replaces its answers."""

    def __init__(self, ours: Coordinator, change: Change) -> None:
        self._ours = ours
        self._change = change

    def command(self, command: Command) -> Command:
        return self._change(command, self._ours.command(command))


def assert_found(
    oracle: CoordinatorOracle, change: Change, commands: list[Command], kind: str = "assigning"
) -> None:
    """Checks that our answers to the commands equal Kafka's, and changed answers do not."""
    wrong = Pair(oracle, lambda ours: Wrong(ours, change), RUNS[kind])
    assert wrong.differ(commands) is not None
    assert Pair(oracle, runs=RUNS[kind]).differ(commands) is None


def test_a_wrong_answer_to_a_consumer_member_is_found(oracle: CoordinatorOracle) -> None:
    def accept_every_epoch(_: Command, answer: Command) -> Command:
        fenced = answer.get("err") == "FENCED_MEMBER_EPOCH"
        return answer | {"err": "NONE"} if fenced else answer

    joins: Command = {"op": "chb", "m": "A", "epoch": 0, "rt": 9, "topics": ["t"], "owned": {}}
    commands: list[Command] = [
        {"op": "init", "at": 1_000_000},
        {"op": "topics", "topics": {"t": 3}},
        joins,
        {"op": "chb", "m": "A", "epoch": 7},
    ]
    assert_found(oracle, accept_every_epoch, commands)


def test_a_wrong_answer_to_a_streams_member_is_found(oracle: CoordinatorOracle) -> None:
    def give_tasks_each_time(command: Command, answer: Command) -> Command:
        return answer | {"active": {}} if command["op"] == "sthb" else answer

    topology = {"epoch": 0, "subtopologies": {"0": {"sources": ["t"]}}}
    joins: Command = {"op": "sthb", "m": "A", "epoch": 0, "rt": 9, "topology": topology}
    commands: list[Command] = [
        {"op": "init", "at": 1_000_000, "tird": 0},
        {"op": "topics", "topics": {"t": 3}},
        {**joins, "process": "p", "active": {}, "standby": {}, "warmup": {}},
        {"op": "sthb", "m": "A", "epoch": 2},
    ]
    assert_found(oracle, give_tasks_each_time, commands, "streams")


def test_an_error_inside_our_coordinator_is_a_difference(oracle: CoordinatorOracle) -> None:
    joins: Command = {"op": "chb", "m": "A", "epoch": 0, "rt": 9, "topics": ["t"], "owned": {}}

    def fail(command: Command, answer: Command) -> Command:
        if command["op"] == "chb":
            raise KeyError("inside")
        return answer

    broken = Pair(oracle, lambda ours: Wrong(ours, fail), RUNS["assigning"])
    found = broken.differ([{"op": "init"}, joins])
    assert found is not None
    assert found[1] == ({"crash": "KeyError('inside')"}, [])


def test_kafkas_ids_are_those_of_the_seed(oracle: CoordinatorOracle) -> None:
    joins: Command = {
        "op": "chb",
        "m": "",
        "epoch": 0,
        "rt": 9,
        "topics": ["t"],
        "owned": {},
        "v": 0,
    }
    drawn = []
    for seed in (7, 8, 7):
        oracle.command({"op": "init", "seed": seed})
        drawn.append(oracle.command(joins)["member"])
    assert drawn[0] == drawn[2] != drawn[1]


def test_another_order_of_records_is_found(oracle: CoordinatorOracle) -> None:
    def turn_the_records(_: Command, answer: Command) -> Command:
        return answer | {"events": answer.get("events", [])[::-1]}

    joins: Command = {"op": "chb", "m": "A", "epoch": 0, "rt": 9, "topics": ["t"], "owned": {}}
    commands: list[Command] = [
        {"op": "init", "at": 1_000_000},
        {"op": "topics", "topics": {"t": 3}},
        joins,
    ]
    assert_found(oracle, turn_the_records, commands)


def test_both_drivers_describe_a_consumer_group_alike(oracle: CoordinatorOracle) -> None:
    joins: Command = {"op": "chb", "epoch": 0, "rt": 9_000, "topics": ["t", "u"], "owned": {}}
    commands: list[Command] = [
        {"op": "init", "at": 1_000_000, "cai": 0},
        {"op": "topics", "topics": {"t": {"partitions": 3, "racks": [["a"], ["b"], ["a", "b"]]}}},
        joins | {"m": "A", "rack": "a", "inst": "i"},
        joins | {"m": "B", "assignor": "range"},
        {"op": "chb", "m": "A", "epoch": 2, "inst": "i"},
        {"op": "cdescribe"},
        {"op": "mstate"},
        {"op": "list", "states": ["ASSIGNING", "reconciling"], "types": ["Consumer"]},
        {"op": "list", "states": ["Stable"]},
        {"op": "list", "types": ["classic"]},
        {"op": "cdescribe", "g": "nobody"},
    ]
    ours = Driver()
    for command in commands:
        here, there = ours.command(command), oracle.command(command)
        there.pop("msg", None)  # only Kafka's driver sends messages
        here["id"] = there["id"]  # a command's number: other tests send commands to this process
        for event in (*here["events"], *there["events"]):
            # The bytes are equal; in the decoded form, Kafka's driver uses the names of Kafka's
            # JSON.
            event.pop("k"), event.pop("value")
        assert here == there
    assert here["err"] == "GROUP_ID_NOT_FOUND"


class Liar:
    """Our coordinator, but it answers every heartbeat with NONE."""

    def __init__(self, driver: Coordinator) -> None:
        self._driver = driver

    def command(self, command: Command) -> Command:
        answer = self._driver.command(command)
        return answer | {"err": "NONE"} if command["op"] == "hb" else answer


def test_a_coordinator_that_lies_is_found(oracle: CoordinatorOracle) -> None:
    commands: list[Command] = [
        {"op": "init"},
        {"op": "hb", "g": "g", "m": "stranger", "gen": 1},
    ]
    assert Pair(oracle, Liar).differ(commands) is not None
    assert Pair(oracle).differ(commands) is None


class Forgetful:
    """Our coordinator, but it describes every group as missing."""

    def __init__(self, driver: Coordinator) -> None:
        self._driver = driver

    def command(self, command: Command) -> Command:
        answer = self._driver.command(command)
        absent = {"state": "ABSENT:GROUP_ID_NOT_FOUND", "timers": {}}
        return answer | {"state": absent} if command["op"] == "state" else answer


def test_a_missing_group_is_a_difference(oracle: CoordinatorOracle) -> None:
    """A group that only Kafka's coordinator has is a difference."""
    commands: list[Command] = [{"op": "init"}, {"op": "commit", "g": "g", "off": 1}]
    assert Pair(oracle, Forgetful).differ(commands) is not None
    assert Pair(oracle).differ(commands) is None
