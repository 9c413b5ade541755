# SPDX-License-Identifier: Apache-2.0
"""Functions for many groups on Spark: from DataFrames to DataFrames.

    from kafka_rebalance.spark import assign_groups
    assign_groups(groups, assignor="cooperative-sticky").write.parquet("assigned")

They need no JVM gateway, so they also work on Spark Connect. Set
`spark.sql.execution.arrow.maxBytesPerBatch` to 4m: with Spark's default of 64 MB, giant groups need
much more memory.
"""

from kafka_rebalance.bulk.parts import Done
from kafka_rebalance.errors import MissingExtra, SchemaError

try:
    import pyspark.sql  # noqa: F401 -- the modules below need it
except ImportError:
    raise MissingExtra("kafka_rebalance.spark", "spark") from None

from .applications import APPLICATIONS_SCHEMA, plan_applications
from .consumer_offsets import (
    CAUSES_SCHEMA,
    COMMITS_SCHEMA,
    KINDS_SCHEMA,
    committed_offsets,
    count_causes,
    count_records,
    current_groups,
)
from .files import assign_files, compare_files, plan_files
from .functions import (
    assign_groups,
    assign_lines,
    assign_owners,
    compare_groups,
    plan_each_change,
    plan_groups,
)
from .group_records import GroupRecords, Inventories
from .kafka_records import (
    BOUNDS_SCHEMA,
    RECORDS_SCHEMA,
    offset_bounds,
    read_consumer_offsets,
    stream_consumer_offsets,
)
from .kept_groups import keep_current_groups, kept_records
from .member_counts import SCALE_SCHEMA, scale_groups
from .probe import ExecutorPython, probe_executors
from .recorded_lines import EVENTS_SCHEMA, coordinator_events, with_broker_logs
from .recorded_patterns import PATTERNS_SCHEMA, rebalance_patterns
from .recorded_rebalances import HISTORY_SCHEMA, rebalance_history
from .schema import (
    ASSIGNMENT_SCHEMA,
    COMPARE_SCHEMA,
    EACH_CHANGE_SCHEMA,
    GROUPS_SCHEMA,
    HISTOGRAM_SCHEMA,
    INPUT_SCHEMA,
    OUTPUT_SCHEMA,
    OWNERS_SCHEMA,
    PLAN_SCHEMA,
    SUMMARY_SCHEMA,
)
from .sql import assign_udf, register_functions
from .summary import explode_assignment, fleet_histogram, fleet_summary

__all__ = [
    "APPLICATIONS_SCHEMA", "ASSIGNMENT_SCHEMA", "BOUNDS_SCHEMA", "CAUSES_SCHEMA",
    "COMMITS_SCHEMA", "COMPARE_SCHEMA",
    "EACH_CHANGE_SCHEMA", "EVENTS_SCHEMA", "GROUPS_SCHEMA", "HISTOGRAM_SCHEMA", "HISTORY_SCHEMA",
    "INPUT_SCHEMA", "KINDS_SCHEMA", "OUTPUT_SCHEMA", "OWNERS_SCHEMA", "PATTERNS_SCHEMA",
    "PLAN_SCHEMA", "RECORDS_SCHEMA", "SCALE_SCHEMA",
    "SUMMARY_SCHEMA", "Done", "ExecutorPython", "GroupRecords",
    "Inventories", "SchemaError", "assign_files", "assign_groups", "assign_lines", "assign_owners",
    "assign_udf", "committed_offsets", "compare_files", "compare_groups", "coordinator_events",
    "count_causes", "count_records", "current_groups", "explode_assignment", "fleet_histogram",
    "fleet_summary", "keep_current_groups", "kept_records", "offset_bounds", "plan_applications",
    "plan_each_change", "plan_files", "plan_groups", "probe_executors", "read_consumer_offsets",
    "rebalance_history", "rebalance_patterns", "register_functions", "scale_groups",
    "stream_consumer_offsets", "with_broker_logs",
]  # fmt: skip
