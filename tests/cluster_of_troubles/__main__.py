# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.cluster_of_troubles [--groups 300] [--real 2] [--alerts [--minutes 20]]`.

1. Start a broker; form groups of five libraries, with six troubles (`groups.py`).
2. `kafka-rebalance describe` must show exactly these six groups, with these findings, by severity.
   `check` must fail with them, and with no other group.
3. With `--alerts`: while groups change as is ordinary (`change.py`), the exporter runs, and
   Prometheus with the rules of deploy/. The alerts of the six groups must fire, and no other one.
   Then `describe` and `check` must show the six again.
4. The broker is killed: `describe` must end with an error.

The exit code is 0 if all of it holds, else 1.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from kafka_rebalance.cli import FINDINGS_FAIL
from kafka_rebalance.notes.findings import rank
from tests.large_cluster.members import PROPERTIES
from tests.support.broker import Broker

from .alerts import watch_alerts
from .change import OrdinaryChange
from .groups import GROWS, Troubles

if TYPE_CHECKING:
    from collections.abc import Iterator

STAYS_OPEN = {"connections.max.idle.ms": "7200000"}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster_of_troubles")
    parser.add_argument("--groups", type=int, default=300, help="(%(default)s)")
    parser.add_argument(
        "--real", type=int, default=2, help="groups of real members a library (%(default)s)"
    )
    parser.add_argument("--alerts", action="store_true", help="watch the alerts")
    parser.add_argument("--minutes", type=float, default=20, help="of the alerts (%(default)s)")
    args = parser.parse_args()
    with Broker(properties=PROPERTIES | STAYS_OPEN) as broker:
        server, started = broker.bootstrap_server, time.monotonic()
        with Troubles(server, args.groups, args.real) as cluster:
            print(f"{args.groups} groups formed in {time.monotonic() - started:.0f} s", flush=True)
            problems = [*_judge(cluster, server)]
            if args.alerts:
                problems += _with_change(cluster, server, args.minutes)
                problems += _judge(cluster, server)
        broker.kill(0)
        dead = _run("describe", server, "--timeout", "2")
        print(f"killed: exit code {dead.returncode}, {dead.stderr.strip()}")
        if dead.returncode != 1 or dead.stdout:
            problems.append("a dead broker is no error")
    for problem in problems:
        print("wrong:", problem)
    return 1 if problems else 0


def _with_change(cluster: Troubles, server: str, minutes: float) -> Iterator[str]:
    """Watches alerts while groups change; yields what is wrong."""

    def create(partitions: int) -> None:
        from kafka import KafkaAdminClient

        with KafkaAdminClient(bootstrap_servers=server) as admin:
            admin.create_partitions({GROWS: partitions})

    change = OrdinaryChange(cluster, create, 60 * min(5, minutes / 3))
    change.start()
    try:
        yield from watch_alerts(server, cluster.planted, minutes)
    finally:
        change.stop()
    print("changes:", ", ".join(f"{number} x {what}" for what, number in change.made.items()))
    if change.problem:
        yield f"the change ended: {change.problem!r}"


def _judge(cluster: Troubles, server: str) -> Iterator[str]:
    """Prints `describe` and `check`; yields what is wrong."""
    started = time.monotonic()
    print(_run("describe", server).stdout)
    print(f"(in {time.monotonic() - started:.1f} s)")
    ran = _run("describe", server, "--json")
    yield from _wrong(cluster, [json.loads(line) for line in ran.stdout.splitlines()], ran.stderr)
    if ran.returncode:
        yield f"describe: exit code {ran.returncode}"
    ran = _run("check", server, "--fail-on", "warning", "--format", "json")
    failing = {one["group_id"] for one in json.loads(ran.stdout)["problems"] if one["fails"]}
    print(f"check: exit code {ran.returncode}, {' '.join(sorted(failing))}", flush=True)
    if ran.returncode != FINDINGS_FAIL or failing != {*cluster.planted.values()}:
        yield f"check: exit code {ran.returncode}, {failing}, {ran.stderr}"


def _run(command: str, server: str, *options: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "kafka_rebalance", command, "--bootstrap-server", server]
    return subprocess.run(
        [*words, *options], capture_output=True, text=True, timeout=120, check=False
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
