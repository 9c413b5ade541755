# SPDX-License-Identifier: Apache-2.0
"""`python -m benches.balance`: `balanced` and `weighted` beside OR-Tools' flow and franz-go.

Prints the times of one run in a table, with the ratios to `balanced` or `weighted`, and the peak
memory of a process that only answers one line. `--quick` measures groups of 1,000 members alone.
OR-Tools is installed into build/ortools; franz-go needs Go. Three shapes of subscriptions:

    equal     every member subscribes to all 1,000 topics
    twenty    twenty sets of 200 topics
    random    each member subscribes to 10 random topics

A member has 50 partitions on average. 19 of 20 members own partitions as Kafka's round-robin dealt
them out, the others are empty. With racks, a partition has replicas in two of three racks.

    from names   an answer of the core, from the names in memory: what a leader has
    again        the same group again, its names numbered already
    OR-Tools     the solution of one flow, without building its network and without the spread of
                 topics; its racks and moves must be those of `balanced`
    franz-go     its sticky balancer, which evens out counts; here without racks
    held         the most memory that the core allocates for one answer
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import venv
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import kafka_rebalance as kr
from benches.grid import Case
from benches.measure import Peer
from kafka_rebalance.bulk import assign_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).resolve().parent
ORTOOLS = HERE.parent / "build" / "ortools"
TOPICS = 1000
LIMITS_MS = {("balanced", 1000): 150, ("balanced", 10_000): 2000}
LIMITS_MS |= {("weighted", 1000): 20, ("weighted", 10_000): 2000}


@dataclass(frozen=True)
class Shape(Case):
    """One group; `kind` is that of the weights for `weighted`, "owned" or "fresh" before a dash."""

    def group(self) -> kr.GroupSpec:
        rng = random.Random(str(self))
        names = [f"topic{t}" for t in range(TOPICS)]
        each = self.partitions // TOPICS
        sets = [tuple(rng.sample(names, 200)) for _ in range(20)]
        racks = tuple((f"rack{p % 3}", f"rack{(p + 1) % 3}") for p in range(each))
        owned, _, weights = self.kind.partition("-")
        members, topics = [], []
        for m in range(self.members):
            listed = {"equal": names, "twenty": sets[m % 20], "random": rng.sample(names, 10)}
            rack = f"rack{m % 3}" if self.racks != "none" else None
            members.append(kr.Member(f"member{m}", tuple(listed[self.subscriptions]), rack_id=rack))
        for name in names:
            draw = rng.random if weights == "uniform" else partial(rng.paretovariate, 1.2)
            weighs = tuple(round(1 + 999 * draw(), 3) for _ in range(each)) if weights else None
            racked = racks if self.racks != "none" else None
            topics.append(kr.Topic(name, each, racked, weights=weighs))
        if owned == "owned":
            present = members[: -len(members) // 20]
            before = kr.assign(self._of(topics, present), "roundrobin")
            members[: len(present)] = [one.owning(before[one.member_id], 1) for one in present]
        return self._of(topics, members)

    def _of(self, topics: list[kr.Topic], members: list[kr.Member]) -> kr.GroupSpec:
        limit = 10**8
        return kr.GroupSpec(
            "bench", tuple(topics), tuple(members), self.assignor, max_partitions=limit
        )

    def __str__(self) -> str:
        racks = "" if self.racks == "none" else ", racks"
        size = f"{self.members} x {self.partitions}"
        return f"{self.assignor}, {size}, {self.subscriptions}, {self.kind}{racks}"


def shapes(sizes: tuple[int, ...]) -> Iterator[Shape]:
    for members in sizes:
        for subscriptions in ("equal", "twenty", "random"):
            for racks in ("none", "two racks"):
                yield Shape("balanced", members, 50, TOPICS, subscriptions, "owned", racks)
            for kind in ("fresh-uniform", "owned-uniform", "owned-zipf"):
                yield Shape("weighted", members, 50, TOPICS, subscriptions, kind)


def peers(seconds: float) -> list[Peer]:
    core = ["cargo", "bench", "-q", "--no-default-features", "--features", "mimalloc"]
    core += ["--bench", "core_times", "--", "--seconds", str(seconds)]
    python = ORTOOLS / "bin" / "python"
    if not python.exists():
        venv.create(ORTOOLS, with_pip=True)
        needs = ["ortools==9.15.6755", "numpy"]
        subprocess.run([python, "-m", "pip", "install", "-q", *needs], check=True)
    franz = HERE / "peers" / "franz"
    subprocess.run(["go", "build", "-o", "franz", "."], cwd=franz, check=True)
    flow = [str(python), str(HERE / "peers" / "ortools_flow.py")]
    return [
        Peer("core", core, ("balanced", "weighted"), 600),
        Peer("OR-Tools", flow, ("balanced",), 300),
        Peer("franz-go", [str(franz / "franz"), str(seconds)], ("balanced",), 120),
    ]


def peak_rss(line: bytes, assignor: str) -> float:
    """Returns the most MB that a process holds which reads one line and answers it."""
    program = (
        "import sys, kafka_rebalance.bulk as b; b.assign_lines([sys.stdin.buffer.read()], {!r})"
    )
    command = [sys.executable, "-c", program.format(assignor)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE)
    assert process.stdin
    process.stdin.write(line)
    process.stdin.close()
    _, status, used = os.wait4(process.pid, 0)
    assert status == 0
    return used.ru_maxrss / 1024


def row(case: Shape, asked: list[Peer]) -> str:
    group = case.group()
    line = group.to_json().encode()
    found: dict[str, dict[str, Any]] = {}
    for peer in asked:
        knows = peer.name != "franz-go" or case.racks == "none"
        found[peer.name] = peer.ask(case, line) if knows else {"skipped": "no racks here"}
    core = found["core"]["ms"]
    if "moves" in found["OR-Tools"]:
        judged = assign_lines([line], case.assignor)[0].line
        balance = json.loads(judged)["balance"]
        ours, theirs = [(one["in_rack"], one["moves"]) for one in (balance, found["OR-Tools"])]
        assert ours == theirs, f"{case}: {ours} here, {theirs} by OR-Tools' flow"
    shown = [f"{core:.1f} ms", f"{found['core']['again_ms']:.1f} ms"]
    for name in ("OR-Tools", "franz-go"):
        ms = found[name].get("ms")
        shown.append(f"{ms:.1f} ms, {ms / core:.2f}x" if ms else "-")
    limit = LIMITS_MS[case.assignor, case.members]
    held = found["core"]["peak_bytes"] / 2**20
    memory = [
        f"{held:.0f} MB",
        f"{peak_rss(line, case.assignor):.0f} MB, line {len(line) >> 20} MB",
    ]
    return " | ".join(["", str(case), f"{limit} ms", *shown, *memory, ""]).strip()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--seconds", type=float, default=1.0)
    given = parser.parse_args()
    asked = peers(given.seconds)
    titles = [
        "case",
        "limit",
        "from names",
        "again",
        "OR-Tools",
        "franz-go",
        "held",
        "peak of a process",
    ]
    print("|", " | ".join(titles), "|")
    print("|", " | ".join(["---"] * len(titles)), "|")
    for case in shapes((1000,) if given.quick else (1000, 10_000)):
        if given.only in str(case):
            print(row(case, asked), flush=True)
    for peer in asked:
        peer.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
