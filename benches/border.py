# SPDX-License-Identifier: Apache-2.0
"""Measures two calls that cross between Python and Rust: a plan of one group, a round of Connect.

    python -m benches.border                     measures this tree
    python -m benches.border --against OLD       also measures another tree; OLD is its directory
                                                 `python`

Each repetition runs in its own process. Processes of two trees take turns, so that the load of the
machine is similar for both. The output is the median and the maximum of all repetitions in ms, and
how many times longer the other tree takes.

    plan      200 members, 2,000 partitions, cooperative-sticky, from a balanced assignment: the
              plan with its figures (`figures`), or with every round written out (`to_dict`)
    connect   5 workers, 90 connectors of 10 tasks: the leader's round after a worker has left
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import kafka_rebalance as kr
from kafka_rebalance.assignors.connect.engines import handle
from kafka_rebalance.assignors.connect.incremental import ConnectSpec, Memory
from kafka_rebalance.assignors.connect.work import Work

ROOT = Path(__file__).resolve().parent.parent
ASSIGNOR = "cooperative-sticky"
CHANGES = {
    "add-members": ["add-members=5"],
    "remove-member": ["remove-member=consumer-7"],
    "bounce one": ["bounce-members=consumer-7"],
    "bounce all": ["bounce-members=*"],
}


def held_group() -> kr.GroupSpec:
    topics = tuple(kr.Topic(f"topic-{t}", 100) for t in range(20))
    names = tuple(topic.name for topic in topics)
    members = tuple(kr.Member(f"consumer-{m}", names) for m in range(200))
    group = kr.GroupSpec("bench", topics, members)
    return group.owning(kr.assign(group, ASSIGNOR))


def plans() -> dict[str, Callable[[], object]]:
    group = held_group()

    def figures(changes: list[str]) -> Callable[[], object]:
        return lambda: kr.plan(group, ASSIGNOR, changes).figures()

    def everything(changes: list[str]) -> Callable[[], object]:
        return lambda: kr.plan(group, ASSIGNOR, changes).to_dict()

    cases = {f"plan {name}: figures": figures(changes) for name, changes in CHANGES.items()}
    # Only the figures of "bounce all" are measured: the dicts of its 400 rebalances take 80 MB.
    written = {name: changes for name, changes in CHANGES.items() if name != "bounce all"}
    return cases | {f"plan {name}: to_dict": everything(one) for name, one in written.items()}


def rounds() -> dict[str, Callable[[], object]]:
    config = {f"connector-{c}": 10 for c in range(90)}

    def spec(running: dict[str, Work], generation: int) -> ConnectSpec:
        return ConnectSpec(running, config, 300_000, generation, generation - 1)

    workers = [f"worker-{w}" for w in range(6)]
    memory, first = handle(Memory(), spec({w: Work() for w in workers}, 1), 0)
    left = spec({w: first.assigned[w] for w in workers[:5]}, 2)
    return {
        "connect: rust": lambda: handle(memory, left, 10_000),
        "connect: reference": lambda: handle(memory, left, 10_000, engine="reference"),
    }


def measured(leave_out: str) -> dict[str, float]:
    """Returns case -> CPU time in ms: the best of three calls; if the first takes 1 s or
    more, only that one."""
    times = {}
    for name, run in (plans() | rounds()).items():
        if leave_out and leave_out in name:
            continue
        began = time.process_time()
        run()
        took = time.process_time() - began
        for _ in range(2 if took < 1 else 0):
            began = time.process_time()
            run()
            took = min(took, time.process_time() - began)
        times[name] = took * 1000
    return times


def in_process(path: Path, leave_out: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benches.border", "--once", "--leave-out", leave_out]
    environment = os.environ | {"PYTHONPATH": str(path)}
    run = subprocess.run(
        command, check=True, capture_output=True, text=True, env=environment, cwd=ROOT
    )
    times: dict[str, float] = json.loads(run.stdout)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path, help="the `python` directory of another tree")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument(
        "--leave-out",
        default="",
        help='leave out cases with this text in their name, e.g. "bounce all"',
    )
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.once:
        print(json.dumps(measured(args.leave_out)))
        return
    trees = [ROOT / "python", *([args.against] if args.against else [])]
    runs: list[list[dict[str, float]]] = [[] for _ in trees]
    for _ in range(args.repeat):
        for tree, of_tree in zip(trees, runs, strict=True):
            of_tree.append(in_process(tree, args.leave_out))
    for name in runs[0][0]:
        times = [[run[name] for run in of_tree] for of_tree in runs]
        columns = [f"{median(one):10.2f} (worst {max(one):.2f})" for one in times]
        ratio = f"{median(times[-1]) / median(times[0]):8.1f}x" if args.against else ""
        print(f"{name:30}{ratio}", *columns)


if __name__ == "__main__":
    main()
