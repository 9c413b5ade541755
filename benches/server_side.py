# SPDX-License-Identifier: Apache-2.0
"""Measures the assignors of brokers, `consumer/uniform` and `consumer/range`, against Kafka's.

    python -m benches.server_side [--members N] [--seconds S]

The cells are those of `make bench` without racks, and the shapes of Kafka's own benchmark of these
assignors. Kafka's side has two times. `target` is a
broker's work in one heartbeat: from members with the names of their topics to each member's target
and the records of those that changed (ConsumerTargetAssignmentBuilder). `class` is the assignor's
own `assign`, with the topics' ids resolved and the owner of each partition known. So our first
answer (from names) is compared with `target`, and our later answer, whose names are numbered and
hashed, with `class`. Writes results/server_side.md.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Callable, Iterator
from typing import Any

from benches.grid import EVENTS, Case, grid, shapes
from benches.measure import Peer
from benches.run import ROOT, machine
from benches.table import RESULTS

ASSIGNORS = ("consumer/uniform", "consumer/range")
TIMEOUT_S = 75.0
Row = dict[str, Any]
_KINDS: dict[str, Callable[[Row], bool]] = {
    "same subscriptions": lambda row: row["subscriptions"] == "same",
    "buckets subscriptions": lambda row: row["subscriptions"] == "buckets",
    "nested subscriptions": lambda row: row["subscriptions"] == "nested",
    "skewed topics": lambda row: row["topology"] == "skewed",
    "racks of members and replicas": lambda row: row["racks"] != "none",
    "an event since the last assignment": lambda row: row["kind"] in EVENTS,
}


def cases(members: int | None) -> Iterator[Case]:
    for case in grid(ASSIGNORS):
        growth = case.per_member == 10 and case.topics == 100 and case.members >= 1000
        usual = case.members in (100, 1000, 10_000) and case.per_member in (5, 50)
        if case.racks == "none" and (usual or growth) and members in (None, case.members):
            yield case
    if members in (None, 1000):
        yield from shapes(ASSIGNORS)


def measured(case: Case, core: Peer, java: Peer) -> Row:
    """Returns the median times in ms of a case, or the reason why one is missing."""
    line = case.group().to_json().encode()
    ours, theirs = core.ask(case, line), java.ask(case, line)
    row: Row = {"case": str(case), "assignor": case.assignor, "kind": case.kind}
    row |= {"subscriptions": case.subscriptions, "partitions": case.partitions}
    row |= {"racks": case.racks, "topology": case.topology}
    row |= {"names": ours["ms"], "again": ours["again_ms"]}
    if "ms" not in theirs:
        return row | {"skipped": theirs["skipped"]}
    return row | {"target": theirs["ms"], "class": statistics.median(theirs["assign_ms"])}


def rendered(rows: list[Row]) -> str:
    about = machine()
    heads = map(_heads, ("target / ours from names", "class / ours asked again"))
    lines = [
        f"# The assignors of brokers, {about['date']}",
        "",
        f"{about['machine']}, load {about['load']} at the end. {about['system']}, {about['rust']},",
        f"{about['java']}, kafka-group-coordinator 4.4.0.",
        "",
        "Times are medians in ms of one thread. `target` is Kafka's whole computation of a target,",
        "from the members' topic names; ours from names computes the same target, without",
        "records. From one heartbeat to the next, a broker keeps the number of subscribers of",
        "each name and the owner of each partition. So with equal subscriptions, `target` reads",
        "one member's names; ours from names reads and compares those of all members.",
        "`class` is the `assign` of Kafka's assignor alone; ours asked again keeps the numbers and",
        "hashes of the names.",
        "",
        f"| what | cells | {' | '.join(heads)} |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for assignor in ASSIGNORS:
        for what, fits in _KINDS.items():
            fit = [
                row for row in rows if row["assignor"] == assignor and "class" in row and fits(row)
            ]
            if fit:
                what = f"{assignor}, {what}"
                names = _summary([row["target"] / row["names"] for row in fit])
                again = _summary([row["class"] / row["again"] for row in fit])
                lines.append(f"| {what} | {len(fit)} | {names} | {again} |")
    lines += ["", "| case | partitions | ours from names | asked again | target | class |"]
    lines.append("| --- | ---: | ---: | ---: | ---: | ---: |")
    for row in rows:
        ours = f"{row['case']} | {row['partitions']:,} | {_ms(row['names'])} | {_ms(row['again'])}"
        if "class" not in row:
            lines.append(f"| {ours} | {row['skipped']} | |")
            continue
        target = f"{_ms(row['target'])} ({row['target'] / row['names']:,.1f}x)"
        alone = f"{_ms(row['class'])} ({row['class'] / row['again']:,.1f}x)"
        lines.append(f"| {ours} | {target} | {alone} |")
    return "\n".join(lines) + "\n"


def _heads(what: str) -> str:
    return f"{what}: geometric mean | least | slower"


def _summary(ratios: list[float]) -> str:
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    slower = sum(ratio < 1 for ratio in ratios)
    return f"{mean:,.1f}x | {min(ratios):,.1f}x | {slower}"


def _ms(ms: float) -> str:
    return f"{ms:,.3f}" if ms < 10 else f"{ms:,.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, help="only cells with this number of members")
    parser.add_argument("--seconds", type=float, default=0.3)
    args = parser.parse_args()
    cargo = ["cargo", "bench", "-q", "--no-default-features", "--features", "mimalloc"]
    cargo += ["--bench", "core_times", "--", "--seconds", str(args.seconds)]
    jar = str(ROOT / "tools/server-oracle/target/server-oracle.jar")
    run = ["java", "-Xms2g", "-Xmx6g", "-cp", jar, "serveroracle.Bench", str(args.seconds)]
    core, java = Peer("core", cargo, ASSIGNORS, 600), Peer("Java", run, ASSIGNORS, TIMEOUT_S)
    rows: list[Row] = []
    for case in cases(args.members):
        print(f"\r{case}\033[K", end="", file=sys.stderr, flush=True)
        rows.append(measured(case, core, java))
    for peer in (core, java):
        peer.stop()
    print("\r\033[K", end="", file=sys.stderr)
    text = rendered(rows)
    (RESULTS / "server_side.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
