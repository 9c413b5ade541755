# SPDX-License-Identifier: Apache-2.0
"""Plans of real groups that the broker assigns, and of switches of the protocol, come true."""

from __future__ import annotations

import pytest

from tests.support.broker import missing_tools

pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")
pytest.importorskip("confluent_kafka", reason="no confluent-kafka: pip install -e '.[confluent]'")

pytestmark = pytest.mark.live


def test_changes_and_switches_of_real_groups_are_as_planned() -> None:
    from tests.modern_live.__main__ import run

    if missing := missing_tools():
        pytest.skip(missing)
    counts = run(changes=6, migrations=2, share=2, streams=2, seed=7, timed=False)
    assert {what: count for what, count in counts.items() if "ids" not in what} == {
        "change, right": 6,
        "to consumer, right": 2,
        "to classic, right": 2,
        "share, right": 2,
        "streams, right": 2,
    }
