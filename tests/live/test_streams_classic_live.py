# SPDX-License-Identifier: Apache-2.0
"""A real classic Kafka Streams application is read, and a new process goes as planned."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.support.broker import Broker, missing_tools

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")

pytestmark = pytest.mark.live


def test_a_new_process_is_as_planned(tmp_path: Path) -> None:
    """With the default lag, everything is caught up: no probing rebalance, which takes a minute."""
    from tests.streams_classic_live.judge import Stage, judged

    if missing := missing_tools():
        pytest.skip(missing)
    topics = {"app-orders": 3, "app-returns": 4, "app-clicks": 2}
    with Broker() as broker:
        stage = Stage("app", topics, standbys=1, is_static=False, lag=10_000)
        found = judged(broker.bootstrap_server, [stage], 1, Random(1), tmp_path)
    assert (found.changes, found.declined, found.compared) == (1, 0, 1)
    assert (found.told, found.right_ends) == (1, 1), found.lines
    assert found.causes.keys() >= {"started", "joined"}, found.causes
