# SPDX-License-Identifier: Apache-2.0
"""Our coordinator answers the steps of the scenarios as a real broker does.

`python -m tools parity` plays all scenarios; this test plays the quick ones. The variable
PARITY_OURS can be the command of another driver (a program that plays them), for example with
Kafka's own classes.
"""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.broker import Broker, missing_tools

pytest.importorskip("kio", reason="kio is not installed: pip install --group dev")

from tests.parity import driver_player, liar, run, scenarios

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.live

OURS = shlex.split(os.environ.get("PARITY_OURS", "")) or list(driver_player.OURS)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    missing = missing_tools()
    if missing:
        pytest.skip(missing)
    with Broker(properties=scenarios.BROKER) as broker:
        yield broker.bootstrap_server


def test_the_broker_and_ours_agree(server: str) -> None:
    found = list(run.results(scenarios.load("quick"), OURS, server))
    print(run.summary(found))
    assert not [str(result) for result in found if not result.agrees]
    assert sum(result.steps for result in found) >= 100


def test_a_lie_is_found(server: str) -> None:
    """A driver that answers every heartbeat with NONE differs in exactly one step."""
    (newcomer,) = (one for one in scenarios.load() if one.name == "newcomer")
    lying = [sys.executable, liar.__file__, *OURS]
    (result,) = run.results([newcomer], lying, server)
    (difference,) = result.differences
    assert (difference.step.text, difference.path) == ("hb A", "answer.err")
    assert (difference.ours, difference.broker) == ("NONE", "REBALANCE_IN_PROGRESS")
    assert not result.agrees
