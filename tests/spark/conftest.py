# SPDX-License-Identifier: Apache-2.0
"""One session for all Spark tests, because its start takes long."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kafka_rebalance.spark.session import session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    running = session("tests", master="local[2]")
    running.conf.set("spark.sql.shuffle.partitions", "4")  # the default, 200, is slow for ten rows
    yield running
    running.stop()
