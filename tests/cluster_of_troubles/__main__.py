# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.cluster_of_troubles [--groups 300] [--real 2]`: is the worst shown first?

1. Start a broker; form groups of five libraries, with six troubles (`groups.py`).
2. `kafka-rebalance describe` must show exactly these six groups, with these findings, by severity.
3. The broker is killed: `describe` must end with an error.

The exit code is 0 if both hold, else 1.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time

from kafka_rebalance.notes.findings import rank
from tests.large_cluster.members import PROPERTIES
from tests.support.broker import Broker

from .groups import Troubles


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster_of_troubles")
    parser.add_argument("--groups", type=int, default=300, help="(%(default)s)")
    parser.add_argument(
        "--real", type=int, default=2, help="groups of real members a library (%(default)s)"
    )
    args = parser.parse_args()
    with Broker(properties=PROPERTIES) as broker:
        started = time.monotonic()
        with Troubles(broker.bootstrap_server, args.groups, args.real) as cluster:
            print(f"{args.groups} groups formed in {time.monotonic() - started:.0f} s", flush=True)
            started = time.monotonic()
            print(_describe(broker.bootstrap_server).stdout)
            print(f"(in {time.monotonic() - started:.1f} s)")
            ran = _describe(broker.bootstrap_server, "--json")
            lines = [json.loads(line) for line in ran.stdout.splitlines()]
            problems = [*_wrong(cluster, lines, ran.stderr)]
            if ran.returncode:
                problems.append(f"exit code {ran.returncode}")
        broker.kill(0)
        dead = _describe(broker.bootstrap_server, "--timeout", "2")
        print(f"killed: exit code {dead.returncode}, {dead.stderr.strip()}")
        if dead.returncode != 1 or dead.stdout:
            problems.append("a dead broker is no error")
    for problem in problems:
        print("wrong:", problem)
    return 1 if problems else 0


def _describe(server: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kafka_rebalance", "describe", "--bootstrap-server", server]
    return subprocess.run(
        [*command, *options], capture_output=True, text=True, timeout=120, check=False
    )


def _wrong(cluster: Troubles, lines: list[dict[str, object]], said: str) -> list[str]:
    """Returns the differences from what was planted."""
    found = []
    if said:
        found.append(f"on standard error: {said}")
    if len(lines) != len(cluster.well) + len(cluster.planted):
        found.append(f"{len(lines)} groups are described")
    kinds = {
        str(one["group_id"]): [str(note["kind"]) for note in one["findings"]]  # type: ignore[attr-defined]
        for one in lines
    }
    wanted = sorted(cluster.planted, key=rank)
    first = [str(one["group_id"]) for one in lines[: len(wanted)]]
    if first != [cluster.planted[kind] for kind in wanted]:
        found.append(f"the first are {first}")
    for kind, group_id in cluster.planted.items():
        if kinds.get(group_id, [""])[0] != kind:
            found.append(f"{group_id} has {kinds.get(group_id)}, not {kind}")
    others = {name: kind for name, kind in kinds.items() if kind and name in cluster.well}
    found += [f"{name} is well, but has {kind}" for name, kind in others.items()]
    return found


if __name__ == "__main__":
    sys.exit(main())
