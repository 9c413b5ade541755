# SPDX-License-Identifier: Apache-2.0
"""Runs `kafka-rebalance` as a user at the prompt does."""

import subprocess
import sys


def command(*arguments: object, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kafka_rebalance", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
