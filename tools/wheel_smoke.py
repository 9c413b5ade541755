# SPDX-License-Identifier: Apache-2.0
"""Tries an installed wheel. Run it with the Python of an environment without other packages."""

import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import kafka_rebalance as kr
from kafka_rebalance.data import captured_lines

ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
COMMANDS = (
    "describe sample.jsonl",
    "plan sample.jsonl --group payments --add-members 1",
    "compare sample.jsonl --group orders --add-members 1",
    "explain payments-12 sample.jsonl --group payments --add-members 1",
    "simulate scale-out",
)


def main() -> None:
    present = {one.name for one in distributions()} - {"pip", "setuptools"}
    assert present == {"kafka-rebalance"}, present
    lines = [line for line in captured_lines() if '"error"' not in line]
    Path("sample.jsonl").write_text("\n".join(lines), encoding="utf-8")
    for group in map(kr.GroupSpec.from_json, lines):
        for assignor in ASSIGNORS:
            answers = [kr.assign(group, assignor, engine=e) for e in ("rust", "reference")]
            assert answers[0] == answers[1], group.group_id
    for command in COMMANDS:
        ran = subprocess.run(
            [sys.executable, "-I", "-m", "kafka_rebalance", *command.split()],
            capture_output=True, encoding="utf-8", check=False,
        )  # fmt: skip
        assert ran.returncode == 0, f"{command}:\n{ran.stderr}"
        assert ran.stdout, command
    version = ".".join(map(str, sys.version_info[:3]))
    print(f"Python {version}: {len(lines)} groups, {len(COMMANDS)} commands", end="")


if __name__ == "__main__":
    main()
