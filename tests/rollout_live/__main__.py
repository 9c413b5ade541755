# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.rollout_live [--manifests N] [--first N] [--seed N]`: forecasts beside deploys.

Generates manifests, with classic and consumer members, static and dynamic ones. Each deploy is
played with processes of real consumers on a real broker, whose starts and ends are those of one
draw. Each figure must be in the range of the forecast, made of a snapshot from before the deploy. A
time may lie outside of it by the delays of the run itself: for each generation the timeout of a
poll and how late the machine was, for each unread partition the timeout of a poll.

At the end, `rollout --gate` must find the group as planned, but not with one pod more.

Prints a line for each manifest, and each figure that is outside. The exit code is 0 if all figures
of all manifests are in range, else 1.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from kafka_rebalance import GroupSpec, snapshot
from kafka_rebalance.rollout import forecast as forecasts
from kafka_rebalance.rollout import read_manifest, rollout
from kafka_rebalance.rollout.forecast import deployed
from kafka_rebalance.rollout.variants import Variant
from kafka_rebalance.simulator import Kind, scenario_from_group
from tests.reality.real import prepare
from tests.reality.scenario import POLL_MS
from tests.support.broker import Broker
from tests.support.prompt import command

from .manifests import BROKER, HEARTBEAT_MS, SESSION_MS, Case, case
from .real import Log, play

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafka_rebalance.simulator import Spread

PROPERTIES = {
    "group.consumer.min.heartbeat.interval.ms": str(HEARTBEAT_MS),
    "group.consumer.heartbeat.interval.ms": str(HEARTBEAT_MS),
    "group.consumer.min.session.timeout.ms": str(SESSION_MS),
    "group.consumer.session.timeout.ms": str(SESSION_MS),
}
_BEGIN_MS, _TAIL_MS, _AGAIN_MS = 9_000, 6_000, 12_000


def judge(one: Case, server: str, directory: Path, log: Log, random: Random) -> list[str]:
    """Returns a text for each figure that is not in the range of the forecast."""
    workload = read_manifest(one.manifest)
    settings: dict[str, Any] = {"config": one.config}
    base = replace(scenario_from_group(one.group, **settings), broker=BROKER)
    begin = _BEGIN_MS + random.randrange(HEARTBEAT_MS)
    scenario = deployed(Variant("", (), base, workload, one.assumed), random, begin)
    firsts: dict[tuple[Kind, str], int] = {}
    for event in scenario.happenings:
        firsts.setdefault((event.kind, event.member), event.at_ms)
    last = max([begin, *firsts.values(), *(member.start_ms for member in scenario.members)])
    # A refused member is there at its second or third start, soon after its session has ended.
    again = len(scenario.happenings) > len(firsts)
    # Sessions end in two rebalances, if new members join between: the second may take one session.
    until = last + 2 * SESSION_MS + _TAIL_MS + again * _AGAIN_MS
    happenings = tuple(event for event in scenario.happenings if event.at_ms <= until)
    scenario = replace(scenario, happenings=happenings, until_ms=until)
    prepare(server, [scenario])
    outside: list[str] = []
    file = directory / f"{scenario.group_id}.yaml"
    file.write_text(one.manifest, encoding="utf-8")

    def gate() -> None:
        where = ("--bootstrap-server", server, "--group", scenario.group_id)
        ran = command("rollout", file, "--gate", "--for", "20", *where)
        print(f"    gate: exit code {ran.returncode}, {ran.stdout.strip()}", flush=True)
        more = ("--replicas", workload.replicas + 1, "--for", 3)
        closed = command("rollout", file, "--gate", *where, *more)
        print(f"    gate: exit code {closed.returncode}, {closed.stdout.strip()}", flush=True)
        outside.extend(["gate"] * ((ran.returncode, closed.returncode) != (0, 4)))

    groups: list[GroupSpec] = []

    def read() -> None:
        groups.extend(snapshot(server, [scenario.group_id]))

    real = play(scenario, server, directory, log, begin, before=read, at_rest=gate)
    (group,) = groups
    # Heartbeats drift apart with time: the forecast's group is as young as the real one.
    with patch.object(forecasts, "_BEGIN_MS", _BEGIN_MS):
        forecast = rollout(
            group, workload, assumed=one.assumed, broker=BROKER, most=1, **settings
        ).variants[0]
    delay = (POLL_MS + real["late_ms"]) * (1 + real["rebalances"])
    for name, spread in forecast.figures.items():
        slack = POLL_MS * real["gaps"] if name == "unread_ms" else delay
        slack = slack if name.endswith("_ms") else 0
        verdict = _verdict(spread, real[name], slack)
        print(
            f"    {name}: {real[name]}, told {spread.least} to {spread.most}{verdict}", flush=True
        )
        outside += [name] if verdict.startswith(" OUT") else []
    return outside


def _verdict(spread: Spread, real: int | None, slack: int) -> str:
    if real is None or spread.least is None or spread.most is None:
        return "" if (real is None) == bool(spread.never) else " OUTSIDE"
    if spread.least <= real <= spread.most:
        return ""
    near = spread.least - slack <= real <= spread.most + slack
    return f" (within the measured delays, {slack} ms)" if near else f" OUTSIDE (delays {slack} ms)"


def run(numbers: Iterable[int], seed: int) -> dict[int, list[str]]:
    """Returns for each manifest the figures that are not in range, and "gate" if that is wrong."""
    found: dict[int, list[str]] = {}
    with (
        tempfile.TemporaryDirectory() as directory,
        Broker(properties=PROPERTIES) as broker,
        Log(broker.bootstrap_server) as log,
    ):
        for number in numbers:
            random = Random(f"{seed}/{number}")
            one = case(random, number)
            print(f"{number}: {one}", flush=True)
            outside = judge(one, broker.bootstrap_server, Path(directory), log, random)
            found[number] = outside
            said = f"NOT in range: {', '.join(outside)}" if outside else "in range"
            print(f"  {said}", flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.rollout_live")
    parser.add_argument("--manifests", type=int, default=20, help="(default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="of the manifests (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="(default: %(default)s)")
    arguments = parser.parse_args()
    first = arguments.first
    found = run(range(first, first + arguments.manifests), arguments.seed)
    wrong = sum(map(bool, found.values()))
    print(f"\n$ python -m tests.rollout_live {' '.join(sys.argv[1:])}")
    print(f"in range: {len(found) - wrong}\nnot in range: {wrong}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
