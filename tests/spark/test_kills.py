# SPDX-License-Identifier: Apache-2.0
"""A Spark driver is killed twice while groups rebalance; `python -m tests.kills` kills more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.broker import missing_tools

pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")

from tests.kills.run import run

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.live


def test_a_table_outlives_its_drivers(spark: SparkSession, tmp_path: Path) -> None:
    missing = missing_tools()
    if missing:
        pytest.skip(missing)
    outcome = run(lambda: spark, tmp_path, rebalances=16, kills=2, seed=1)
    assert (outcome.only_kept, outcome.only_batch) == (set(), set())
    assert outcome.rebalances >= 16
    assert len(outcome.kills) == 2
    assert outcome.tables > 1
    assert outcome.kept > 8
