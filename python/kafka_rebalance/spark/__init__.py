# SPDX-License-Identifier: Apache-2.0
"""Functions for many groups on Spark: from DataFrames to DataFrames.

    from kafka_rebalance.spark import assign_groups
    assign_groups(groups, assignor="cooperative-sticky").write.parquet("assigned")

They need no JVM gateway, so they also work on Spark Connect. Set
`spark.sql.execution.arrow.maxBytesPerBatch` to 4m: with Spark's default of 64 MB, giant groups need
much more memory.
"""

from kafka_rebalance.errors import MissingExtra
from kafka_rebalance.lazy import lazily

try:
    import pyspark.sql  # noqa: F401 -- the modules need it
except ImportError:
    raise MissingExtra("kafka_rebalance.spark", "spark") from None

__getattr__, __dir__ = lazily(globals())
