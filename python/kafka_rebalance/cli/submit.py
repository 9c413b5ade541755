# SPDX-License-Identifier: Apache-2.0
"""`kafka-rebalance fleet` as an application of spark-submit; docs/cluster.md shows the options.

spark-submit … "$(python -c 'import kafka_rebalance.cli.submit as s; print(s.__file__)')" \\
    assign hdfs:///groups hdfs:///assigned
"""

import sys

from kafka_rebalance.cli import main

if __name__ == "__main__":
    sys.exit(main(["fleet", *sys.argv[1:]]))
