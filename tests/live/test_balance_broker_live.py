# SPDX-License-Identifier: Apache-2.0
"""`balanced` inside real brokers: groups change as planned, and reads are in racks."""

from __future__ import annotations

import pytest

from tests.support.broker import BALANCED, missing_tools

pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")
pytest.importorskip("confluent_kafka", reason="no confluent-kafka: pip install -e '.[confluent]'")

pytestmark = pytest.mark.live


def test_changes_of_real_groups_are_as_planned() -> None:
    from tests.balance_broker_live.__main__ import run

    missing = missing_tools()
    if not [*BALANCED.glob("*.jar")]:
        missing = missing or "no jar of `balanced`: run `make judges`"
    if missing:
        pytest.skip(missing)
    counts = run(changes=4, seed=3, plays=2, timed=False)
    assert counts["right"] == 4, counts
    assert counts["in rack, as read"] == counts["in rack, at most, and even"] > 0
