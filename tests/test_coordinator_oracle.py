# SPDX-License-Identifier: Apache-2.0
"""Random runs on our coordinator and Kafka's own agree; `make parity-virtual` plays many more."""

from __future__ import annotations

import pytest

from tests.support.coordinator_oracle import JAR, CoordinatorOracle
from tests.support.generate_commands import Command
from tools.differential_coordinator import Coordinator, Pair

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(not JAR.is_file(), reason="run `make coordinator-oracle`"),
]


def test_random_runs() -> None:
    with CoordinatorOracle() as oracle:
        pair = Pair(oracle)
        different = [seed for seed in range(300) if pair.run(seed) is not None]
    assert different == []
    # The runs have many answers without errors, fenced instance ids, and new records.
    assert pair.met["NONE"] > 500
    assert pair.met["FENCED_INSTANCE_ID"] > 100
    assert pair.met["record"] > 500


class Liar:
    """Our coordinator, but it answers every heartbeat with NONE."""

    def __init__(self, driver: Coordinator) -> None:
        self._driver = driver

    def command(self, command: Command) -> Command:
        answer = self._driver.command(command)
        return answer | {"err": "NONE"} if command["op"] == "hb" else answer


def test_a_coordinator_that_lies_is_found() -> None:
    commands: list[Command] = [
        {"op": "init"},
        {"op": "hb", "g": "g", "m": "stranger", "gen": 1},
    ]
    with CoordinatorOracle() as oracle:
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


def test_a_missing_group_is_a_difference() -> None:
    """A group that only Kafka's coordinator has is a difference."""
    commands: list[Command] = [{"op": "init"}, {"op": "commit", "g": "g", "off": 1}]
    with CoordinatorOracle() as oracle:
        assert Pair(oracle, Forgetful).differ(commands) is not None
        assert Pair(oracle).differ(commands) is None
