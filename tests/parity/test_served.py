# SPDX-License-Identifier: Apache-2.0
"""`serve` answers every scenario over its socket as the recorded broker did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("kio", reason="kio is not installed: pip install -e '.[serve]'")

from kafka_rebalance.coordinator.config import CoordinatorConfig
from kafka_rebalance.testing import RunningBroker
from tests.parity import recorded, scenarios
from tests.parity.cluster import PARTITIONS, TOPICS
from tests.parity.compare import END, differences, play, unexplained
from tests.parity.driver_player import OwnPlayer
from tests.parity.wire_player import WirePlayer

if TYPE_CHECKING:
    from pathlib import Path

    from tests.parity.cast import Command
    from tests.parity.scenarios import Scenario

SCENARIOS = scenarios.load()
BROKER = recorded.read()
SETTINGS = scenarios.CONFIG


class ServedPlayer(WirePlayer):
    """Plays a scenario over the socket; `advance` moves the server's clock, without a wait."""

    def __init__(self, broker: RunningBroker, scenario: Scenario) -> None:
        host, _, port = broker.address.partition(":")
        super().__init__(host, int(port), scenario.name, scenario.doomed)
        self._broker = broker

    def _advance(self, command: Command) -> None:
        self._broker.advance(command["ms"], heartbeats=False)

    def _sweep(self, command: Command) -> None:
        self._advance(command)
        self._broker.expire_offsets()

    def _unload(self, _: Any) -> None:
        self._broker.move_away()

    def _reload(self, _: Any) -> None:
        self._broker.move_back()


@pytest.fixture(scope="module")
def driver() -> OwnPlayer:
    return OwnPlayer()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_serve_answers_as_the_broker_did(
    scenario: Scenario, driver: OwnPlayer, tmp_path: Path
) -> None:
    config = CoordinatorConfig(
        group_initial_rebalance_delay_ms=SETTINGS["init_delay"],
        group_min_session_timeout_ms=SETTINGS["min_st"],
        group_max_session_timeout_ms=SETTINGS["max_st"],
        group_max_size=SETTINGS["max_size"],
        offset_metadata_max_bytes=SETTINGS["meta_max"],
    )
    _, broker = BROKER[scenario.name]
    moves = tmp_path if scenario.needs == "moves" else None
    topics = dict.fromkeys(TOPICS, PARTITIONS)
    with (
        RunningBroker(topics, config=config, stopped_clock=True, log_dir=moves) as served,
        ServedPlayer(served, scenario) as player,
    ):
        # The driver's run shows which answers to wait for.
        shown = play(scenario, player, play(scenario, driver))
    steps = (*scenario.steps, END)
    found = [
        (step.text, one.path, one.ours, one.broker)
        for step, ours, theirs in zip(steps, shown, broker, strict=False)
        for one in unexplained(differences(step, ours, theirs))
    ]
    assert not found
    assert len(shown) == len(broker)
