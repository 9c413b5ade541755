# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.kills [--rebalances 200] [--kills 5] [--seed 1]`.

Kills the Spark driver that keeps the table of groups up to date, while real groups rebalance. Then
compares the table with that of a batch job (the steps are in tests/kills/run.py). The exit code is
0 if they are equal, else 1.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from kafka_rebalance.spark.session import session

from .run import run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kills")
    parser.add_argument("--rebalances", type=int, default=200, help="at least (%(default)s)")
    parser.add_argument("--kills", type=int, default=5, help="(%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the moments (%(default)s)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kafka-rebalance-kills-") as directory:
        outcome = run(
            lambda: session("kills", master="local[2]"),
            Path(directory),
            rebalances=arguments.rebalances,
            kills=arguments.kills,
            seed=arguments.seed,
        )
    print(outcome)
    return 1 if outcome.only_kept or outcome.only_batch else 0


if __name__ == "__main__":
    sys.exit(main())
