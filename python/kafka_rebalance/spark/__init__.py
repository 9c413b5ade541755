# SPDX-License-Identifier: Apache-2.0
"""Fleets of groups on Spark, with one row for each group.

    from kafka_rebalance.spark import assign_groups
    assign_groups(groups, assignor="cooperative-sticky").write.parquet("assigned")

Arrow batches go to Rust and come back; Python handles no single row. These functions need no JVM
gateway, so they also work over Spark Connect. Set `spark.sql.execution.arrow.maxBytesPerBatch` to
4m: with Spark's default of 64 MB, giant groups need much more memory.
"""

from kafka_rebalance.errors import MissingExtra, SchemaError

try:
    import pyspark.sql  # noqa: F401 -- the modules below need it
except ImportError:
    raise MissingExtra("kafka_rebalance.spark", "spark") from None

from .consumer_offsets import GROUPS_SCHEMA, KINDS_SCHEMA, count_records, current_groups
from .functions import assign_groups, assign_lines, assign_udf, plan_groups
from .schema import INPUT_SCHEMA, OUTPUT_SCHEMA, PLAN_SCHEMA

__all__ = [
    "GROUPS_SCHEMA",
    "INPUT_SCHEMA",
    "KINDS_SCHEMA",
    "OUTPUT_SCHEMA",
    "PLAN_SCHEMA",
    "SchemaError",
    "assign_groups",
    "assign_lines",
    "assign_udf",
    "count_records",
    "current_groups",
    "plan_groups",
]
