# SPDX-License-Identifier: Apache-2.0
"""A deploy of real consumers, and the gate after it; `python -m tests.rollout_live` plays 20."""

from __future__ import annotations

import pytest

from tests.support.broker import missing_tools

pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")
pytest.importorskip("confluent_kafka", reason="no confluent-kafka: pip install -e '.[confluent]'")

pytestmark = pytest.mark.live

_STATIC = 1
"""A StatefulSet with static members of the consumer protocol: nothing moves, whatever the times."""


def test_static_members_restart_without_a_rebalance_and_the_gate_opens() -> None:
    from tests.rollout_live.__main__ import run

    if missing := missing_tools():
        pytest.skip(missing)
    (outside,) = run([_STATIC], seed=1).values()
    assert {*outside} & {"gate", "rebalances", "moves", "stopped", "twice_ms"} == set()
