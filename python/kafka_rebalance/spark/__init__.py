# SPDX-License-Identifier: Apache-2.0
"""Whole fleets of groups on Spark: a row a group in, a row a group out.

    from kafka_rebalance.spark import assign_groups
    assign_groups(groups, assignor="cooperative-sticky").write.parquet("assigned")

Arrow batches go to Rust and come back; no row meets Python. Nothing here needs the JVM gateway, so
it works over Spark Connect as well. Set `spark.sql.execution.arrow.maxBytesPerBatch` to 4m: giant
groups swell memory less than with Spark's own 64 MB.
"""

from .consumer_offsets import GROUPS_SCHEMA, KINDS_SCHEMA, count_records, current_groups
from .functions import assign_groups, assign_lines, assign_udf, plan_groups
from .schema import INPUT_SCHEMA, OUTPUT_SCHEMA, PLAN_SCHEMA, SchemaError

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
