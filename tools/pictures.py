# SPDX-License-Identifier: Apache-2.0
"""Draws the pictures of docs/simulator.md anew: `python -m tools pictures`.

Each picture shows one run of a shipped scenario, or a comparison if the scenario is made for one.
"""

from __future__ import annotations

import sys
from pathlib import Path

from kafka_rebalance.cli import main
from kafka_rebalance.simulator.scenario_files import ready

OUT = Path(__file__).resolve().parent.parent / "docs" / "simulator"
COMPARED = {
    "connect-90-connectors": "eager,cooperative",
    "consumer-protocol": "cooperative,consumer",
    "rolling-bounce": "eager,cooperative,static",
    "seven-topics": "eager,cooperative",
}

if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    for name in ready():
        options = ["--compare", COMPARED[name]] if name in COMPARED else []
        print(f"$ kafka-rebalance simulate {' '.join([name, *options])}", flush=True)
        if main(["simulate", name, *options, "--output", str(OUT / f"{name}.png")]):
            sys.exit(1)
