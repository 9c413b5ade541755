# SPDX-License-Identifier: Apache-2.0
"""Measures Connect's incremental leader in Rust and in Java on one round, in one run.

    python -m tools.bench_connect

100 workers run 1,000 connectors and 10,000 tasks, and another worker joins.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from kafka_rebalance.connect.script import run_script

ROOT = Path(__file__).resolve().parent.parent
JAR = ROOT / "tools/connect-oracle/target/connect-oracle.jar"
MAX_DELAY_MS = 300_000


def script() -> dict[str, Any]:
    """Returns a script: in round one, workers receive all work; in round two, a worker joins."""
    workers = [{"id": f"connect-10.0.{w // 10}.{w}:8083-{w:032x}"} for w in range(101)]
    config = {f"connector-{c:04}": 10 for c in range(1000)}
    return {
        "assignor": "connect-incremental",
        "max_delay_ms": MAX_DELAY_MS,
        "rounds": [
            {"time_ms": 1000, "workers": workers[:100], "config": config},
            {"time_ms": 2000, "workers": workers, "config": config},
        ],
    }


def rust() -> dict[str, float]:
    """Returns the times of the compiled core on round two, without the numbering of names."""
    command = ["cargo", "bench", "--quiet", "--bench", "connect_round"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return dict(json.loads(run.stdout))


def java() -> dict[str, float]:
    """Returns the times of the Java class on round two, after warm-up."""
    run = subprocess.run(
        ["java", "-jar", str(JAR), "--time"],
        input=json.dumps(script()) + "\n",
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(run.stdout))


def main() -> int:
    if not JAR.exists():
        print("the Java class is not built: make judges", file=sys.stderr)
        return 2
    assert run_script(script()) == run_script(script(), engine="reference")
    ours, theirs = rust(), java()
    for name in ("best_ms", "median_ms"):
        ratio = theirs[name] / ours[name]
        print(f"{name}: Java {theirs[name]:.3f}, Rust {ours[name]:.3f}, {ratio:.1f} times")
    return 0


if __name__ == "__main__":
    sys.exit(main())
