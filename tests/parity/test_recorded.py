# SPDX-License-Identifier: Apache-2.0
"""Our coordinator answers as the recorded broker did (`python -m tests.parity --record`)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.parity import liar, recorded, scenarios
from tests.parity.compare import END, differences, play, unexplained
from tests.parity.driver_player import OURS, DriverPlayer, OwnPlayer

if TYPE_CHECKING:
    from tests.parity.scenarios import Scenario

SCENARIOS = scenarios.load()
BROKER = recorded.read()


@pytest.fixture(scope="module")
def driver() -> OwnPlayer:
    return OwnPlayer()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_ours_answers_as_the_broker_did(driver: OwnPlayer, scenario: Scenario) -> None:
    steps, broker = BROKER[scenario.name]
    assert steps == [step.text for step in scenario.steps], (
        "record it again: its steps have changed"
    )
    ours = play(scenario, driver)
    found = [
        (step.text, one.path, one.ours, one.broker)
        for step, mine, theirs in zip((*scenario.steps, END), ours, broker, strict=False)
        for one in unexplained(differences(step, mine, theirs))
    ]
    assert not found


def test_a_wrong_coordinator_is_found() -> None:
    """A coordinator that answers every heartbeat with NONE differs in exactly one step."""
    (newcomer,) = (scenario for scenario in SCENARIOS if scenario.name == "newcomer")
    with DriverPlayer([sys.executable, liar.__file__, *OURS]) as lying:
        shown = play(newcomer, lying)
    _, broker = BROKER[newcomer.name]
    found = [
        (step.text, one.path, one.ours, one.broker)
        for step, mine, theirs in zip((*newcomer.steps, END), shown, broker, strict=True)
        for one in differences(step, mine, theirs)
    ]
    assert found == [("hb A", "answer.err", "NONE", "REBALANCE_IN_PROGRESS")]


def test_every_scenario_is_recorded() -> None:
    assert list(BROKER) == [scenario.name for scenario in SCENARIOS]
