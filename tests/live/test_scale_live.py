# SPDX-License-Identifier: Apache-2.0
"""Real groups grow and shrink as `scale` told; `python -m tests.scale_live` makes 60 steps."""

from __future__ import annotations

import pytest

from tests.support.broker import missing_tools

pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")
pytest.importorskip("confluent_kafka", reason="no confluent-kafka: pip install -e '.[confluent]'")

pytestmark = pytest.mark.live


def test_real_groups_scale_as_told() -> None:
    from tests.scale_live.__main__ import GROUPS, run

    if missing := missing_tools():
        pytest.skip(missing)
    counts = run(steps=2 * len(GROUPS), seed=3)
    assert counts.pop("by command") == 1
    assert counts.total() == 2 * len(GROUPS)
    assert counts["wrong"] == 0
    assert counts["as told"] > 0
