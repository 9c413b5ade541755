# SPDX-License-Identifier: Apache-2.0
"""The Spark driver that the test kills: `python -m tests.kills.driver SERVER PATH [--once]`."""

from __future__ import annotations

import sys

from kafka_rebalance.spark import keep_current_groups, stream_consumer_offsets
from kafka_rebalance.spark.session import session


def main() -> None:
    server, path, *options = sys.argv[1:]
    spark = session("kills", master="local[2]")
    spark.conf.set("spark.sql.shuffle.partitions", "4")
    once = "--once" in options
    # Many small micro-batches, so that the driver can be killed at many different steps.
    limited = {} if once else {"maxOffsetsPerTrigger": "200"}
    stream = stream_consumer_offsets(spark, bootstrap_servers=server, options=limited)
    every = None if once else "100 milliseconds"
    keep_current_groups(stream, path, commits=True, every=every).awaitTermination()


if __name__ == "__main__":
    main()
