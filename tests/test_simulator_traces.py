# SPDX-License-Identifier: Apache-2.0
"""Plays the scenarios of tests/traces/simulator, and compares each journal with the stored trace.

REWRITE_TRACES=1 replaces the stored traces with the present output.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafka_rebalance.simulator import simulate
from kafka_rebalance.simulator.journal import Entry, lines
from kafka_rebalance.simulator.scenario_files import read

TRACES = sorted((Path(__file__).parent / "traces" / "simulator").glob("*.txt"))
RULE = "\n----\n"


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_end_to_end(path: Path) -> None:
    there = path.read_text(encoding="utf-8")
    scenario = there.partition(RULE)[0]
    journal: list[Entry] = []
    simulate(read(scenario), journal=journal)
    played = scenario + RULE + "\n".join(lines(journal)) + "\n"
    if os.environ.get("REWRITE_TRACES"):
        path.write_text(played, encoding="utf-8")
    else:
        assert played == there


def test_every_scenario_is_there() -> None:
    assert len(TRACES) == 6
